package phone

// Three countries changed their mobile numbers, and messengers report some accounts in the form in which they were first
// registered. The sets are closed: any number not listed here is another line.
//
//   - Brazil: 55, two-digit area code, [9], eight digits. Only mobiles got the ninth digit (Anatel's Resolution 553/2010,
//     2012 to 2016); their eight digits start with 6 to 9, landlines' with 2 to 5. Area codes have no zero. Eight digits
//     from 7 were also given to trunked radio (SME, Nextel), which kept them, and libphonenumber still treats them as
//     valid: 7xxx-xxxx and 9 7xxx-xxxx can be two lines. They are two lines in the areas 11 to 28, because WhatsApp reports
//     mobiles there with all nine digits. From area 31 on it reports every mobile with eight, including those from 7 (the
//     rule of clients such as Evolution API), so there both are one account.
//   - Mexico: 52 [1] and ten digits. The 1 was dropped in 2019; wa_id keeps 521.
//   - Argentina: 54 [9] and ten digits. The 9 marks a mobile called from abroad; mobiles and landlines share no ten-digit
//     number.
//
// Sources: Zoho Marketing Automation, "inconsistencies in mobile numbers and their WhatsApp IDs in Brazil and Mexico";
// Whapi, "specifics of sending messages to numbers of different countries".

// Same reports whether a and b are one line: equal, or two forms of one number. None is not the same as anything, not even
// none: a withheld number must never match.
func Same(a, b Number) bool {
	return !a.IsZero() && Canonical(a) == Canonical(b)
}

// Variants returns every form of n's line, n itself first: one or two, or no form for none.
func Variants(n Number) []Number {
	if n.IsZero() {
		return nil
	}
	if other, ok := n.otherForm(); ok {
		return []Number{n, other}
	}
	return []Number{n}
}

// Canonical returns the form that all variants of a line share, today's mobile form: for limits and comparison only.
// Answers and stores keep the form as given; an Argentine landline even gets a canonical form that is never written.
func Canonical(n Number) Number {
	_, canonical := n.bothForms()
	return canonical
}

func (n Number) otherForm() (Number, bool) {
	old, canonical := n.bothForms()
	if old == canonical {
		return Number{}, false
	}
	if n == canonical {
		return old, true
	}
	return canonical, true
}

// bothForms returns both forms of a number that has two, else n twice.
func (n Number) bothForms() (old, canonical Number) {
	switch n.firstDigits(2) {
	case 0x52:
		return n.mexicanForms()
	case 0x54:
		return n.argentineForms()
	case 0x55:
		return n.brazilianForms()
	}
	return n, n
}

func (n Number) mexicanForms() (old, canonical Number) {
	line := n.lastDigits(10)
	if n.countDigits() == 12 || n.countDigits() == 13 && n.firstDigits(3) == 0x521 {
		return fromBCD(0x521<<40 | line), fromBCD(0x52<<40 | line)
	}
	return n, n
}

func (n Number) argentineForms() (old, canonical Number) {
	line := n.lastDigits(10)
	if n.countDigits() == 12 || n.countDigits() == 13 && n.firstDigits(3) == 0x549 {
		return fromBCD(0x54<<40 | line), fromBCD(0x549<<40 | line)
	}
	return n, n
}

func (n Number) brazilianForms() (old, canonical Number) {
	area, line := n.firstDigits(4), n.lastDigits(8)
	ninth, first := n.countDigits() == 13 && n.firstDigits(5)&0xf == 9, line>>28
	if n.countDigits() != 12 && !ninth || area&0xf0 == 0 || area&0xf == 0 || first < 6 || first == 7 && area < 0x5530 {
		return n, n
	}
	return fromBCD(area<<32 | line), fromBCD(area<<36 | 9<<32 | line)
}
