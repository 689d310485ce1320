package verification_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// onceKey has the form of a key that a client library makes for one call.
const onceKey = "once_abcdefghijklmnopqrstuvwx27"

// TestReceive_aMessengerThatIsBehind sends the prepared text half a minute before the request was created, by the messenger's clock.
func TestReceive_aMessengerThatIsBehind(t *testing.T) {
	for name, test := range map[string]struct {
		key  string
		want verification.Outcome
	}{
		"no key":                 {"", verification.OutcomeVerified},
		"a key for one call":     {onceKey, verification.OutcomeVerified},
		"a key of one's choice":  {"order-1", verification.OutcomeTooLate},
		"a character short":      {onceKey[:len(onceKey)-1], verification.OutcomeTooLate},
		"a character long":       {onceKey + "a", verification.OutcomeTooLate},
		"a line break after it":  {onceKey + "\n", verification.OutcomeTooLate},
		"another beginning":      {"x" + onceKey, verification.OutcomeTooLate},
		"a digit of no base32":   {onceKey[:len(onceKey)-1] + "1", verification.OutcomeTooLate},
		"upper case":             {"once_ABCDEFGHIJKLMNOPQRSTUVWX27", verification.OutcomeTooLate},
		"a UUID, however random": {"9f2c1c52-6c1f-4d42-b6a0-7b1c35f0d7ab", verification.OutcomeTooLate},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			in := w.initiation()
			in.IdempotencyKey, in.HasIdempotencyKey = test.key, test.key != ""
			message := w.message(w.start(in).Code, "+4915112345678")
			message.SentAt = message.SentAt.Add(-30 * time.Second)
			outcome, _ := w.receive(message)
			w.Expect(outcome).To(Equal(test.want))
		})
	}
}

// TestInitiate_aKeyForOneCall repeats a call, and then uses its key for another one: it is a key like all others there.
func TestInitiate_aKeyForOneCall(t *testing.T) {
	w := newWorld(t)
	in := w.initiation()
	in.IdempotencyKey, in.HasIdempotencyKey = onceKey, true
	first, again := w.start(in), w.start(in)
	w.Expect(again.Existing).To(BeTrue())
	w.Expect(again.Code).To(Equal(first.Code))
	w.Expect(first.Request.Evictable(in.Limits, first.Request.ExpiresAt.Add(verification.CodeRest-1))).To(BeFalse(), "its code rests")

	other := in
	other.Phone = w.number("+4915112345679")
	_, err := w.service.Initiate(t.Context(), other)
	w.Expect(codeOf(err)).To(Equal(verification.CodeIdempotencyKeyReused))
}

// TestInitiate_aKeyForOneCallOfAnOlderReplica repeats a call whose request was stored by a replica that knows one kind of keys.
func TestInitiate_aKeyForOneCallOfAnOlderReplica(t *testing.T) {
	w := newWorld(t)
	in := w.initiation()
	in.IdempotencyKey, in.HasIdempotencyKey = onceKey, true
	first := w.start(in).Request
	w.Expect(w.store.Delete(t.Context(), first.ID, first.Version)).To(Succeed())
	_, err := w.store.Create(t.Context(), verification.New{
		ID: first.ID, Phone: in.Phone, Method: in.Method, TTL: in.TTL, KeyName: in.KeyName, BodyHash: first.BodyHash[:32],
	}, in.Limits)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.start(in).Existing).To(BeTrue())
}

// TestReceive_aKeyForOneCallThatIsUsedTwice has the key of a deleted request make another one: a message of the last two minutes counts
// for it, and an older one does not.
func TestReceive_aKeyForOneCallThatIsUsedTwice(t *testing.T) {
	for name, test := range map[string]struct {
		age  time.Duration
		want verification.Outcome
	}{
		"older":              {verification.ClockSkew + time.Second, verification.OutcomeTooLate},
		"within two minutes": {verification.ClockSkew, verification.OutcomeVerified},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			in := w.initiation()
			in.IdempotencyKey, in.HasIdempotencyKey = onceKey, true
			first := w.start(in)
			old := w.message(first.Code, "+4915112345678")
			_, settled := w.receive(old)
			w.later(test.age)
			w.Expect(w.store.Delete(t.Context(), settled.ID, settled.Version)).To(Succeed())
			w.Expect(w.start(in).Existing).To(BeFalse())
			outcome, _ := w.receive(old)
			w.Expect(outcome).To(Equal(test.want))
		})
	}
}
