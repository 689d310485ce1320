package phone

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/runenames"
)

var fourDigits = regexp.MustCompile(`[0-9]{4}`)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "+", "+49 (0)151 123.45-678", "0049301234", "+4915112345678901", "+1 (555) 010-0000", "＋１2015550123",
		"+٤٩١٥١١٢٣٤٥٦٧٨", "\u200f+4915112345678",
		"\u202a+49\u00a0151\u201112345678\u202c", "+४९ १५१ १२३۴۵۶۷۸", "＋４９（１５１）１２３．４５／６７８", "+49\u202815112345678", "tel:+4915112345678;ext=1", "+5215512345678", "+551187654321",
		"+54111523456789", "+7 8 701 234 5678", "+88801234567", "+80012345678", "+979123456789", "+390669812345",
		"+44 0 020 7946 0000", "+39000000", "+1 1 201 555 0123", "+55 0 15 11 98765 432",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		checkParse(t, input)
		// Most inputs fail at their first invalid byte; converted to digits, each also reaches the numbering plans.
		digits := []byte(input)
		for i, c := range digits {
			digits[i] = '0' + c%10
		}
		checkParse(t, string(digits))
		checkParse(t, inOtherScripts(digits, input))
	})
}

func checkParse(t *testing.T, input string) {
	t.Helper()
	n, err := Parse(input)
	checkNormalized(t, input, n, err)
	if err != nil {
		checkRefusal(t, n, err)
		return
	}
	checkNumber(t, n)
	if again, err := Parse(n.E164()); err != nil || again != n {
		t.Errorf("%s parses to %s, %v", n.E164(), again.E164(), err)
	}
	checkSame(t, n, n)
}

// checkNormalized checks that an input parses as its ASCII form does, and is refused if it has none.
func checkNormalized(t *testing.T, input string, n Number, err error) {
	t.Helper()
	input = strings.TrimFunc(input, isBlank)
	if utf8.RuneCountInString(input) > maxInput {
		if reasonOf(err) != ReasonTooLong {
			t.Errorf("%q is not refused as too long: %v", input, err)
		}
		return
	}
	foreign := false
	ascii := strings.Map(func(r rune) rune {
		c, known := asciiForm(r)
		foreign = foreign || !known
		return c
	}, input)
	if foreign {
		if reasonOf(err) == "" {
			t.Errorf("%q is accepted as %s", input, n.E164())
		}
		return
	}
	want, wantErr := Parse(ascii)
	if n != want || reasonOf(err) != reasonOf(wantErr) {
		t.Errorf("%q parses to %s, %v, and its form %q to %s, %v", input, n.E164(), err, ascii, want.E164(), wantErr)
	}
}

// pastedCharacters are the documented characters that have an ASCII form, beside the digits, spaces and dashes of Unicode.
var pastedCharacters = map[rune]rune{
	'\u00ad': ' ', '\u061c': ' ', '\ufeff': ' ', '\u2212': '-', '\uff0b': '+', '\uff08': '(', '\uff09': ')', '\uff0e': '.', '\uff0f': '/',
	'\u200b': ' ', '\u200c': ' ', '\u200d': ' ', '\u200e': ' ', '\u200f': ' ',
	'\u202a': ' ', '\u202b': ' ', '\u202c': ' ', '\u202d': ' ', '\u202e': ' ',
	'\u2060': ' ', '\u2061': ' ', '\u2062': ' ', '\u2063': ' ', '\u2064': ' ',
	'\u2066': ' ', '\u2067': ' ', '\u2068': ' ', '\u2069': ' ',
}

// asciiForm returns the ASCII character that r stands for, by the tables and names of Unicode, and whether there is one.
func asciiForm(r rune) (rune, bool) {
	switch c, listed := pastedCharacters[r]; {
	case r < utf8.RuneSelf:
		return r, true
	case listed:
		return c, true
	case unicode.Is(unicode.Zs, r):
		return ' ', true
	case unicode.Is(unicode.Pd, r):
		return '-', true
	case unicode.IsDigit(r):
		words := strings.Fields(runenames.Name(r))
		value := slices.Index(digitNames, words[len(words)-1])
		return '0' + rune(value), value >= 0
	}
	return 'a', false
}

