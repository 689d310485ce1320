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

// limitsByDefault are those of a project with so many API keys that may start requests and sets none.
func limitsByDefault(keys int, maxStored int32) verification.Limits {
	p := &verifyv1.VerificationProject{}
	for i := range keys {
		p.Spec.APIKeys = append(p.Spec.APIKeys, verifyv1.APIKey{Name: fmt.Sprintf("key-%d", i)})
	}
	p.Spec.Request.MaxStored = &maxStored
	p.Default()
	return settings.FromProject(p, settings.Secrets{}).Limits
}

var _ = Describe("A flood of sign-ups", func() {
	tooManyStored := &verification.Error{Code: verification.CodeTooManyStored}

	It("through one API key refuses no other at the default limits", func(ctx SpecContext) {
		project := newNamespace(ctx) + "/shop"
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
		s := open(ctx, project, Options{Clock: clock})
		const maxStored = verifyv1.DefaultMaxStored / 10 // the share of a key grows with it
		limits := limitsByDefault(2, maxStored)
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
			between   = 4 * time.Second
			perHonest = 20
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

	// starter returns a store whose clock the spec moves, and what starts a request through a key. It stays for the longest.
	starter := func(ctx SpecContext, limits verification.Limits) (*Store, *clocktesting.FakePassiveClock, func(key string) (string, error)) {
		GinkgoHelper()
		project := newNamespace(ctx) + "/shop"
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
		s := open(ctx, project, Options{Clock: clock})
		numbers := 0
		return s, clock, func(key string) (string, error) {
			n := newRequest(project)
			numbers++
			n.KeyName, n.Phone, n.BodyHash = key, number(fmt.Sprintf("+49151%08d", numbers)), strings.Repeat("ab", 32)
			_, err := s.Create(ctx, n, limits)
			return n.ID, err
		}
	}

	It("through all keys but one refuses none of what that one may start", func(ctx SpecContext) {
		const keys, maxStored = 5, 50
		limits := limitsByDefault(keys, maxStored)
		_, _, start := starter(ctx, limits)
		admitted := map[string]int{}
		for _, leaked := range []string{"key-1", "key-2", "key-3", "key-4"} {
			for range maxStored {
				_, err := start(leaked)
				if err == nil {
					admitted[leaked]++
					continue
				}
				Expect(err).To(MatchError(&verification.Error{Code: verification.CodeRateLimited}), "%v", admitted)
			}
		}
		for range limits.PerKey.Requests {
			_, err := start("key-0")
			Expect(err).NotTo(HaveOccurred(), "the honest key, after %v", admitted)
		}
		AddReportEntry(fmt.Sprintf("admitted %v, and %d of the honest key", admitted, limits.PerKey.Requests))
	})

	It("fills the store through one key while no event is delivered, as the documentation says", func(ctx SpecContext) {
		const maxStored = 8
		limits := limitsByDefault(2, maxStored)
		s, clock, start := starter(ctx, limits)
		var undelivered []string
		for range 2 {
			for range limits.PerKey.Requests {
				id, err := start("leaked")
				Expect(err).NotTo(HaveOccurred())
				_, err = s.Update(ctx, id, func(r *verification.Request, now time.Time) error {
					return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
				})
				Expect(err).NotTo(HaveOccurred())
				undelivered = append(undelivered, id)
			}
			clock.SetTime(clock.Now().Add(limits.PerKey.Period))
		}
		_, err := start("honest")
		Expect(err).To(MatchError(tooManyStored))
		Expect(s.Room(limits)).To(MatchError(tooManyStored), "StorageReady says StorageFull")
		_, err = s.Update(ctx, undelivered[0], func(r *verification.Request, now time.Time) error {
			return r.RecordAttempt(verification.Attempt{Event: r.Event(), Number: 1, Epoch: r.Epoch, At: now, Delivered: true})
		})
		Expect(err).NotTo(HaveOccurred())
		Eventually(s.Room).WithContext(ctx).WithTimeout(time.Minute).WithArguments(limits).Should(Succeed(), "the watch brings that the event was taken")
		_, err = start("honest")
		Expect(err).NotTo(HaveOccurred())
	})
})
