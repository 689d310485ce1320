package phone

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	"golang.org/x/text/unicode/runenames"
)

func TestParse_normalizesPastedNumbers(t *testing.T) {
	const want = "+4915112345678"
	for name, input := range map[string]string{
		"embedding and its end, as contacts on iOS have them": "\u202a+49 151 12345678\u202c",
		"override and its end":                                "\u202d+4915112345678\u202c",
		"isolate and its end":                                 "\u2068+49 151 12345678\u2069",
		"left-to-right mark":                                  "\u200e+4915112345678",
		"right-to-left mark":                                  "\u200f+4915112345678",
		"Arabic letter mark":                                  "\u061c+4915112345678",
		"override inside":                                     "+4915112\u202d345678",
		"byte order mark":                                     "\ufeff+4915112345678",
		"zero width space":                                    "+49\u200b15112345678",
		"zero width joiners":                                  "+49\u200c151\u200d12345678",
		"word joiner":                                         "+49\u206015112345678",
		"invisible plus and separator":                        "+49\u2064151\u206312345678",
		"soft hyphen":                                         "+49151\u00ad12345678",
		"no-break space":                                      "+49\u00a0151\u00a012345678",
		"narrow no-break space":                               "+49\u202f151\u202f12345678",
		"figure, thin and hair space":                         "+49\u2007151\u200912345\u200a678",
		"ideographic space":                                   "+49\u300015112345678",
		"non-breaking hyphen":                                 "+49\u2011151\u201112345678",
		"hyphen, figure dash, en dash and em dash":            "+49\u2010151\u2012123\u2013456\u201478",
		"minus sign":                                          "+49\u2212151\u221212345678",
		"full-width hyphen":                                   "+49－151－12345678",
		"full-width":                                          "＋４９（１５１）１２３．４５／６７８",
		"full-width digit inside":                             "+49151１2345678",
		"Arabic-Indic":                                        "+٤٩١٥١١٢٣٤٥٦٧٨",
		"Arabic-Indic, right to left":                         "\u200f٤٩ ١٥١ ١٢٣٤٥٦٧٨\u200f",
		"Persian":                                             "+۴۹ ۱۵۱ ۱۲۳۴۵۶۷۸",
		"Devanagari":                                          "+४९ १५१ १२३४५६७८",
		"Bengali":                                             "+৪৯১৫১১২৩৪৫৬৭৮",
		"Thai":                                                "+๔๙๑๕๑๑๒๓๔๕๖๗๘",
		"mathematical bold":                                   "+𝟒𝟗𝟏𝟓𝟏𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖",
		"mixed scripts":                                       "+٤۹ १५1 １２३٤۵678",
		"32 characters in 128 bytes":                          "𝟒𝟗𝟏𝟓𝟏𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖" + strings.Repeat("\U00010ead", 19),
		"line feed at the end":                                "+4915112345678\n",
		"line end of Windows":                                 "+4915112345678\r\n",
		"tabs around, as cells of a table have them":          "\t+4915112345678\t",
		"line feed within marks":                              "\u202a\n+4915112345678\n\u202c",
		"blanks around, which do not count":                   strings.Repeat(" \t\r\n\u00a0\u200e", 40) + "+4915112345678" + strings.Repeat("\n", 40),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n, err := Parse(input)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(n.E164()).To(Equal(want))
		})
	}
}

// digitNames are the words that end the names of digits in Unicode.
var digitNames = strings.Fields("ZERO ONE TWO THREE FOUR FIVE SIX SEVEN EIGHT NINE")

// The names of Unicode are the oracle: each digit is named by its value, and each of the others by what it is.
func TestNormalizeRune_everyRune(t *testing.T) {
	g := NewWithT(t)
	counts := map[byte]int{}
	for r := rune(utf8.RuneSelf); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		text := string(r)
		c, size := normalizeRune(text)
		g.Expect(size).To(Equal(len(text)), "%U", r)
		counts[c]++
		name := runenames.Name(r)
		switch {
		case c == unknownRune:
			g.Expect(unicode.In(r, unicode.Nd, unicode.Zs, unicode.Pd)).To(BeFalse(), "%U %s", r, name)
		case isDigit(c):
			g.Expect(name).To(HaveSuffix("DIGIT "+digitNames[c-'0']), "%U", r)
		case c == '-':
			g.Expect(name).To(MatchRegexp("DASH|HYPHEN|MINUS|HORIZONTAL BAR|MAQAF"), "%U", r)
		case c == ' ':
			g.Expect(unicode.In(r, unicode.Zs, unicode.Cf)).To(BeTrue(), "%U %s", r, name)
		default:
			g.Expect(name).To(HavePrefix("FULLWIDTH "), "%U", r)
		}
	}
	digits := 0
	for c := byte('0'); c <= '9'; c++ {
		g.Expect(counts[c]).To(Equal(counts['0']), "each script has ten digits")
		digits += counts[c]
	}
	g.Expect(digits).To(BeNumerically(">=", 600))
	for _, c := range []byte("+()./") {
		g.Expect(counts[c]).To(Equal(1), "%c", c)
	}
}

func TestParse_reportedNumbersAreNotNormalized(t *testing.T) {
	g := NewWithT(t)
	for _, text := range []string{"\u202a4915112345678\u202c", "٤٩١٥١١٢٣٤٥٦٧٨", "４９15112345678", "49\u00a015112345678"} {
		_, err := ParseWhatsApp(text)
		g.Expect(reasonOf(err)).To(Equal(ReasonMalformed), "%q", text)
		_, err = ParseTelegram(text)
		g.Expect(reasonOf(err)).To(Equal(ReasonMalformed), "%q", text)
		_, err = FromE164("+" + text)
		g.Expect(reasonOf(err)).To(Equal(ReasonMalformed), "%q", text)
	}
}

func TestNormalizeRune_costsNoAllocation(t *testing.T) {
	g := NewWithT(t)
	text := "\u202a+٤٩\u00a0१५१\u2011１２345678\u202c"
	g.Expect(testing.AllocsPerRun(100, func() {
		for rest := text; rest != ""; {
			_, size := normalizeRune(rest)
			rest = rest[size:]
		}
	})).To(BeZero())
}
