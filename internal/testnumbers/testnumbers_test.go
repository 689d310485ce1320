package testnumbers_test

import (
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/testnumbers"
)

// TestAll_areFictional: a number that a user could have must never be one of them, and init has to take each.
func TestAll_areFictional(t *testing.T) {
	g := NewWithT(t)
	reserved := regexp.MustCompile(`^\+1[2-9][0-9]{2}55501[0-9]{2}$`)
	seen := map[testnumbers.Outcome]bool{}
	for _, e := range testnumbers.All() {
		g.Expect(e.Number.E164()).To(MatchRegexp(reserved.String()))
		g.Expect(phone.Parse(e.Number.E164())).To(Equal(e.Number), "init accepts it")
		g.Expect(phone.Canonical(e.Number)).To(Equal(e.Number), "it has one form")
		g.Expect(seen[e.Outcome]).To(BeFalse(), "one number for each outcome")
		seen[e.Outcome] = true
		got, found := testnumbers.OutcomeOf(e.Number)
		g.Expect(found).To(BeTrue())
		g.Expect(got).To(Equal(e.Outcome))
		g.Expect(e.Means).NotTo(BeEmpty())
	}
	g.Expect(seen).To(HaveLen(6))
}

func TestOutcomeOf_takesNoOther(t *testing.T) {
	g := NewWithT(t)
	for _, other := range []string{"+12025550109", "+12025550116", "+491711234567", "+2025550110"} {
		n, err := phone.FromE164(other)
		g.Expect(err).NotTo(HaveOccurred())
		_, found := testnumbers.OutcomeOf(n)
		g.Expect(found).To(BeFalse(), other)
	}
	_, found := testnumbers.OutcomeOf(phone.Number{})
	g.Expect(found).To(BeFalse())
}

func TestOutcome_times(t *testing.T) {
	type times struct {
		Life, After time.Duration
		Played      bool
	}
	NewWithT(t).Expect(func() map[testnumbers.Outcome]times {
		got := map[testnumbers.Outcome]times{}
		for _, e := range testnumbers.All() {
			after, played := e.Outcome.After()
			got[e.Outcome] = times{e.Outcome.TTL(10 * time.Minute), after, played}
		}
		return got
	}()).To(Equal(map[testnumbers.Outcome]times{
		testnumbers.VerifiedAtOnce: {10 * time.Minute, 0, true},
		testnumbers.VerifiedLater:  {10 * time.Minute, 5 * time.Second, true},
		testnumbers.Expired:        {10 * time.Second, 0, false},
		testnumbers.NumberHidden:   {10 * time.Second, 0, true},
		testnumbers.OtherNumber:    {10 * time.Second, 0, true},
		testnumbers.Declined:       {10 * time.Minute, 0, true},
	}))
	NewWithT(t).Expect(testnumbers.Expired.TTL(time.Second)).To(Equal(time.Second), "no longer than the project's")
}
