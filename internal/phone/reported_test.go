package phone

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestParseReported_condition(t *testing.T) {
	for _, tc := range []struct {
		name, input        string
		whatsApp, telegram Reason
	}{
		{"bare digits", "4915112345678", "", ""},
		{"plus", "+4915112345678", ReasonMalformed, ""},
		{"old Mexican form", "5215512345678", "", ""},
		{"invalid for libphonenumber", "15550100000", "", ""},
		{"5 digits", "12345", "", ReasonMalformed},
		{"6 digits", "123456", "", ReasonMalformed},
		{"7 digits", "6834000", "", ""},
		{"15 digits", "878101234567890", "", ""},
		{"16 digits", "8781012345678901", ReasonMalformed, ReasonMalformed},
		{"4 digits", "1234", ReasonMalformed, ReasonMalformed},
		{"nothing", "", ReasonMalformed, ReasonMalformed},
		{"plus alone", "+", ReasonMalformed, ReasonMalformed},
		{"two pluses", "++4915112345678", ReasonMalformed, ReasonMalformed},
		{"leading zero", "0151123456", ReasonMalformed, ReasonMalformed},
		{"separator", "49 15112345678", ReasonMalformed, ReasonMalformed},
		{"line feed at the end", "4915112345678\n", ReasonMalformed, ReasonMalformed},
		{"business-scoped user id", "US.13491208655302741918", ReasonMalformed, ReasonMalformed},
		{"group id", "4915112345678@g.us", ReasonMalformed, ReasonMalformed},
		{"Arabic-Indic digits", "٤٩١٥١١٢", ReasonMalformed, ReasonMalformed},
		{"anonymous Telegram number", "88801234567", ReasonAnonymous, ReasonAnonymous},
		{"American toll-free is not +888", "18882345678", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			n, err := ParseWhatsApp(tc.input)
			g.Expect(reasonOf(err)).To(Equal(tc.whatsApp), "WhatsApp")
			g.Expect(err == nil).To(Equal(n.Digits() == tc.input && tc.input != ""), "kept as reported")
			n, err = ParseTelegram(tc.input)
			g.Expect(reasonOf(err)).To(Equal(tc.telegram), "Telegram")
			g.Expect(n.IsZero()).To(Equal(err != nil))
		})
	}
}

func TestParseTelegram_plusAnonymous(t *testing.T) {
	_, err := ParseTelegram("+88801234567")
	NewWithT(t).Expect(reasonOf(err)).To(Equal(ReasonAnonymous))
}
