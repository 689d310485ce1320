package verification_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestWrongNumber_isAHintAlone: it is the weakest one, from anyone who has the page, and no event reports it.
func TestWrongNumber_isAHintAlone(t *testing.T) {
	w := newWorld(t)
	initiated, _ := w.startSession()
	id := initiated.Request.ID
	recorded, err := w.service.RecordWrongNumber(t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(recorded.HintAt(w.clock.Now())).To(Equal(verification.HintNumberWrong))
	w.Expect(recorded.HintOfMessage(w.clock.Now())).To(BeEmpty())
	w.Expect(recorded.Event()).To(BeZero())
	w.Expect(recorded.Delivery.Wanted()).To(BeFalse())
	w.Expect(recorded.DeclinedAt()).To(BeZero(), "there is no cool-down")
	again, err := w.service.RecordWrongNumber(t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(again).To(Equal(recorded))
	outcome, _ := w.receive(w.message(initiated.Code, claimed))
	w.Expect(outcome).To(Equal(verification.OutcomeProven))
	w.Expect(w.readHint(id)).To(Equal(verification.HintAwaitingConfirmation))
	w.receive(w.message(initiated.Code, stranger))
	proven := w.readStored(id)
	unchanged, err := w.service.RecordWrongNumber(t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(unchanged).To(Equal(proven), "and overrides nothing")

	initiated, _ = w.startSession()
	w.receive(w.message(initiated.Code, stranger))
	waiting := w.readStored(initiated.Request.ID)
	w.Expect(waiting.Event().Hint).To(Equal(verification.HintOtherNumber))
	recorded, err = w.service.RecordWrongNumber(t.Context(), initiated.Request.ID)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(recorded.HintAt(w.clock.Now())).To(Equal(verification.HintNumberWrong))
	w.Expect(recorded.Event()).To(Equal(waiting.Event()), "the event that is due stays as it is")
	w.Expect(recorded.Delivery).To(Equal(waiting.Delivery))
	w.receive(w.message(initiated.Code, stranger))
	w.Expect(w.readHint(initiated.Request.ID)).To(Equal(verification.HintOtherNumber), "it is not hidden")
	ended := recorded
	w.Expect(ended.Expire(ended.ExpiresAt.Add(verification.ExpiryGrace), verification.NewEventKinds())).To(Succeed())
	w.Expect(ended.Event()).To(Equal(verification.Event{Kind: verification.EventExpired, Hint: verification.HintOtherNumber, At: ended.ExpiresAt}))
	late, _ := w.startSession()
	w.clock.SetTime(late.Request.ExpiresAt)
	over, err := w.service.RecordWrongNumber(t.Context(), late.Request.ID)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(over.Hints).To(BeEmpty(), "nothing comes after the end")
}
