package verification_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	everyEvent = verification.EventKinds(15)
	claimed    = "+4915112345678"
	stranger   = "+4915198765432"
	nonce      = "00112233445566778899aabbccddeeff"
)

func (w *world) readStored(id string) verification.Request {
	w.t.Helper()
	r, err := w.store.Read(w.t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	return r
}

func (w *world) readHint(id string) verification.HintKind {
	w.t.Helper()
	r := w.readStored(id)
	return r.HintAt(w.clock.Now())
}

func TestReceive_storesAHintOnceForEachKind(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	id := initiated.Request.ID
	w.Expect(w.readHint(id)).To(BeEmpty())

	outcome, _ := w.receive(w.message(initiated.Code, stranger))
	w.Expect(outcome).To(Equal(verification.OutcomeWrongNumber))
	first := w.readStored(id)
	w.Expect(first.HintAt(w.clock.Now())).To(Equal(verification.HintOtherNumber))
	for range 5 {
		w.later(time.Second)
		outcome, _ = w.receive(w.message(initiated.Code, stranger))
		w.Expect(outcome).To(Equal(verification.OutcomeWrongNumber))
	}
	w.Expect(w.readStored(id).Version).To(Equal(first.Version), "a stranger with the code causes one write")

	outcome, _ = w.receive(w.message(initiated.Code, ""))
	w.Expect(outcome).To(Equal(verification.OutcomeNeedContact))
	w.Expect(w.readHint(id)).To(Equal(verification.HintAwaitingContact))

	w.later(10*time.Minute + verification.ExpiryGrace)
	outcome, _ = w.receive(w.message(initiated.Code, claimed))
	w.Expect(outcome).To(Equal(verification.OutcomeTooLate))
	w.Expect(w.readHint(id)).To(Equal(verification.HintAwaitingContact), "what went wrong in time says more")
}

func TestReceive_hintsThatAMessageCameTooLate(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	id, inTime := initiated.Request.ID, w.clock.Now()
	old := w.message(initiated.Code, claimed)
	old.SentAt = inTime.Add(-time.Hour)
	outcome, _ := w.receive(old)
	w.Expect(outcome).To(Equal(verification.OutcomeTooLate))
	w.Expect(w.readHint(id)).To(BeEmpty(), "a message from before the request is none of its own")

	w.later(10 * time.Minute)
	w.receive(w.message(initiated.Code, claimed))
	w.Expect(w.readHint(id)).To(Equal(verification.HintTooLate))
}

func TestReceive_hintsNothingOfAMessageFromBeforeAnExpiredRequest(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	id, inTime := initiated.Request.ID, w.clock.Now()
	w.later(time.Hour)
	_, err := w.store.Update(t.Context(), id, func(r *verification.Request, now time.Time) error { return r.Expire(now, successOnly) })
	w.Expect(err).NotTo(HaveOccurred())
	before := w.readStored(id)
	old := w.message(initiated.Code, claimed)
	old.SentAt = inTime.Add(-time.Hour)
	outcome, _ := w.receive(old)
	w.Expect(outcome).To(Equal(verification.OutcomeTooLate), "as for one that came after the end")
	w.Expect(w.readStored(id)).To(Equal(before))
}

func TestReceive_verifiesAfterHintsAndShowsNone(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	w.receive(w.message(initiated.Code, stranger))
	outcome, verified := w.receive(w.message(initiated.Code, claimed))
	w.Expect(outcome).To(Equal(verification.OutcomeVerified))
	w.Expect(verified.HintAt(w.clock.Now())).To(BeEmpty())
	before := w.readStored(verified.ID)
	w.receive(w.message(initiated.Code, stranger))
	w.Expect(w.readStored(verified.ID)).To(Equal(before), "a verified request takes no hints")
}

func TestReceive_hintOfAStoreThatIsDown(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	w.backend.Fail(errors.New("down"))
	_, err := w.service.Receive(t.Context(), w.message(initiated.Code, stranger), successOnly)
	w.Expect(codeOf(err)).To(Equal(verification.CodeStoreUnavailable), "the message must come again")
}

func TestEvent_followsFromTheState(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	receive := func(from string) verification.Request {
		receipt, err := w.service.Receive(t.Context(), w.message(initiated.Code, from), everyEvent)
		w.Expect(err).NotTo(HaveOccurred())
		return receipt.Request
	}
	w.Expect(initiated.Request.Event()).To(BeZero())

	hinted := receive(stranger)
	w.Expect(hinted.Event()).To(Equal(verification.Event{
		Kind: verification.EventAttention, Hint: verification.HintOtherNumber, At: w.clock.Now(),
	}))
	w.Expect(hinted.Delivery).To(Equal(verification.Delivery{NextAttemptAt: w.clock.Now()}))
	attempt := verification.Attempt{Number: 1, At: w.clock.Now(), Event: hinted.Event(), Reason: "timeout", Next: w.clock.Now().Add(time.Minute)}
	w.Expect(hinted.RecordAttempt(attempt)).To(Succeed())

	w.later(time.Second)
	verified := receive(claimed)
	w.Expect(verified.Event()).To(Equal(verification.Event{Kind: verification.EventSuccess, At: w.clock.Now()}))
	w.Expect(verified.Delivery).To(Equal(verification.Delivery{NextAttemptAt: w.clock.Now()}), "the success replaces what was to be said before")
	w.Expect(verified.RecordAttempt(attempt)).To(MatchError(verification.ErrStaleAttempt), "an attempt of the earlier event does not count")
}

func TestEvent_ofAnExpiredRequest(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	w.receive(w.message(initiated.Code, stranger))
	w.later(10*time.Minute + verification.ExpiryGrace)
	r := w.readStored(initiated.Request.ID)
	w.Expect(r.Expire(w.clock.Now(), everyEvent)).To(Succeed())
	event := r.Event()
	w.Expect(event).To(Equal(verification.Event{Kind: verification.EventExpired, Hint: verification.HintOtherNumber, At: r.ExpiresAt}))
	w.Expect(r.Delivery.NextAttemptAt).To(Equal(w.clock.Now()))

	late := w.readStored(r.ID)
	w.Expect(late.Expire(w.clock.Now(), successOnly)).To(Succeed())
	w.Expect(late.Delivery).To(BeZero(), "a kind that is not wanted is not sent")
}

// TestEvent_ofAPendingRequestEndsWithIt: whatever the end is, and though the project does not want to hear of it.
func TestEvent_ofAPendingRequestEndsWithIt(t *testing.T) {
	const wanted = verification.EventKinds(8) // attention alone
	for name, end := range map[string]struct {
		after time.Duration
		end   func(r *verification.Request, e verification.Evidence, now time.Time) error
		hint  verification.HintKind
	}{
		"verified": {time.Second, func(r *verification.Request, e verification.Evidence, now time.Time) error {
			return r.Verify(e, now, wanted)
		}, ""},
		"declined": {time.Second, func(r *verification.Request, e verification.Evidence, now time.Time) error {
			return r.Decline(e, func(verification.Contact) bool { return true }, now, wanted)
		}, verification.HintDeclined},
		"expired": {10*time.Minute + verification.ExpiryGrace, func(r *verification.Request, _ verification.Evidence, now time.Time) error {
			return r.Expire(now, wanted)
		}, verification.HintAwaitingConfirmation},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			initiated, receipt := w.startEcho()
			r := receipt.Request
			w.Expect(r.Event().Kind).To(Equal(verification.EventAttention))
			w.Expect(r.RecordAttempt(verification.Attempt{
				Number: 1, At: w.clock.Now(), Event: r.Event(), Reason: "timeout", Next: w.clock.Now().Add(time.Hour),
			})).To(Succeed())
			w.later(end.after)
			w.Expect(end.end(&r, w.message(initiated.Code, claimed).Evidence, w.clock.Now())).To(Succeed())
			w.Expect(r.Delivery).To(BeZero(), "neither due nor with the attempts of before")
			w.Expect(r.HintAt(w.clock.Now())).To(Equal(end.hint), "which status shows")
			for _, events := range []verification.EventPolicy{verification.EventsOff, verification.EventsOn, verification.EventsPaused} {
				settled := verification.Next(&r, time.Time{}, verification.Policy{Events: events})
				w.Expect(verification.Next(&r, settled.At, verification.Policy{Events: events}).Step).To(Equal(verification.StepDelete))
				w.Expect(settled.At).To(BeTemporally("<=", r.ExpiresAt.Add(verification.CodeRest)))
			}
		})
	}
}

