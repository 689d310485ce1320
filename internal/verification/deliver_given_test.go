package verification_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/verification/codesender"
)

// TestDelivery_nothingFindsIt: no client, page or message finds a delivery, not even with the code that its id was made from.
func TestDelivery_nothingFindsIt(t *testing.T) {
	w := newWorld(t)
	observer := &codeSteps{}
	w.service.Sender, w.service.Observer = codesender.New(1), observer
	in := w.initiation()
	in.Terms, in.Given = verification.Terms{Deliver: verification.DeliverGiven}, redact.New("482915")
	made, err := w.service.Initiate(t.Context(), in)
	w.Expect(err).NotTo(HaveOccurred())
	id, all := made.Request.ID, verification.NewEventKinds(verification.EventExpired, verification.EventAttention, verification.EventSuccess)
	digits, _ := verification.ParseSessionCode("482915")
	for name, find := range map[string]func() error{
		"status":    func() error { _, err := w.service.StatusFor(t.Context(), id, false); return err },
		"page":      func() error { _, err := w.service.StatusCached(t.Context(), id); return err },
		"cancel":    func() error { _, err := w.service.CancelByClient(t.Context(), id, false, all); return err },
		"redeliver": func() error { _, err := w.service.RedeliverNow(t.Context(), id, false, all); return err },
		"question": func() error {
			return w.service.RecordNoQuestion(t.Context(), id, verification.Contact{Binding: "b", BoundAt: w.clock.Now()}, all)
		},
		"confirm": func() error {
			_, err := w.service.ConfirmSession(t.Context(), id, false, digits, func(*verification.Request) verification.CodeSecrets {
				return verification.CodeSecrets{Session: verification.TestSecrets(), Delivered: verification.TestSecrets()}
			}, all)
			return err
		},
	} {
		if err := find(); name != "question" {
			w.Expect(err).To(MatchError(verification.ErrNotFound), name)
		}
	}
	receipt, err := w.service.Receive(t.Context(), verification.Message{
		Evidence: verification.Evidence{Method: in.Method, Sender: in.Phone, SentAt: w.clock.Now()}, Text: made.Code.Grouped(),
	}, all)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt).To(Equal(verification.Receipt{Outcome: verification.OutcomeUnknown}))
	w.Expect(w.readStored(id)).To(Equal(made.Request), "nothing was written")
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	stored := w.readStored(id)
	w.Expect(stored.Redeliver("annotation", w.clock.Now(), all)).To(MatchError(verification.ErrNoEvent))
	w.Expect(*observer).To(BeZero(), "it is no verification")
}
