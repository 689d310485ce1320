package phone

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestParse_accepts(t *testing.T) {
	for _, tc := range []struct{ name, input, want string }{
		{"plus", "+4915112345678", "+4915112345678"},
		{"no plus", "4915112345678", "+4915112345678"},
		{"every separator", "+49 (151)/123.45-678", "+4915112345678"},
		{"plus inside parentheses", "(+49) 30 901820", "+4930901820"},
		{"plus lost in form encoding", " 4915112345678", "+4915112345678"},
		{"longest text", "+4-9-1-5-1-1-2-3-4-5-6-7-8------", "+4915112345678"},
		{"landline", "+49 30 901820", "+4930901820"},
		{"trunk prefix after the country code", "+44 (0)20 7946 0000", "+442079460000"},
		{"Italian landline keeps its zero", "+39 06 6982", "+39066982"},
		{"seven digits, Niue", "+683 4000", "+6834000"},
		{"+1 United States", "+1 201 555 0123", "+12015550123"},
		{"+1 toll-free", "+1 800 234 5678", "+18002345678"},
		{"+1-242 Bahamas", "+1-242-359-1234", "+12423591234"},
		{"+7 Russia", "+7 912 345 67 89", "+79123456789"},
		{"+7 Kazakhstan", "+7 701 234 5678", "+77012345678"},
		{"Mexico", "+52 55 1234 5678", "+525512345678"},
		{"Mexico, the old 1 is kept", "+52 1 55 1234 5678", "+5215512345678"},
		{"Brazil with the ninth digit", "+55 11 98765 4321", "+5511987654321"},
		{"Brazil without the ninth digit is kept", "+55 11 8765 4321", "+551187654321"},
		{"Brazil landline", "+55 11 2345 6789", "+551123456789"},
		{"Argentina with 9", "+54 9 11 2345 6789", "+5491123456789"},
		{"Argentina without 9", "+54 11 2345 6789", "+541123456789"},
		{"Argentina dialled at home", "+54 11 15 2345 6789", "+5491123456789"},
		{"shared cost", "+49 180 1 234567", "+491801234567"},
		{"universal access number", "+49 18 500123456", "+4918500123456"},
		{"personal number", "+44 70 1234 5678", "+447012345678"},
		{"VoIP", "+44 56 1234 5678", "+445612345678"},
		{"satellite +870", "+870 301234567", "+870301234567"},
		{"universal personal number +878", "+878 101234567890", "+878101234567890"},
		{"satellite +881", "+881 612345678", "+881612345678"},
		{"global network +882", "+882 3421234", "+8823421234"},
		{"global network +883", "+883 510012345", "+883510012345"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			n, err := Parse(tc.input)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(n.E164()).To(Equal(tc.want))
			g.Expect("+" + n.Digits()).To(Equal(tc.want))
			g.Expect(Parse(n.E164())).To(Equal(n))
			g.Expect(FromE164(n.E164())).To(Equal(n))
		})
	}
}