func TestEvent_staysTheSameAfterALateMessage(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	w.later(10*time.Minute + verification.ExpiryGrace)
	_, err := w.store.Update(t.Context(), initiated.Request.ID, func(r *verification.Request, now time.Time) error {
		return r.Expire(now, everyEvent)
	})
	w.Expect(err).NotTo(HaveOccurred())
	before := w.readStored(initiated.Request.ID)
	outcome, _ := w.receive(w.message(initiated.Code, claimed))
	w.Expect(outcome).To(Equal(verification.OutcomeTooLate))
	after := w.readStored(initiated.Request.ID)
	w.Expect(after.HintAt(w.clock.Now())).To(Equal(verification.HintTooLate))
	w.Expect(after.Event()).To(Equal(before.Event()))
	w.Expect(after.Delivery).To(Equal(before.Delivery))
}

func TestNext_deliversTheEventOfAPendingRequest(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	receipt, err := w.service.Receive(t.Context(), w.message(initiated.Code, stranger), everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	r, expiry := receipt.Request, initiated.Request.ExpiresAt.Add(verification.ExpiryGrace)
	on := verification.Policy{Events: verification.EventsOn, Kinds: everyEvent}
	w.Expect(verification.Next(&r, w.clock.Now(), on).Step).To(Equal(verification.StepDeliver))
	for _, events := range []verification.EventPolicy{verification.EventsOff, verification.EventsPaused} {
		w.Expect(verification.Next(&r, w.clock.Now(), verification.Policy{Events: events})).
			To(Equal(verification.Action{Step: verification.StepWait, At: expiry}))
	}
	w.Expect(verification.Next(&r, expiry, on).Step).To(Equal(verification.StepExpire), "the end replaces the event")
	w.Expect(r.Evictable(verification.Limits{}, expiry)).To(BeTrue())
	w.Expect(r.Evictable(verification.Limits{KeepLapsed: true}, expiry.Add(time.Hour))).To(BeFalse(), "its event is still to come")
}

// hiddenMessage is the code as a user sends it who hides the number.
func (w *world) hiddenMessage(code verification.Code, binding string) verification.Message {
	m := w.message(code, "")
	m.Binding = binding
	return m
}

func anyEcho(*verification.Request, verification.Contact) bool { return true }

func (w *world) startEcho() (verification.Initiated, verification.Receipt) {
	w.t.Helper()
	initiated := w.start(w.initiation())
	receipt, err := w.service.AwaitEcho(w.t.Context(), w.hiddenMessage(initiated.Code, "bound"), nonce, everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeNeedEcho))
	return initiated, receipt
}