// inOtherScripts returns the digits in scripts that the bytes of seed choose, with characters between them that are dropped.
func inOtherScripts(digits []byte, seed string) string {
	zeros, between := []rune("0٠۰०০๐０𝟎"), []rune("\u202a\u00a0\u2011\u200e－")
	var text strings.Builder
	for i, c := range digits {
		text.WriteRune(zeros[int(seed[i])%len(zeros)] + rune(c-'0'))
		if seed[i]%4 == 0 {
			text.WriteRune(between[int(seed[i])%len(between)])
		}
	}
	return text.String()
}

func FuzzReported(f *testing.F) {
	for _, seed := range []string{
		"", "+", "12345", "4915112345678", "+4915112345678", "5215512345678", "88801234567", "0123456",
		"US.13491208655302741918", "4915112345678\n", "1234567890123456",
	} {
		f.Add(seed)
	}
	wa, tg := regexp.MustCompile(`\A[1-9]\d{4,14}\z`), regexp.MustCompile(`\A\+?[1-9]\d{6,14}\z`)
	f.Fuzz(func(t *testing.T, input string) {
		anonymous := strings.HasPrefix(strings.TrimPrefix(input, "+"), "888")
		n, err := ParseWhatsApp(input)
		if (err == nil) != (wa.MatchString(input) && !anonymous) {
			t.Errorf("WhatsApp %q: %v", input, err)
		}
		checkReported(t, input, n, err)
		n, err = ParseTelegram(input)
		if (err == nil) != (tg.MatchString(input) && !anonymous) {
			t.Errorf("Telegram %q: %v", input, err)
		}
		checkReported(t, input, n, err)
	})
}

func FuzzSame(f *testing.F) {
	f.Add(uint64(5511987654321), uint64(551187654321))
	f.Add(uint64(525512345678), uint64(5215512345678))
	f.Add(uint64(541123456789), uint64(5491123456789))
	f.Add(uint64(551123456789), uint64(5511923456789))
	f.Add(uint64(4915112345678), uint64(12015550123))
	f.Fuzz(func(t *testing.T, x, y uint64) {
		// Random pairs are rarely the same line, so each is also tried in the three countries and with its own variants.
		a, b := fuzzNumber(x), fuzzNumber(y)
		checkSame(t, a, b)
		for _, code := range []uint64{52e10, 521e10, 54e10, 549e10, 55e10, 55e11} {
			c, d := fuzzNumber(code+x%1e11), fuzzNumber(code+y%1e10)
			checkSame(t, c, d)
			for _, v := range Variants(c) {
				checkSame(t, v, d)
				checkSame(t, v, c)
			}
		}
	})
}

// fuzzNumber converts any value to a number of 5 to 15 digits.
func fuzzNumber(x uint64) Number {
	x %= 1e15
	if x < 1e4 {
		x += 1e4
	}
	n, _ := fromDigits(strconv.FormatUint(x, 10))
	return n
}

func checkNumber(t *testing.T, n Number) {
	t.Helper()
	e164 := n.E164()
	if len(e164) < 6 || len(e164) > 16 || e164[1] == '0' {
		t.Errorf("%q is not in E.164 form", e164)
	}
	if back, err := FromE164(e164); err != nil || back != n {
		t.Errorf("%q does not survive a store: %v", e164, err)
	}
	if fourDigits.MatchString(n.String()) || len(n.String()) != len(e164) {
		t.Errorf("%q is masked as %q", e164, n.String())
	}
}

func checkReported(t *testing.T, input string, n Number, err error) {
	t.Helper()
	if err != nil {
		checkRefusal(t, n, err)
		return
	}
	checkNumber(t, n)
	if n.Digits() != strings.TrimPrefix(input, "+") {
		t.Errorf("%q is not kept as reported", input)
	}
}

func checkRefusal(t *testing.T, n Number, err error) {
	t.Helper()
	if !n.IsZero() || reasonOf(err) == "" || fourDigits.MatchString(err.Error()) {
		t.Errorf("refusal %q with number %q: no reason, a number, or digits in the text", err, n.E164())
	}
}
