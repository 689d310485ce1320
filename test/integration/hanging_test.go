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
	It("delays nothing but its own events", func(ctx SpecContext) {
		const backlog, others = 60, 4
		s := newShop(ctx)
		s.change(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Webhook.Timeout = "30s" })
		s.open(ctx)
		s.start(ctx, 1)
		ends := s.followEnds(ctx)
		held, release := s.receiver.hold()
		ids := s.verifiedRequests(ctx, backlog)
		Eventually(held).WithContext(ctx).WithTimeout(patience).Should(BeNumerically(">=", webhook.SlowStart), "every slot is taken")
		s.works(ctx, ends, others)
		Expect(s.undelivered(ctx, ids)).To(HaveLen(len(ids)), "it still hangs")
		release()
		Eventually(s.undelivered).WithContext(ctx).WithArguments(ids).WithTimeout(90 * time.Second).
			WithPolling(250 * time.Millisecond).Should(BeEmpty())
	}, SpecTimeout(3*time.Minute))
})

// works starts verifications and asks for them, and returns when requests whose time has come are expired and deleted.
func (s *shop) works(ctx context.Context, ends *ends, n int) {
	GinkgoHelper()
	r := s.replicas[0]
	var lapsed, old []string
	for range n {
		lapsed = append(lapsed, s.backdated(ctx, 30*time.Minute))
		old = append(old, s.backdated(ctx, 2*time.Hour))
		id := s.init(ctx, r, "+49 1511 2345678")
		r.serves(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")
	}
	for _, id := range lapsed {
		Eventually(ends.expires).WithContext(ctx).WithArguments(id).WithTimeout(patience).Should(BeTrue())
	}
	for _, id := range old {
		Eventually(ends.goes).WithContext(ctx).WithArguments(id).WithTimeout(patience).Should(BeTrue())
	}
}

// ends are the requests that the API server told of as expired and as deleted.
type ends struct {
	mu      sync.Mutex
	expired map[string]bool
	deleted map[string]bool
}

// followEnds watches the project's requests until the spec ends.
func (s *shop) followEnds(ctx context.Context) *ends {
	GinkgoHelper()
	e := &ends{expired: map[string]bool{}, deleted: map[string]bool{}}
	s.watchRequests(ctx, e.recordChange)
	return e
}

func (e *ends) recordChange(change watch.EventType, o *verifyv1.VerificationRequest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.Status.Phase == verifyv1.PhaseExpired {
		e.expired[o.Name] = true
	}
	if change == watch.Deleted {
		e.deleted[o.Name] = true
	}
}

func (e *ends) expires(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.expired[id]
}

func (e *ends) goes(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.deleted[id]
}
