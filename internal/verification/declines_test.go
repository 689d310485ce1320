package verification

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// newDeclined returns the state of a request of that number and creation, declined at noon.
func newDeclined(t *testing.T, id, number string, created time.Time) *Request {
	t.Helper()
	claimed, err := phone.FromE164(number)
	if err != nil {
		t.Fatal(err)
	}
	return &Request{ID: id, Phone: claimed, CreatedAt: created, Phase: Expired, Hints: []Hint{{Kind: HintDeclined, At: noon}}}
}

func TestAdmissions_states(t *testing.T) {
	const mobile, other = "+5215512345678", "+525512345678" // one line
	before := noon.Add(-time.Minute)
	pending := func(created time.Time) *Request {
		r := newDeclined(t, "a", mobile, created)
		r.Phase, r.Hints = Pending, nil
		return r
	}
	for name, c := range map[string]struct {
		states  func(a *Admissions)
		refuses bool
	}{
		"none":                  {func(*Admissions) {}, false},
		"one that is pending":   {func(a *Admissions) { a.AddState(pending(before)) }, false},
		"one that was declined": {func(a *Admissions) { a.AddState(newDeclined(t, "a", mobile, before)) }, true},
		"twice the same": {func(a *Admissions) {
			a.AddState(newDeclined(t, "a", mobile, before))
			a.AddState(newDeclined(t, "a", mobile, before))
		}, true},
		"its earlier state, brought late":  {func(a *Admissions) { a.AddState(newDeclined(t, "a", mobile, before)); a.AddState(pending(before)) }, true},
		"a later request with the same id": {func(a *Admissions) { a.AddState(newDeclined(t, "a", mobile, before)); a.AddState(pending(noon)) }, false},
		"one that was deleted":             {func(a *Admissions) { a.AddState(newDeclined(t, "a", mobile, before)); a.RemoveState("a") }, false},
		"one that is forgotten, and changes later": {func(a *Admissions) {
			a.AddState(newDeclined(t, "a", mobile, before))
			a.Forget()
			a.AddState(newDeclined(t, "a", mobile, before))
		}, false},
		"one that was declined after the others were forgotten": {func(a *Admissions) {
			a.AddState(newDeclined(t, "a", mobile, before))
			a.Forget()
			a.AddState(newDeclined(t, "a", mobile, before.Add(time.Second)))
		}, true},
		"another of the number was deleted": {func(a *Admissions) {
			a.AddState(newDeclined(t, "a", mobile, before))
			a.AddState(newDeclined(t, "b", other, before))
			a.RemoveState("b")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a := NewAdmissions()
			c.states(a)
			limits := Limits{DeclineCooldown: time.Hour}
			refusal := a.Refuse(newCounted(t, "new", "web", other), limits, noon.Add(time.Hour-time.Microsecond))
			if c.refuses {
				g.Expect(refusal).To(MatchError(RateLimited(LimitDeclined, 0)))
			} else {
				g.Expect(refusal).NotTo(HaveOccurred())
			}
			g.Expect(a.Refuse(newCounted(t, "new", "web", other), limits, noon.Add(time.Hour))).To(Succeed())
			g.Expect(a.Refuse(newCounted(t, "new", "web", other), Limits{}, noon)).To(Succeed())
			g.Expect(a.Refuse(newCounted(t, "new", "web", "+4915112345678"), limits, noon)).To(Succeed())
			a.RemoveState("a")
			g.Expect(a.declined.byID).To(BeEmpty())
			g.Expect(a.declined.byNumber).To(BeEmpty())
		})
	}
}

func TestEvictableAt_ofADeclinedRequest(t *testing.T) {
	g := NewWithT(t)
	r := newDeclined(t, "a", "+4915112345678", noon.Add(-time.Minute))
	r.ExpiresAt = noon.Add(9 * time.Minute)
	lapsed := r.ExpiresAt.Add(ExpiryGrace)
	g.Expect(r.EvictableAt(Limits{})).To(Equal(lapsed))
	g.Expect(r.EvictableAt(Limits{DeclineCooldown: time.Minute})).To(Equal(lapsed), "the later of both")
	g.Expect(r.EvictableAt(Limits{DeclineCooldown: time.Hour})).To(Equal(noon.Add(time.Hour)))
	r.Delivery.NextAttemptAt = noon
	g.Expect(r.EvictableAt(Limits{DeclineCooldown: time.Hour})).To(BeZero(), "its event is still to be sent")
	r.Delivery, r.Hints = Delivery{}, []Hint{{Kind: HintCanceled, At: noon}}
	g.Expect(r.EvictableAt(Limits{DeclineCooldown: time.Hour})).To(Equal(lapsed))
}