func TestParse_refuses(t *testing.T) {
	for _, tc := range []struct {
		name, input string
		want        Reason
	}{
		{"nothing", "", ReasonEmpty},
		{"plus alone", "+", ReasonEmpty},
		{"separators alone", " (-) ", ReasonEmpty},
		{"national", "030 901820", ReasonNoCountryCode},
		{"plus zero", "+030901820", ReasonNoCountryCode},
		{"international prefix", "0049 30 901820", ReasonNoCountryCode},
		{"plus and international prefix", "+0049 30 901820", ReasonNoCountryCode},
		{"American international prefix", "011 49 30 901820", ReasonNoCountryCode},
		{"zeros alone", "0", ReasonNoCountryCode},
		{"16 digits", "+4915112345678901", ReasonTooLong},
		{"too long for its country", "+1 201 555 01234", ReasonTooLong},
		{"33 characters", "+49-1-5-1-1-2-3-4-5-6-7-8--------", ReasonTooLong},
		{"huge", string(make([]byte, 1<<20)), ReasonTooLong},
		{"country code alone", "+49", ReasonTooShort},
		{"7 digits", "+1 555 123", ReasonTooShort},
		{"without area code", "+1 555 0123", ReasonTooShort},
		{"emergency number", "112", ReasonTooShort},
		{"short code", "+1 32665", ReasonTooShort},
		{"reserved area code", "+1 (555) 010-0000", ReasonInvalid},
		{"letters", "+1-800-FLOWERS", ReasonNotDigits},
		{"word", "unknown", ReasonNotDigits},
		{"two pluses", "++4915112345678", ReasonNotDigits},
		{"plus inside", "49+15112345678", ReasonNotDigits},
		{"percent-encoded plus", "%2B4915112345678", ReasonNotDigits},
		{"star code", "*31#4915112345678", ReasonNotDigits},
		{"underscore", "49_15112345678", ReasonNotDigits},
		{"brackets", "[49]15112345678", ReasonNotDigits},
		{"superscript digit", "+49²15112345678", ReasonNotASCII},
		{"circled digit", "+4915①12345678", ReasonNotASCII},
		{"Chinese numeral", "+四九15112345678", ReasonNotASCII},
		{"Roman numeral", "+Ⅳ915112345678", ReasonNotASCII},
		{"Cyrillic letter like a zero", "+4915112345О78", ReasonNotASCII},
		{"combining mark", "+4\u030115112345678", ReasonNotASCII},
		{"full-width letter", "+4915112345678ｘ12", ReasonNotASCII},
		{"full-width colon", "tel：+4915112345678", ReasonNotDigits},
		{"full-width tilde", "+49～15112345678", ReasonNotASCII},
		{"superscript plus", "⁺4915112345678", ReasonNotASCII},
		{"emoji", "☎+4915112345678", ReasonNotASCII},
		{"line separator", "+49\u202815112345678", ReasonNotASCII},
		{"next line, a control character outside ASCII", "+49\u008515112345678", ReasonNotASCII},
		{"variation selector", "+49\ufe0f15112345678", ReasonNotASCII},
		{"replacement character", "+49\ufffd15112345678", ReasonNotASCII},
		{"two pluses, the second one full-width", "+＋4915112345678", ReasonNotDigits},
		{"full-width plus inside", "49＋15112345678", ReasonNotDigits},
		{"marks alone", "\u202a\u00a0\u2011\u202c", ReasonEmpty},
		{"national, in Arabic-Indic digits", "٠٣٠ ٩٠١٨٢٠", ReasonNoCountryCode},
		{"33 characters of four bytes", strings.Repeat("𝟏", 33), ReasonTooLong},
		{"33 characters, most of them invisible", "+49" + strings.Repeat("\u200e", 19) + "15112345678", ReasonTooLong},
		{"16 digits of another script", "+" + strings.Repeat("９", 16), ReasonTooLong},
		{"invalid UTF-8", "+49\xff15112345678", ReasonNotASCII},
		{"NUL", "+49\x0015112345678", ReasonControl},
		{"tab inside", "+49\t15112345678", ReasonControl},
		{"line feed inside", "+49151\n12345678", ReasonControl},
		{"two numbers on two lines", "+4915112345678\r\n+4915112345679", ReasonControl},
		{"vertical tab at the end", "+4915112345678\v", ReasonControl},
		{"tabs and line ends alone", "\r\n\t", ReasonEmpty},
		{"DEL", "+4915112345678\x7f", ReasonControl},
		{"tel URI", "tel:+4915112345678", ReasonURI},
		{"WhatsApp address", "whatsapp:+4915112345678", ReasonURI},
		{"tel URI with extension", "tel:+4915112345678;ext=12", ReasonURI},
		{"extension parameter", "+4915112345678;ext=12", ReasonExtension},
		{"x extension", "+1 201 555 0123 x12", ReasonExtension},
		{"ext. extension", "+1 201 555 0123 Ext. 12", ReasonExtension},
		{"hash extension", "+1 201 555 0123#12", ReasonExtension},
		{"dialling pause", "+1 201 555 0123,12", ReasonExtension},
		{"unassigned country code", "+210 1234567", ReasonUnknownCountryCode},
		{"unassigned zone", "+999 12345678", ReasonUnknownCountryCode},
		{"invalid in Germany", "+49 1000 000000", ReasonInvalid},
		{"Brazil, mobile of no area", "+55 20 8765 4321", ReasonInvalid},
		{"Mexico, the old 1 before no number", "+52 1 00 0000 0000", ReasonInvalid},
		{"American premium rate", "+1 900 234 5678", ReasonPremiumRate},
		{"German premium rate", "+49 900 1 234567", ReasonPremiumRate},
		{"international premium rate", "+979 123456789", ReasonPremiumRate},
		{"anonymous Telegram number", "+888 0123 4567", ReasonAnonymous},
		{"anonymous Telegram number, eleven digits", "88801234567", ReasonAnonymous},
		{"international freephone", "+800 1234 5678", ReasonNotSubscriber},
		{"international shared cost", "+808 1234 5678", ReasonNotSubscriber},
		{"pager", "+44 76 4012 3456", ReasonNotSubscriber},
		{"voicemail", "+47 81212345", ReasonNotSubscriber},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			n, err := Parse(tc.input)
			g.Expect(n.IsZero()).To(BeTrue())
			g.Expect(reasonOf(err)).To(Equal(tc.want))
		})
	}
}

func TestParse_refusalCostsNoAllocation(t *testing.T) {
	g := NewWithT(t)
	g.Expect(testing.AllocsPerRun(100, func() { _, _ = Parse("tel:+4915112345678") })).To(BeZero())
}

// reasonOf returns the reason in err, or "" for any other error and for nil.
func reasonOf(err error) Reason {
	if refused, ok := errors.AsType[*Error](err); ok {
		return refused.Reason
	}
	return ""
}
