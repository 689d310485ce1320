package verification_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestReceiveContact_completesTheLatestBinding(t *testing.T) {
	w := newWorld(t)
	first, second := w.start(w.initiation()), w.start(w.initiation())
	for _, initiated := range []verification.Initiated{first, second} {
		outcome, _ := w.receive(w.message(initiated.Code, ""))
		w.Expect(outcome).To(Equal(verification.OutcomeNeedContact))
		w.later(time.Second)
	}
	contact := w.message(first.Code, "+4915112345678")
	for delivery := range 2 { // the second is a redelivery
		receipt, err := w.service.ReceiveContact(t.Context(), contact.Binding, contact.Evidence, successOnly)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(receipt.Outcome).To(Equal(verification.OutcomeVerified))
		w.Expect(receipt.Request.ID).To(Equal(second.Request.ID))
		w.Expect(receipt.Changed).To(Equal(delivery == 0))
	}
	w.Expect(w.phase(first.Request.ID)).To(Equal(verification.Pending), "an earlier binding never comes back")
}

func TestReceiveContact_ofSomebodyUnbound(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	w.receive(w.message(initiated.Code, ""))
	contact := w.message(initiated.Code, "+4915112345678")
	receipt, err := w.service.ReceiveContact(t.Context(), strings.Repeat("b", 32), contact.Evidence, successOnly)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeUnknown))
}

func TestReceiveContact_withAnotherNumber(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	w.receive(w.message(initiated.Code, ""))
	contact := w.message(initiated.Code, "+4915112345679")
	receipt, err := w.service.ReceiveContact(t.Context(), contact.Binding, contact.Evidence, successOnly)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeWrongNumber))
	w.Expect(w.phase(initiated.Request.ID)).To(Equal(verification.Pending))
}

func TestReceive_theCodeAgainAfterTheContact(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	code := w.message(initiated.Code, "")
	w.receive(code)
	contact := w.message(initiated.Code, "+4915112345678")
	_, err := w.service.ReceiveContact(t.Context(), contact.Binding, contact.Evidence, successOnly)
	w.Expect(err).NotTo(HaveOccurred())

	outcome, _ := w.receive(code)
	w.Expect(outcome).To(Equal(verification.OutcomeVerified), "a second tap of the sender who proved it")
	code.Binding = strings.Repeat("b", 32)
	outcome, _ = w.receive(code)
	w.Expect(outcome).To(Equal(verification.OutcomeTooLate), "another sender learns nothing")
}

// TestReceiveContact_beforeItsBinding answers an older prompt: a request that is newer by a second is not proved by it.
func TestReceiveContact_beforeItsBinding(t *testing.T) {
	w := newWorld(t)
	older, newer := w.start(w.initiation()), w.start(w.initiation())
	w.receive(w.message(older.Code, ""))
	w.later(30 * time.Second)
	contact := w.message(older.Code, "+4915112345678")
	w.later(time.Second)
	w.receive(w.message(newer.Code, ""))
	receipt, err := w.service.ReceiveContact(t.Context(), contact.Binding, contact.Evidence, successOnly)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeNeedContact), "asked again")
	w.Expect(w.phase(older.Request.ID)).To(Equal(verification.Pending))
	w.Expect(w.phase(newer.Request.ID)).To(Equal(verification.Pending))
}