func TestAwaitEcho_keepsTheFirstNonce(t *testing.T) {
	w := newWorld(t)
	initiated, receipt := w.startEcho()
	w.Expect(receipt.Request.HintAt(w.clock.Now())).To(Equal(verification.HintAwaitingConfirmation))
	again, err := w.service.AwaitEcho(t.Context(), w.hiddenMessage(initiated.Code, "bound"), strings.Repeat("f", 32), everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(again.Outcome).To(Equal(verification.OutcomeNeedEcho))
	echo, found := again.Request.EchoOf([]string{"other", "bound"})
	w.Expect(found).To(BeTrue())
	w.Expect(echo.Nonce).To(Equal(nonce))

	rotated := w.hiddenMessage(initiated.Code, "bound by a newer key")
	rotated.OlderBindings = []string{"bound"}
	again, err = w.service.AwaitEcho(t.Context(), rotated, strings.Repeat("f", 32), everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(again.Outcome).To(Equal(verification.OutcomeNeedEcho))
	w.Expect(again.Request.Contacts).To(HaveLen(1))
}

func TestConfirmEcho(t *testing.T) {
	tap := func(w *world, from string) verification.Message {
		m := verification.Message{Evidence: verification.Evidence{Method: verification.WhatsApp, SentAt: w.clock.Now()}, Binding: "bound"}
		if from != "" {
			m.Sender = w.number(from)
		}
		return m
	}
	nothing := func(*verification.Request, verification.Contact) bool { return false }
	for name, test := range map[string]struct {
		from    string
		after   time.Duration
		answers func(*verification.Request, verification.Contact) bool
		want    verification.Outcome
	}{
		"with the number still hidden":  {"", time.Second, anyEcho, verification.OutcomeVerified},
		"with the claimed number shown": {claimed, time.Second, anyEcho, verification.OutcomeVerified},
		"with another number":           {stranger, time.Second, anyEcho, verification.OutcomeUnknown},
		"with another token":            {"", time.Second, nothing, verification.OutcomeUnknown},
		"too late":                      {"", 10 * time.Minute, anyEcho, verification.OutcomeTooLate},
		"by a clock that is behind":     {"", -10 * time.Second, anyEcho, verification.OutcomeVerified},
		"before the request":            {"", -time.Hour, anyEcho, verification.OutcomeTooLate},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			initiated, _ := w.startEcho()
			m := tap(w, test.from)
			m.SentAt = m.SentAt.Add(test.after)
			w.later(max(test.after, 0))
			receipt, err := w.service.ConfirmEcho(t.Context(), initiated.Request.ID, m, test.answers, everyEvent)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(receipt.Outcome).To(Equal(test.want))
			r := w.readStored(initiated.Request.ID)
			if test.want != verification.OutcomeVerified {
				w.Expect(r.Phase).To(Equal(verification.Pending))
			} else {
				w.Expect(r.Phase).To(Equal(verification.Verified))
				w.Expect(r.Actual).To(Equal(initiated.Request.Phone))
				w.Expect(r.Assurance).To(Equal(verification.AssuranceEcho))
			}
		})
	}
}

