package canary_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/chaos/canary"
)

func TestCanaries(t *testing.T) {
	c := canary.New()
	c.Secret("the webhook's secret", "webhook SECRET")
	c.Code("ABCD-EF12-3456-7890")
	c.Number("+4915112345678")
	for text, want := range map[string][]string{
		"nothing\nat all":                  nil,
		"first\nwith webhook SECRET in it": {"log:2: the webhook's secret"},
		"ABCD-EF12-3456-7890":              {"log:1: a code"},
		"code=abcdef1234567890":            {"log:1: a code"},
		"xabcdef1234567890x":               {"log:1: a code"},
		"ABCD-EF12-3456-7891":              nil,
		"ABCD EF12":                        nil,
		`"from":"4915112345678"`:           {"log:1: a number"},
		"+4915112345678 and ABCD-EF12-3456-7890 and webhook SECRET": {
			"log:1: the webhook's secret", "log:1: a code", "log:1: a number",
		},
		"00004915112345678999": {"log:1: a number"},
		"49151***78":           nil,
	} {
		t.Run(text, func(t *testing.T) {
			NewWithT(t).Expect(c.Search("log", []byte(text), true)).To(Equal(want))
		})
	}
	NewWithT(t).Expect(c.Search("object", []byte("4915112345678"), false)).To(BeEmpty(), "numbers are allowed there")
}
