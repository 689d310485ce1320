package verification

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/phoneproof/phoneproof/internal/redact"
)

// TestSpray guesses the delivered digits of 10,000 requests six times each, by turns on the page and as a client, of which three tries
// count. With eight digits that verifies none. Three digits show that the test would see it: about 30, within five standard deviations.
func TestSpray(t *testing.T) {
	const requests, guesses = 10_000, 2 * MaxDeliveredTries
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	secrets := CodeSecrets{Session: [][]byte{[]byte("secret")}, Delivered: [][]byte{[]byte("secret")}}
	usual, weak := NewCodeSpace("shop/acme"), NewCodeSpace("shop/acme")
	weak.deliveredDigits = 3
	for _, c := range []struct {
		space CodeSpace
		want  types.GomegaMatcher
	}{{usual, BeZero()}, {weak, And(BeNumerically(">=", 30-14), BeNumerically("<=", 30+17))}} {
		digits := c.space.deliveredDigits
		hits := 0
		for i := range requests {
			terms := Terms{Level: LevelSession, Deliver: DeliverCode}
			r := NewRequest(New{ID: fmt.Sprintf("vr%024d", i), Method: WhatsApp, TTL: time.Minute, Terms: terms}, now)
			for guess := range guesses {
				entered := SessionCode{redact.New(fmt.Sprintf("%0*d", digits, i%100+guess)), kindDelivered}
				match := func(r *Request) (CodeMatch, error) { return c.space.matchCode(r, entered, secrets) }
				enter := r.ConfirmSession
				if guess%2 == 0 {
					enter = r.CheckSessionCode
				}
				if enter(match, now, 0) == nil {
					hits++
				}
			}
		}
		NewWithT(t).Expect(hits).To(c.want, "%d digits", digits)
	}
}
