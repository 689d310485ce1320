package verification

import (
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// TestTestNumbers_areFictional: a number that a user could have must never be one of them, and init has to take each.
func TestTestNumbers_areFictional(t *testing.T) {
	g := NewWithT(t)
	reserved := regexp.MustCompile(`^\+1[2-9][0-9]{2}55501[0-9]{2}$`)
	seen := map[TestOutcome]bool{}
	for _, e := range TestNumbers() {
		g.Expect(e.Number.E164()).To(MatchRegexp(reserved.String()))
		g.Expect(phone.Parse(e.Number.E164())).To(Equal(e.Number), "init accepts it")
		g.Expect(phone.Canonical(e.Number)).To(Equal(e.Number), "it has one form")
		g.Expect(seen[e.Outcome]).To(BeFalse(), "one number for each outcome")
		seen[e.Outcome] = true
		got, found := findTestOutcome(e.Number)
		g.Expect(found).To(BeTrue())
		g.Expect(got).To(Equal(e.Outcome))
		g.Expect(e.Means).NotTo(BeEmpty())
	}
	g.Expect(seen).To(HaveLen(9))
}

func TestFindTestOutcome_takesNoOther(t *testing.T) {
	g := NewWithT(t)
	for _, other := range []string{"+12025550109", "+12025550119", "+491711234567", "+2025550110"} {
		n, err := phone.FromE164(other)
		g.Expect(err).NotTo(HaveOccurred())
		_, found := findTestOutcome(n)
		g.Expect(found).To(BeFalse(), other)
	}
	_, found := findTestOutcome(phone.Number{})
	g.Expect(found).To(BeFalse())
}

func TestTestOutcome_times(t *testing.T) {
	type times struct {
		Life, After time.Duration
		Played      bool
	}
	NewWithT(t).Expect(func() map[TestOutcome]times {
		got := map[TestOutcome]times{}
		for _, e := range TestNumbers() {
			after, played := e.Outcome.after()
			got[e.Outcome] = times{e.Outcome.ttl(10 * time.Minute), after, played}
		}
		return got
	}()).To(Equal(map[TestOutcome]times{
		TestVerifiedAtOnce: {10 * time.Minute, 0, true},
		TestVerifiedLater:  {10 * time.Minute, 5 * time.Second, true},
		TestExpired:        {10 * time.Second, 0, false},
		TestNumberHidden:   {10 * time.Second, 0, true},
		TestOtherNumber:    {10 * time.Second, 0, true},
		TestDeclined:       {10 * time.Minute, 0, true},
		TestCodeNotSent:    {10 * time.Second, 0, true},
		TestCodeUnknown:    {10 * time.Second, 0, false},
		TestCodesLimited:   {10 * time.Second, 0, false},
	}))
	NewWithT(t).Expect(TestExpired.ttl(time.Second)).To(Equal(time.Second), "no longer than the project's")
}
