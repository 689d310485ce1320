package verification

import (
	"crypto/sha256"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
)

func TestWaits_refuseByTheLongest(t *testing.T) {
	for name, c := range map[string]struct {
		waits Waits
		limit string
	}{
		"all admit":         {Waits{}, ""},
		"times of the past": {Waits{Key: -1, Subject: -2}, ""},
		"the key":           {Waits{Key: 2, PhoneNumber: 1}, LimitPerKey},
		"the number":        {Waits{Key: 1, PhoneNumber: 2, Prefix: 1}, LimitPerPhoneNumber},
		"the prefix":        {Waits{PhoneNumber: 1, Prefix: 2, Subject: 1}, LimitPerPrefix},
		"the subject":       {Waits{Key: -1, Subject: 1}, LimitPerSubject},
		"the first of two":  {Waits{Key: 3, Subject: 3}, LimitPerKey},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := c.waits.Refusal()
			if c.limit == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			w := c.waits
			g.Expect(err).To(And(
				MatchError(&Error{Code: CodeRateLimited}), HaveField("Limit", c.limit),
				HaveField("RetryAfter", max(w.Key, w.PhoneNumber, w.Prefix, w.Subject)),
			))
		})
	}
}

func TestPrefixRate_Group(t *testing.T) {
	g := NewWithT(t)
	of := func(number string, digits int) string {
		n, err := phone.FromE164(number)
		g.Expect(err).NotTo(HaveOccurred())
		return PrefixRate{Rate: Rate{Requests: 1, Period: time.Second}, Digits: digits}.Group(New{KeyName: "shop", Phone: n}).Prefix
	}
	g.Expect(of("+4915123456789", 6)).To(Equal("491512"))
	g.Expect(of("+4915123456789", 14)).To(Equal("4915123456789"))
	g.Expect(of("+5215512345678", 6)).To(Equal(of("+525512345678", 6)), "the forms of one number have one prefix")
	n, err := phone.FromE164("+4915123456789")
	g.Expect(err).NotTo(HaveOccurred())
	limited := PrefixRate{Rate: Rate{Requests: 1, Period: time.Second}, Digits: 6}
	g.Expect(limited.Group(New{KeyName: "shop", Phone: n})).NotTo(Equal(limited.Group(New{KeyName: "bar", Phone: n})), "keys share no range")
	g.Expect(PrefixRate{Digits: 6}.Group(New{KeyName: "shop", Phone: n})).To(BeZero(), "nothing is limited")
}

func TestSubjectHash(t *testing.T) {
	g := NewWithT(t)
	project, key := NewCodeSpace("shop/checkout"), sha256.Sum256([]byte("key"))
	hash := project.SubjectHash(key, "203.0.113.7")
	g.Expect(hash).To(MatchRegexp("^[0-9a-f]{24}$"))
	g.Expect(project.SubjectHash(key, "203.0.113.7")).To(Equal(hash))
	for name, other := range map[string]string{
		"another subject": project.SubjectHash(key, "203.0.113.8"),
		"another key":     project.SubjectHash(sha256.Sum256([]byte("other")), "203.0.113.7"),
		"another project": NewCodeSpace("shop/other").SubjectHash(key, "203.0.113.7"),
	} {
		g.Expect(other).NotTo(Equal(hash), name)
	}
}
