package settings

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestLimitsOf_testKeys: a suite of tests that sends an Idempotency-Key with each init may go on at the whole rate.
func TestLimitsOf_testKeys(t *testing.T) {
	g := NewWithT(t)
	s := Settings{Limits: verification.Limits{MaxStored: 7}}
	g.Expect(s.LimitsOf(false).MaxStored).To(Equal(7))
	limits := s.LimitsOf(true)
	g.Expect(limits.PerKey).To(Equal(verification.Rate{Requests: 60, Period: time.Minute}))
	const open = time.Minute
	perMinute := limits.PerKey.Requests / int(limits.PerKey.Period/time.Minute)
	g.Expect(limits.MaxStored).To(BeNumerically(">=", perMinute*int((verification.CodeRest+open)/time.Minute)))
}