func TestEchoTap_withAnotherTokenLearnsNothing(t *testing.T) {
	nothing := func(*verification.Request, verification.Contact) bool { return false }
	for name, end := range map[string]func(w *world, id string){
		"of a request that ended": func(w *world, _ string) { w.later(time.Hour) },
		"of a request that expired": func(w *world, id string) {
			w.later(time.Hour)
			_, err := w.store.Update(w.t.Context(), id, func(r *verification.Request, now time.Time) error { return r.Expire(now, 0) })
			w.Expect(err).NotTo(HaveOccurred())
		},
		"of a request that is verified": func(w *world, id string) {
			tap := verification.Message{Evidence: verification.Evidence{Method: verification.WhatsApp, SentAt: w.clock.Now()}, Binding: "bound"}
			_, err := w.service.ConfirmEcho(w.t.Context(), id, tap, anyEcho, everyEvent)
			w.Expect(err).NotTo(HaveOccurred())
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			initiated, _ := w.startEcho()
			id := initiated.Request.ID
			end(w, id)
			before := w.readStored(id)
			tap := verification.Message{Evidence: verification.Evidence{Method: verification.WhatsApp, SentAt: w.clock.Now()}, Binding: "guess"}
			confirmed, err := w.service.ConfirmEcho(t.Context(), id, tap, nothing, everyEvent)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(confirmed.Outcome).To(Equal(verification.OutcomeUnknown))
			declined, err := w.service.Decline(t.Context(), id, tap, nothing, everyEvent)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(declined.Outcome).To(Equal(verification.OutcomeUnknown))
			w.Expect(w.readStored(id)).To(Equal(before))
		})
	}
}

func TestConfirmEcho_replayedChangesNothing(t *testing.T) {
	w := newWorld(t)
	initiated, _ := w.startEcho()
	tap := verification.Message{Evidence: verification.Evidence{Method: verification.WhatsApp, SentAt: w.clock.Now()}, Binding: "bound"}
	for i := range 3 {
		receipt, err := w.service.ConfirmEcho(t.Context(), initiated.Request.ID, tap, anyEcho, everyEvent)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(receipt.Outcome).To(Equal(verification.OutcomeVerified))
		w.Expect(receipt.Changed).To(Equal(i == 0))
	}
	receipt, err := w.service.ConfirmEcho(t.Context(), "../x", tap, anyEcho, everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeUnknown))
}

