package kubernetes

import (
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// limitsByDefault are those of a project that sets none.
func limitsByDefault() verification.Limits {
	p := &verifyv1.VerificationProject{}
	p.Default()
	return settings.FromProject(p, settings.Secrets{}).Limits
}

var _ = Describe("A flood of sign-ups through one API key", func() {
	It("refuses no other key at the default limits", func(ctx SpecContext) {
		project := newNamespace(ctx) + "/shop"
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
		s := open(ctx, project, Options{Clock: clock})
		limits, tooManyStored := limitsByDefault(), &verification.Error{Code: verification.CodeTooManyStored}
		numbers := 0
		start := func(key string) error {
			n := newRequest(project)
			numbers++
			n.KeyName, n.Phone = key, number(fmt.Sprintf("+49151%08d", numbers))
			n.BodyHash = strings.Repeat("ab", 32) // with an Idempotency-Key, so that it stays for the longest
			_, err := s.Create(ctx, n, limits)
			return err
		}
		const (
			lasts     = 20 * time.Minute
			between   = 400 * time.Millisecond // 2.5 a second
			perHonest = 20                     // one every eight seconds
		)
		admitted, full, honest, refused := 0, 0, 0, 0
		for i := range int(lasts / between) {
			clock.SetTime(clock.Now().Add(between))
			switch err := start("signup"); {
			case err == nil:
				admitted++
			case errors.Is(err, tooManyStored):
				full++
			default:
				Expect(err).To(MatchError(&verification.Error{Code: verification.CodeRateLimited}))
			}
			if i%perHonest > 0 {
				continue
			}
			honest++
			if err := start("checkout"); err != nil {
				Expect(err).To(MatchError(tooManyStored))
				refused++
			}
		}
		AddReportEntry(fmt.Sprintf("%d of the flood admitted, %d refused for want of room; of the other key %d of %d refused",
			admitted, full, refused, honest))
		Expect(refused).To(BeZero(), "requests of the other key refused for want of room, of %d", honest)
		Expect(full).To(BeZero(), "the limit refuses the flood before the store is full")
		Expect(s.Room(limits)).To(Succeed())
	})
})
