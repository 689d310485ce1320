package verification_test

import (
	"iter"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// prepared is what a messenger prepares, for the name that the request was made under.
func prepared(r *verification.Request, code verification.Code) string {
	return "I confirm my number to " + r.DisplayName + ". Code: " + code.Grouped()
}

// preparedOnly yields nothing else.
func preparedOnly(r *verification.Request, code verification.Code) iter.Seq[string] {
	return func(yield func(string) bool) { yield(prepared(r, code)) }
}

// strict is a message whose text must be the prepared one.
func (w *world) strict(code verification.Code, text, binding string) verification.Message {
	w.t.Helper()
	m := w.message(code, "+4915112345678")
	m.Text, m.Binding, m.Prepared = strings.ReplaceAll(text, "CODE", code.Grouped()), binding, preparedOnly
	return m
}

// TestReceive_theTextThatWasPrepared: it alone verifies at once, whatever was sent before it.
func TestReceive_theTextThatWasPrepared(t *testing.T) {
	w := newWorld(t)
	in := w.initiation()
	in.DisplayName = "Ada's Books"
	made := w.start(in)
	outcome, request := w.receive(w.strict(made.Code, "Please release my parcel no. CODE", "one"))
	w.Expect(outcome).To(Equal(verification.OutcomeNeedConfirmation))
	w.Expect(request.Contacts).To(HaveLen(1))
	w.Expect(request.Contacts[0].Kind).To(Equal(verification.ContactConfirm))
	for range 2 {
		outcome, again := w.receive(w.strict(made.Code, "Please release my parcel no. CODE", "one"))
		w.Expect(outcome).To(Equal(verification.OutcomeNeedConfirmation), "a copy of it asks again, if that failed")
		w.Expect(again).To(Equal(request), "and writes nothing")
	}
	outcome, again := w.receive(w.strict(made.Code, "CODE", "two"))
	w.Expect(outcome).To(Equal(verification.OutcomeTextChanged), "another message does not")
	w.Expect(again).To(Equal(request))
	outcome, _ = w.receive(w.strict(made.Code, "i confirm my number to ada’s books code: CODE", "three"))
	w.Expect(outcome).To(Equal(verification.OutcomeVerified))
}

// TestReceive_aPastedLinkIsAskedAbout, also where nothing in it is encoded, and verifies by the answer alone.
func TestReceive_aPastedLinkIsAskedAbout(t *testing.T) {
	const encoded, readable = "I%20confirm%20my%20number%20to%20Ada.%20Code%3A%20CODE", "I confirm my number to Ada. Code: CODE"
	for name, text := range map[string]string{
		"wa.me":                                 "https://wa.me/15550001111?text=" + encoded,
		"wa.me, readable":                       "https://wa.me/15550001111?text=" + readable,
		"wa.me, readable, without a scheme":     "wa.me/15550001111?text=" + readable,
		"api.whatsapp.com":                      "https://api.whatsapp.com/send?phone=15550001111&text=" + encoded,
		"api.whatsapp.com, with spaces as plus": "https://api.whatsapp.com/send/?phone=15550001111&text=" + strings.ReplaceAll(encoded, "%20", "+"),
		"of another number":                     "https://wa.me/15559999999?text=" + encoded,
		"beside the prepared text":              readable + " https://wa.me/1?text=x",
		"the draft alone, encoded":              encoded,
		"a capital":                             "https://wa.me/15550001111?Text=" + readable,
		"capitals":                              "HTTPS://WA.ME/15550001111?TEXT=" + readable,
		"without a scheme or a draft":           "wa.me/15550001111 " + readable,
		"of the app":                            "whatsapp://send?text=" + readable,
		"of Telegram":                           "see t.me/ada_bot " + readable,
		"a space":                               "https://x.example/?text =" + readable,
		"the parameter, encoded":                "https://x.example/?te%78t=" + readable,
		"the host, encoded, beside a bad %":     "https://wa%2Eme/1?te%78t=%zz" + readable,
		"full width":                            "https://x.example/？ｔｅｘｔ＝" + readable,
		"invisible characters":                  "https://wa.\u200bme/1?te\u00adxt=" + readable,
		"an ideographic full stop":              "https://wa。me/1 " + readable,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			in := w.initiation()
			in.DisplayName = "Ada"
			made := w.start(in)
			outcome, request := w.receive(w.strict(made.Code, text, "one"))
			w.Expect(outcome).To(Equal(verification.OutcomeNeedConfirmation))
			w.Expect(request.Phase).To(Equal(verification.Pending))
			receipt, err := w.service.Confirm(t.Context(), made.Request.ID, w.message(made.Code, "+4915112345678").Evidence,
				func(binding string) bool { return binding == "one" }, successOnly)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(receipt.Outcome).To(Equal(verification.OutcomeVerified))
		})
	}
}