func TestDecline_endsTheRequest(t *testing.T) {
	w := newWorld(t)
	initiated, _ := w.startEcho()
	tap := verification.Message{Evidence: verification.Evidence{
		Method: verification.WhatsApp, SentAt: w.clock.Now(), Sender: w.number(claimed),
	}}
	w.later(time.Second)
	for range 2 {
		receipt, err := w.service.Decline(t.Context(), initiated.Request.ID, tap, anyEcho, everyEvent)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(receipt.Outcome).To(Equal(verification.OutcomeDeclined))
	}
	r := w.readStored(initiated.Request.ID)
	w.Expect(r.PhaseAt(w.clock.Now())).To(Equal(verification.Expired), "at once, not at the end of its time")
	w.Expect(r.HintAt(w.clock.Now())).To(Equal(verification.HintDeclined))
	w.Expect(r.Event()).To(Equal(verification.Event{Kind: verification.EventDeclined, Hint: verification.HintDeclined, At: w.clock.Now()}))
	w.Expect(r.Delivery.NextAttemptAt).To(Equal(w.clock.Now()))

	receipt, err := w.service.ConfirmEcho(t.Context(), r.ID, tap, anyEcho, everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeTooLate))
	outcome, _ := w.receive(w.message(initiated.Code, claimed))
	w.Expect(outcome).To(Equal(verification.OutcomeTooLate))
	w.Expect(w.readHint(r.ID)).To(Equal(verification.HintDeclined), "which stays the reason")
}

func TestDecline_needsTheQuestion(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	tap := w.message(initiated.Code, claimed)
	receipt, err := w.service.Decline(t.Context(), initiated.Request.ID, tap, anyEcho, everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeUnknown), "no request of which nothing was asked")
	w.Expect(w.readStored(initiated.Request.ID).Phase).To(Equal(verification.Pending))
}

// TestAwaitEcho_keepsTheFirstOfTooManySenders: their question was sent, and another is not sent on the same day.
func TestAwaitEcho_keepsTheFirstOfTooManySenders(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	for i := range 3 {
		m := w.message(initiated.Code, "")
		m.Binding = "to share " + strings.Repeat("s", i)
		w.receive(m)
	}
	await := func(binding string) verification.Outcome {
		receipt, err := w.service.AwaitEcho(t.Context(), w.hiddenMessage(initiated.Code, binding), nonce, everyEvent)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(receipt.Request.ID).To(Equal(initiated.Request.ID))
		return receipt.Outcome
	}
	for i := range verification.MaxContacts {
		w.Expect(await(strings.Repeat("b", i+1))).To(Equal(verification.OutcomeNeedEcho))
	}
	full := w.readStored(initiated.Request.ID)
	w.Expect(full.Contacts).To(HaveLen(verification.MaxContacts))
	w.Expect(full.SharingBindings()).To(BeEmpty(), "these go first")
	w.Expect(await("one more")).To(Equal(verification.OutcomeLimited))
	share := w.message(initiated.Code, "")
	share.Binding = "one more to share"
	outcome, _ := w.receive(share)
	w.Expect(outcome).To(Equal(verification.OutcomeLimited))
	w.Expect(await("b")).To(Equal(verification.OutcomeNeedEcho), "a copy of the first message")
	w.Expect(w.readStored(full.ID)).To(Equal(full), "none of them is a write")

	changed := w.strict(initiated.Code, "CODE", "asked")
	outcome, _ = w.receive(changed)
	w.Expect(outcome).To(Equal(verification.OutcomeTextChanged))
	w.Expect(w.readStored(full.ID).Contacts).To(Equal(full.Contacts))
	w.Expect(w.readHint(full.ID)).To(Equal(verification.HintTextChanged))
}

func TestRequest_keepsClientData(t *testing.T) {
	w := newWorld(t)
	in := w.initiation()
	in.ClientData = verification.ClientData{Reference: "order 7", Metadata: map[string]string{"cart": "3"}, Locale: "es"}
	initiated := w.start(in)
	in.Metadata["cart"] = "changed by the caller"
	w.Expect(w.readStored(initiated.Request.ID).ClientData).To(Equal(verification.ClientData{
		Reference: "order 7", Metadata: map[string]string{"cart": "3"}, Locale: "es",
	}))
	_, err := w.store.Update(t.Context(), initiated.Request.ID, func(r *verification.Request, _ time.Time) error {
		r.Metadata["cart"] = "4"
		return nil
	})
	w.Expect(err).To(MatchError(verification.ErrContent))
	w.Expect(w.readStored(initiated.Request.ID).Metadata).To(Equal(map[string]string{"cart": "3"}))
}
