package verification_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func (w *world) cancel(id string) (verification.Request, error) {
	w.t.Helper()
	return w.service.CancelByClient(w.t.Context(), id, false, everyEvent)
}

// TestCancelByClient_ofAnyState says who wins in each.
func TestCancelByClient_ofAnyState(t *testing.T) {
	for name, test := range map[string]struct {
		session bool
		before  func(w *world, made verification.Initiated)
		code    verification.ErrorCode
	}{
		"pending":                  {},
		"pending, heard of":        {before: func(w *world, made verification.Initiated) { w.receive(w.message(made.Code, "+4915100000000")) }},
		"pending, at its very end": {before: func(w *world, _ verification.Initiated) { w.later(10 * time.Minute) }},
		"of a session":             {session: true},
		"proven":                   {session: true, before: func(w *world, made verification.Initiated) { w.receive(w.message(made.Code, claimed)) }},
		"canceled":                 {before: func(w *world, made verification.Initiated) { _, _ = w.cancel(made.Request.ID) }},
		"canceled on the page": {session: true, before: func(w *world, made verification.Initiated) {
			_, _ = w.service.Cancel(w.t.Context(), made.Request.ID, everyEvent)
		}},
		"verified":                     {before: func(w *world, made verification.Initiated) { w.receive(w.message(made.Code, claimed)) }, code: verification.CodeAlreadyVerified},
		"lapsed":                       {before: func(w *world, _ verification.Initiated) { w.later(time.Hour) }, code: verification.CodeRequestExpired},
		"ended by wrong codes":         {session: true, before: endByWrongCodes, code: verification.CodeRequestExpired},
		"declined, and never canceled": {session: true, before: func(w *world, made verification.Initiated) { w.receive(w.message(made.Code, claimed)); w.notMe(made) }, code: verification.CodeRequestExpired},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var made verification.Initiated
			if test.session {
				made, _ = w.startSession()
			} else {
				made = w.start(w.initiation())
			}
			if test.before != nil {
				test.before(w, made)
			}
			before := w.readStored(made.Request.ID)
			canceled, err := w.cancel(made.Request.ID)
			if test.code != "" {
				w.Expect(codeOf(err)).To(Equal(test.code))
				w.Expect(w.readStored(made.Request.ID)).To(Equal(before), "it stays as it is")
				return
			}
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(canceled.Event().Kind).To(Equal(verification.EventExpired))
			w.Expect(canceled.Event().Hint).To(Equal(verification.HintCanceled))
			w.Expect(canceled.DeclinedAt()).To(BeZero(), "no number cools down")
			for _, number := range []string{claimed, "+4915100000000", ""} {
				w.receive(w.message(made.Code, number))
			}
			w.Expect(w.readStored(made.Request.ID)).To(Equal(canceled), "no message changes it")
		})
	}
}

func endByWrongCodes(w *world, made verification.Initiated) {
	w.receive(w.message(made.Code, claimed))
	for n := range verification.MaxConfirmTries {
		_, _ = w.confirm(made.Request.ID, otherDigits(w.codesOf(&made.Request), n+1))
	}
}

// TestCancelByClient_leavesThePage: what users do on the page of a request without a session is as before.
func TestCancelByClient_leavesThePage(t *testing.T) {
	w := newWorld(t)
	made := w.start(w.initiation())
	_, err := w.service.Cancel(t.Context(), made.Request.ID, everyEvent)
	w.Expect(err).To(MatchError(verification.ErrNoConfirmation))
	seen := &steps{}
	w.service.Observer = seen
	_, err = w.cancel(made.Request.ID)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(seen.all).To(BeEmpty(), "only sessions have steps")
	session, seen := w.startSession()
	for range 2 {
		_, err = w.cancel(session.Request.ID)
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.Expect(seen.all).To(Equal([]verification.SessionStep{verification.SessionStarted, verification.SessionCanceled}))
}

func TestIsStoredID(t *testing.T) {
	g := NewWithT(t)
	for _, id := range []string{"vr" + strings.Repeat("a", 24), "my-number", "a", "a.b", "0"} {
		g.Expect(verification.IsStoredID(id)).To(BeTrue(), id)
	}
	for _, id := range []string{"", ".", "..", "a..b", "a/b", "-a", "a-", "A", "a\x00", "a\n", "é", strings.Repeat("a", 254)} {
		g.Expect(verification.IsStoredID(id)).To(BeFalse(), id)
	}
}

// TestApply_keepsAttempts that a later state has replaced, whatever the mutation was.
func TestApply_keepsAttempts(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	r := verification.NewRequest(verification.New{ID: "vrx", Method: verification.WhatsApp, TTL: time.Hour}, now)
	var made []verification.PastAttempt
	apply := func(m verification.Mutation) {
		now = now.Add(time.Second)
		next, err := r.Apply(m, now)
		g.Expect(err).NotTo(HaveOccurred())
		r = next
		g.Expect(r.PastAttempts()).To(HaveLen(min(len(made), verification.MaxAttempts)))
		g.Expect(r.PastAttempts()).To(HaveExactElements(made[:len(r.PastAttempts())]))
	}
	record := func() {
		at := now.Add(time.Second)
		made = slices.Insert(made, 0, verification.PastAttempt{At: at, Event: r.Event().Kind, StatusCode: 500, Reason: "http_500"})
		apply(func(r *verification.Request, now time.Time) error {
			return r.RecordAttempt(verification.Attempt{
				Event: r.Event(), Number: r.Delivery.Attempts + 1, Redelivered: r.Redelivered, At: now, StatusCode: 500, Reason: "http_500", Next: now,
			})
		})
	}
	hint := func(r *verification.Request, now time.Time) error {
		r.Hints, r.Delivery = []verification.Hint{{Kind: verification.HintOtherNumber, At: now}}, verification.Delivery{NextAttemptAt: now}
		return nil
	}
	apply(hint)
	record()
	apply(func(r *verification.Request, now time.Time) error { return r.CancelByClient(now, everyEvent) })
	record()
	record()
	for _, mark := range []string{"one", "two"} {
		apply(func(r *verification.Request, now time.Time) error {
			r.Delivery.NextAttemptAt = time.Time{} // given up
			return r.Redeliver(mark, now, everyEvent)
		})
		for range 6 {
			record()
		}
	}
	apply(func(r *verification.Request, now time.Time) error { r.Epoch = 0; r.WrongCodes++; return nil }) // no event of its own
	r.TrimAttempts(4)
	g.Expect(r.PastAttempts()).To(Equal(made[:4]))
	r.Delivery = verification.Delivery{}
	r.TrimAttempts(2)
	g.Expect(r.PastAttempts()).To(Equal(made[1:3]), "the newest of those before the last")
	r.TrimAttempts(0)
	g.Expect(r.EarlierAttempts).To(BeNil())
}
