package report

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestScrub(t *testing.T) {
	s := newScrubber("shop", "ns/shop", "phoneproof-shop", "api-key")
	for text, want := range map[string]string{
		"":                         "",
		"webhook delivery failed":  "webhook delivery failed",
		"Secret shop, key api-key": "Secret shop, key api-key",
		`{"time":"2027-01-31T09:30:00.5+01:00","status":503}`: `{"time":"2027-01-31T09:30:00.5+01:00","status":503}`,
		"took 1.25s, 12ms and 1234":                           "took 1.25s, 12ms and 1234",
		"hunter2 and s3cret":                                  "*** and ***",
		"call +4915112345678 now":                             "call *** now",
		"call 0151 123 45 678":                                "call ***",
		"number 0151-123-45678.":                              "number ***.",
		"form 0151+1234+5678 end":                             "form *** end",
		"call-0151-1234-5678 now":                             "call-*** now",
		"call-0151 1234 5678":                                 "call-***",
		"code-482-915":                                        "code-***",
		"call-0151-1234-x":                                    "***",
		`a log 0151\t1234\t5678 end`:                          "a log *** end",
		`0151"1234|5678=9`:                                    "***",
		"one 12345":                                           "one ***",
		"list of 1,2,3":                                       "list of ***",
		"vraaaaaaaaaaaaaaaaaaaaaaaa":                          "vraaaaaaaaaaaaaaaaaaaaaaaa",
		"vraaaaaaaaaaaaaaaaaaaaaaa1":                          "***",
		"host db.internal.example refused":                    "host *** refused",
		"postgres://user:secret@db/x":                         "postgres:***:***",
		"https://example.com/init?token=x":                    "https:***=x",
		"spec.webhook.events and webhook.request.example":     "spec.webhook.events and ***",
		"/api/verify/init":                                    "/api/verify/init",
		"/api/verify/hunter2":                                 "***",
		"tab\tand\nlines stay":                                "tab\tand\n*** stay",
	} {
		t.Run(text, func(t *testing.T) {
			NewWithT(t).Expect(s.scrub(text)).To(Equal(want))
		})
	}
}

func TestDescribeImage(t *testing.T) {
	for image, want := range map[string]string{
		"ghcr.io/phoneproof/phoneproof:0.1.0":                                       "***:0.1.0",
		"registry.example:5000/bank/phoneproof:0.1.0@sha256:0123456789abcdef012345": "***:0.1.0",
	} {
		NewWithT(t).Expect(describeImage(image, newScrubber())).To(Equal(want), image)
	}
}

func FuzzScrub(f *testing.F) {
	f.Add("+49 151 123 45 678")
	f.Add("a\\\"b ***")
	f.Fuzz(func(t *testing.T, text string) {
		const canary = "q7x9k"
		s := newScrubber()
		for _, separated := range []string{text + " " + canary, canary + " " + text, "\"" + text + canary} {
			if clean := s.scrub(separated); len(clean) > 3*len(separated)+3 || contains(clean, canary) {
				t.Errorf("%q became %q", separated, clean)
			}
		}
	})
}

func contains(text, part string) bool {
	for i := 0; i+len(part) <= len(text); i++ {
		if text[i:i+len(part)] == part {
			return true
		}
	}
	return false
}
