package verification_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func prover(*verification.Request) bool { return true }

// notMe has the prover decline.
func (w *world) notMe(made verification.Initiated) verification.Receipt {
	w.t.Helper()
	receipt, err := w.service.DeclineProven(w.t.Context(), made.Request.ID, w.message(made.Code, claimed), prover, everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	return receipt
}

// TestDeclineProven_isCountedOnce, however often the messages before it and its own come.
func TestDeclineProven_isCountedOnce(t *testing.T) {
	w := newWorld(t)
	made, seen := w.startSession()
	for range 3 {
		outcome, _ := w.receive(w.message(made.Code, claimed))
		w.Expect(outcome).To(Equal(verification.OutcomeProven))
	}
	w.Expect(w.notMe(made).Changed).To(BeTrue())
	for range 2 {
		again := w.notMe(made)
		w.Expect(again.Outcome).To(Equal(verification.OutcomeDeclined))
		w.Expect(again.Changed).To(BeFalse())
	}
	w.Expect(seen.all).To(Equal([]verification.SessionStep{
		verification.SessionStarted, verification.SessionProven, verification.SessionDeclined,
	}))
}

// TestDeclineProven_afterItsEnd: a holder of the page could end the request first, by canceling it or by wrong codes. The answer of the
// prover counts all the same, once.
func TestDeclineProven_afterItsEnd(t *testing.T) {
	for name, end := range map[string]func(*world, verification.Initiated){
		"its time ran out": func(w *world, _ verification.Initiated) { w.later(time.Hour) },
		"canceled on the page": func(w *world, made verification.Initiated) {
			_, err := w.service.Cancel(w.t.Context(), made.Request.ID, everyEvent)
			w.Expect(err).NotTo(HaveOccurred())
		},
		"ended by wrong codes": func(w *world, made verification.Initiated) {
			for n := range verification.MaxConfirmTries {
				_, err := w.confirm(made.Request.ID, otherDigits(w.codesOf(&made.Request), n+1))
				w.Expect(codeOf(err)).To(Equal(verification.CodeWrongCode))
			}
		},
		"expired by a loop": func(w *world, made verification.Initiated) {
			w.later(time.Hour)
			_, err := w.store.Update(w.t.Context(), made.Request.ID,
				func(r *verification.Request, now time.Time) error { return r.Expire(now, everyEvent) })
			w.Expect(err).NotTo(HaveOccurred())
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			made, seen := w.startSession()
			w.receive(w.message(made.Code, claimed))
			end(w, made)
			w.later(time.Second)
			receipt := w.notMe(made)
			w.Expect(receipt.Outcome).To(Equal(verification.OutcomeDeclined))
			w.Expect(receipt.Changed).To(BeTrue())
			w.Expect(receipt.Request.Phase).To(Equal(verification.Expired))
			w.Expect(receipt.Request.DeclinedAt()).To(Equal(w.clock.Now()), "the number cools down")
			w.Expect(receipt.Request.Event()).To(Equal(verification.Event{
				Kind: verification.EventDeclined, Hint: verification.HintDeclined, At: w.clock.Now(),
			}))
			w.Expect(receipt.Request.Delivery.Wanted()).To(BeTrue())
			w.Expect(w.readHint(made.Request.ID)).To(Equal(verification.HintDeclined), "the status says what the event says")
			w.later(time.Second)
			w.Expect(w.notMe(made).Changed).To(BeFalse())
			w.Expect(seen.all).To(ContainElement(verification.SessionDeclined))
			w.Expect(seen.all[len(seen.all)-1]).To(Equal(verification.SessionDeclined), "counted once")
			w.receive(w.message(made.Code, claimed))
			stored := w.readStored(made.Request.ID)
			w.Expect(stored.Event().Kind).To(Equal(verification.EventDeclined), "a message after that is no hint")
		})
	}
}
