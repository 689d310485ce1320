package integration_test

import (
	"context"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/watch"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

var _ = Describe("A receiver that hangs", func() {
	It("delays only its own events", func(ctx SpecContext) {
		const backlog, others = 60, 4
		s := newShop(ctx)
		s.allowSlowAnswers(ctx)
		ends := s.followEnds(ctx)
		held, release := s.receiver.holdAnswers()
		// Before an attempt can begin: the receiver must not hang for so long that a third is due, which is minutes away.
		ids := s.createVerifiedRequests(ctx, backlog)
		s.start(ctx, 1)
		Eventually(held).WithContext(ctx).Should(BeNumerically(">=", webhook.SlowStart), "every slot is in use")
		s.expectProgress(ctx, ends, others)
		Expect(s.listUndelivered(ctx, ids)).To(HaveLen(len(ids)), "the receiver still hangs")
		release()
		Eventually(s.listUndelivered).WithContext(ctx).WithArguments(ids).
			WithPolling(250 * time.Millisecond).Should(BeEmpty())
	}, SpecTimeout(hang))
})

// expectProgress starts and reads verifications, and waits until due requests are expired and deleted.
func (s *shop) expectProgress(ctx context.Context, ends *endedRequests, n int) {
	GinkgoHelper()
	r := s.replicas[0]
	var lapsed, old []string
	for range n {
		lapsed = append(lapsed, s.createBackdated(ctx, 30*time.Minute))
		old = append(old, s.createBackdated(ctx, 2*time.Hour))
		id := s.initRequest(ctx, r, "+49 1511 2345678")
		r.mustCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")
	}
	for _, id := range lapsed {
		Eventually(ends.isExpired).WithContext(ctx).WithArguments(id).Should(BeTrue())
	}
	for _, id := range old {
		Eventually(ends.isGone).WithContext(ctx).WithArguments(id).Should(BeTrue())
	}
}

// endedRequests are the requests that a watch reported as expired and as deleted.
type endedRequests struct {
	mu      sync.Mutex
	expired map[string]bool
	deleted map[string]bool
}

// followEnds watches the project's requests until the spec ends.
func (s *shop) followEnds(ctx context.Context) *endedRequests {
	GinkgoHelper()
	e := &endedRequests{expired: map[string]bool{}, deleted: map[string]bool{}}
	s.watchRequests(ctx, e.recordChange)
	return e
}

func (e *endedRequests) recordChange(change watch.EventType, o *verifyv1.VerificationRequest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.Status.Phase == verifyv1.PhaseExpired {
		e.expired[o.Name] = true
	}
	if change == watch.Deleted {
		e.deleted[o.Name] = true
	}
}

func (e *endedRequests) isExpired(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.expired[id]
}

func (e *endedRequests) isGone(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.deleted[id]
}
