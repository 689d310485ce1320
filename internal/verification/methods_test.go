package verification_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestReceive_takesAnotherMethodThatIsPermitted(t *testing.T) {
	for name, test := range map[string]struct {
		others []verification.Method
		want   verification.Outcome
	}{
		"permitted":     {[]verification.Method{verification.Telegram}, verification.OutcomeVerified},
		"not permitted": {nil, verification.OutcomeWrongMethod},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			in := w.initiation()
			in.OtherMethods = test.others
			initiated := w.start(in)
			m := w.message(initiated.Code, claimed)
			m.Method = verification.Telegram
			outcome, _ := w.receive(m)
			w.Expect(outcome).To(Equal(test.want))
			r := w.readStored(initiated.Request.ID)
			w.Expect(r.Method).To(Equal(verification.WhatsApp), "what the client chose stays")
			if test.want == verification.OutcomeVerified {
				w.Expect(r.UsedMethod()).To(Equal(verification.Telegram))
			} else {
				w.Expect(r.UsedMethod()).To(Equal(verification.WhatsApp))
			}
		})
	}
}

func TestReceive_byTheChosenMethodNamesNoOther(t *testing.T) {
	w := newWorld(t)
	in := w.initiation()
	in.OtherMethods = []verification.Method{verification.Telegram}
	initiated := w.start(in)
	w.receive(w.message(initiated.Code, claimed))
	r := w.readStored(initiated.Request.ID)
	w.Expect(r.VerifiedBy).To(BeEmpty())
	w.Expect(r.UsedMethod()).To(Equal(verification.WhatsApp))
}

func TestInitiate_recognizesARetryByItsReturnURL(t *testing.T) {
	w := newWorld(t)
	in := w.initiation()
	in.IdempotencyKey, in.HasIdempotencyKey, in.ReturnURL = "order-1", true, "https://shop.example/back"
	first := w.start(in).Request
	in.OtherMethods = []verification.Method{verification.Telegram} // the project has another account since
	w.Expect(w.start(in).Request).To(Equal(first))
	in.ReturnURL = "https://shop.example/other"
	_, err := w.service.Initiate(t.Context(), in)
	w.Expect(codeOf(err)).To(Equal(verification.CodeIdempotencyKeyReused))
	in.ReturnURL, in.Reference = "", "https://shop.example/back"
	_, err = w.service.Initiate(t.Context(), in)
	w.Expect(codeOf(err)).To(Equal(verification.CodeIdempotencyKeyReused), "the same text elsewhere")
}

func TestStatusCached(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	r, err := w.service.StatusCached(t.Context(), initiated.Request.ID)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(r).To(Equal(initiated.Request))
}
