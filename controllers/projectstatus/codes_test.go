package projectstatus

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func (w *fakeServer) codesCondition() *metav1.Condition {
	return meta.FindStatusCondition(w.stored.Status.Conditions, verifyv1.ConditionCodesLimited)
}

func (w *fakeServer) startCodes(key string, codes int) {
	w.startCodesBy(verification.WhatsApp, key, codes)
}

func (w *fakeServer) startCodesBy(m verification.Method, key string, codes int) {
	if w.codes == nil {
		w.codes = map[verification.Method]map[string][]time.Time{verification.WhatsApp: {}, verification.Telegram: {}}
	}
	for range codes {
		w.codes[m][key] = append(w.codes[m][key], time.Now())
	}
}

// withCodes has each API key start that many codes in 24 h.
func withCodes(s *settings.Settings, share int) {
	s.WhatsApp = &settings.WhatsApp{Codes: &settings.Codes{}}
	s.Limits.Codes.PerDay = verification.Rate{Requests: share, Period: 24 * time.Hour}
	s.Keys = settings.NewKeys(
		settings.Key{Name: "shop", Scopes: settings.ScopeDeliver}, settings.Key{Name: "kiosk", Hash: [32]byte{1}, Scopes: settings.ScopeDeliver})
}

func TestCodesLimited_atHalf(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		withCodes(w.current, 7)
		w.begin()
		w.startCodes("shop", 3)
		w.startCodes("kiosk", 3)
		w.startCodes("gone", 7)
		pass(2 * time.Minute)
		w.Expect(w.codesCondition()).To(BeNil(), "each key has a share of its own")

		pass(10 * time.Hour)
		w.startCodes("shop", 1)
		pass(2 * time.Minute)
		w.Expect(*w.codesCondition()).To(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", verifyv1.ReasonCodesHalfUsed), HaveField("ObservedGeneration", BeEquivalentTo(7)),
			HaveField("Message", And(ContainSubstring("API keys: shop; "), ContainSubstring("maxPerDay"))),
		))
		w.Expect(w.events).To(Equal([]string{"CodesLimited CodesHalfUsed bad"}))

		w.unknown = errors.New("away")
		pass(20 * time.Hour)
		w.Expect(w.codesCondition()).NotTo(BeNil(), "a store that does not answer changes nothing")
		w.unknown = nil
		pass(2 * time.Minute)
		w.Expect(w.codesCondition()).To(BeNil(), "three of them are of another day")
	})
}

// TestCodesLimited_byRemovedKeys counts in the project's limit, so that no code of the present keys is sent.
func TestCodesLimited_byRemovedKeys(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		withCodes(w.current, 7)
		w.current.Limits.Codes.Project = verification.Rate{Requests: 14, Period: 24 * time.Hour}
		w.begin()
		w.startCodes("gone", 3)
		w.startCodes("leaked", 4)
		pass(2 * time.Minute)
		w.Expect(w.codesCondition()).To(HaveField("Message", ContainSubstring("API keys: those that were removed; ")))
	})
}

// TestCodesLimited_ofEachMessenger has a share of its own, and is named.
func TestCodesLimited_ofEachMessenger(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		withCodes(w.current, 7)
		w.current.Telegram = &settings.Telegram{Codes: &settings.GatewayCodes{}}
		w.current.Limits.GatewayCodes.PerDay = verification.Rate{Requests: 4, Period: 24 * time.Hour}
		w.begin()
		w.startCodes("shop", 3)
		w.startCodesBy(verification.Telegram, "kiosk", 2)
		pass(2 * time.Minute)
		w.Expect(w.codesCondition().Message).To(And(ContainSubstring("share of spec.telegram.codes.maxPerDay was used within 24h by the API keys: kiosk; at"),
			Not(ContainSubstring("whatsapp"))))
		w.startCodes("shop", 1)
		pass(2 * time.Minute)
		w.Expect(w.codesCondition().Message).To(And(ContainSubstring("keys: shop; of spec.telegram.codes.maxPerDay"), ContainSubstring("keys: kiosk; at")))
	})
}

// TestCodesLimited_withoutCodes asks the store nothing.
func TestCodesLimited_withoutCodes(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		withCodes(w.current, 1)
		w.startCodes("shop", 1)
		w.begin()
		pass(2 * time.Minute)
		w.Expect(w.codesCondition()).NotTo(BeNil())
		w.current = simpleSettings()
		w.changes.Notify("")
		pass(2 * time.Minute)
		w.Expect(w.codesCondition()).To(BeNil())
		asked := w.codesAsked
		pass(time.Hour)
		w.Expect(w.codesAsked).To(Equal(asked))
	})
}
