package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// floodResult counts the answers to a flood.
type floodResult struct{ admitted, refused, late, other atomic.Int64 }

// floodInits starts verifications with one key as fast as possible, from that many clients, until stop.
func (s *shop) floodInits(ctx context.Context, clients int) (seen *floodResult, stop func()) {
	seen = &floodResult{}
	over := make(chan struct{})
	var all sync.WaitGroup
	var numbers atomic.Int64
	for range clients {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-ctx.Done():
					return
				default:
				}
				body := fmt.Sprintf(`{"phoneNumber": "+49152%08d"}`, numbers.Add(1))
				status, header, _ := s.replicas[0].sendCall(ctx, s.key, http.MethodPost, "/api/verify/init", body)
				switch {
				case status == http.StatusOK:
					seen.admitted.Add(1)
				case status == http.StatusTooManyRequests && header.Get("Retry-After") != "":
					seen.refused.Add(1)
				case status == http.StatusServiceUnavailable && header.Get("Retry-After") != "":
					seen.late.Add(1)
				default:
					seen.other.Add(1)
				}
			}
		})
	}
	return seen, func() {
		close(over)
		all.Wait()
	}
}

// timeInits starts that many verifications, one after the other, and returns how long each took. One that times out on a
// loaded machine is repeated.
func (s *shop) timeInits(ctx context.Context, n int) []time.Duration {
	GinkgoHelper()
	var took []time.Duration
	for began := time.Now(); len(took) < n; began = time.Now() {
		status, answer := s.replicas[0].callAPI(ctx, s.key, http.MethodPost, "/api/verify/init", fmt.Sprintf(`{"phoneNumber": "+49151%08d"}`, len(took)))
		if status == http.StatusServiceUnavailable {
			continue
		}
		Expect(status).To(Equal(http.StatusOK), "%v", answer)
		took = append(took, time.Since(began))
	}
	return took
}

// expectIsolation floods one shop while another one works, and checks the admissions of both.
func expectIsolation(ctx context.Context, limit int64, shop, neighbour *shop) {
	GinkgoHelper()
	const asked, clients = 100, 16
	neighbour.timeInits(ctx, 10) // warms up connections and caches
	usual := neighbour.timeInits(ctx, asked)
	seen, stop := shop.floodInits(ctx, clients)
	Eventually(seen.refused.Load).WithContext(ctx).Should(BeNumerically(">", clients))
	before := seen.refused.Load()
	beside := neighbour.timeInits(ctx, asked) // each is answered, or it fails
	Eventually(seen.refused.Load).WithContext(ctx).Should(BeNumerically(">", before), "the flood went on meanwhile")
	stop()
	Expect(seen.admitted.Load()).To(And(BeNumerically(">", 0), BeNumerically("<=", limit)))
	if seen.late.Load() == 0 { // a call that timed out may have been admitted
		Expect(seen.admitted.Load()).To(Equal(limit))
	}
	Expect(seen.other.Load()).To(BeZero(), "every refusal has Retry-After")
	AddReportEntry("flood", fmt.Sprintf("%d refused; p50 and p99 of the neighbour %s and %s, beside the flood %s and %s", seen.refused.Load(),
		percentile(usual, 50), percentile(usual, 99), percentile(beside, 50), percentile(beside, 99)))
}

// The latencies of neighbours are only reported, because one machine runs the flood and all replicas.
var _ = Describe("A flood of inits with one key", func() {
	const limit = 50
	lower := func(p *verifyv1.VerificationProject) {
		p.Spec.RateLimit.PerKey = &verifyv1.Rate{Requests: limit, Period: "1h"}
		p.Spec.Request.Retention = "2h"
	}
	It("stops no other project of the cluster", func(ctx SpecContext) {
		shop, neighbour := newShop(ctx), newShop(ctx)
		shop.editProject(ctx, lower)
		for _, s := range []interface{ start(context.Context, int) }{shop, neighbour} {
			s.start(ctx, 1)
		}
		expectIsolation(ctx, limit, shop, neighbour)
	}, SpecTimeout(hang))

	It("stops no other project of the database", func(ctx SpecContext) {
		d := newDatabase(ctx)
		one, neighbour := newDatabaseShopWith(ctx, d, lower), newDatabaseShop(ctx, d)
		for _, o := range []*databaseShop{one, neighbour} {
			o.start(ctx, 1)
		}
		expectIsolation(ctx, limit, one.shop, neighbour.shop)
	}, SpecTimeout(hang))
})

func percentile(samples []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[(len(sorted)-1)*p/100]
}