// TestReceive_asksNobodyElse: whom another number belongs to is not asked for it, and uses nothing up.
func TestReceive_asksNobodyElse(t *testing.T) {
	w := newWorld(t)
	made := w.start(w.initiation())
	m := w.strict(made.Code, "CODE", "one")
	m.Sender = w.number("+4915112345679")
	outcome, request := w.receive(m)
	w.Expect(outcome).To(Equal(verification.OutcomeWrongNumber))
	w.Expect(request.Contacts).To(BeEmpty())
}

func TestConfirm(t *testing.T) {
	w := newWorld(t)
	made := w.start(w.initiation())
	tap := func(from, answered string) verification.Outcome {
		w.t.Helper()
		e := w.message(made.Code, from).Evidence
		receipt, err := w.service.Confirm(t.Context(), made.Request.ID, e, func(b string) bool { return b == answered }, successOnly)
		w.Expect(err).NotTo(HaveOccurred())
		return receipt.Outcome
	}
	w.Expect(tap("+4915112345678", "")).To(Equal(verification.OutcomeUnknown), "no sender was asked")
	w.receive(w.strict(made.Code, "CODE", "one"))
	w.Expect(tap("+4915112345678", "two")).To(Equal(verification.OutcomeUnknown), "another prompt")
	w.Expect(tap("+4915112345679", "one")).To(Equal(verification.OutcomeWrongNumber))
	w.Expect(w.phase(made.Request.ID)).To(Equal(verification.Pending))
	w.Expect(tap("+4915112345678", "one")).To(Equal(verification.OutcomeVerified))
	w.Expect(tap("+4915112345678", "one")).To(Equal(verification.OutcomeVerified), "a copy of it")
	receipt, err := w.service.Confirm(t.Context(), "../x", verification.Evidence{}, nil, successOnly)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeUnknown))
}

// TestConfirm_withAnotherTokenLearnsNothing: one who guesses the id of a button sees no state, and leaves no hint.
func TestConfirm_withAnotherTokenLearnsNothing(t *testing.T) {
	for name, end := range map[string]func(w *world, made verification.Initiated){
		"of a request that ended": func(w *world, _ verification.Initiated) { w.later(time.Hour) },
		"of a request that expired": func(w *world, made verification.Initiated) {
			w.later(time.Hour)
			_, err := w.store.Update(w.t.Context(), made.Request.ID, func(r *verification.Request, now time.Time) error { return r.Expire(now, 0) })
			w.Expect(err).NotTo(HaveOccurred())
		},
		"of a request that is verified": func(w *world, made verification.Initiated) { w.receive(w.message(made.Code, claimed)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			made := w.start(w.initiation())
			w.receive(w.strict(made.Code, "CODE", "one"))
			end(w, made)
			before := w.readStored(made.Request.ID)
			for _, from := range []string{claimed, stranger} {
				e := w.message(made.Code, from).Evidence
				receipt, err := w.service.Confirm(t.Context(), made.Request.ID, e, func(string) bool { return false }, everyEvent)
				w.Expect(err).NotTo(HaveOccurred())
				w.Expect(receipt).To(Equal(verification.Receipt{Outcome: verification.OutcomeUnknown}))
			}
			w.Expect(w.readStored(made.Request.ID)).To(Equal(before))
		})
	}
}
