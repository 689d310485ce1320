package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// stream adds requests to a shop until it is stopped.
type stream struct {
	stopped  chan struct{}
	ended    chan struct{}
	verified []string // to read after stop
	lapsed   []string // to read after stop
}

// addContinuously verifies a request at every tick, and lets another one lapse at every fourth.
func (s *shop) addContinuously(ctx context.Context, every time.Duration) *stream {
	t := &stream{stopped: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer GinkgoRecover()
		defer close(t.ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-t.stopped:
				return
			case <-ticker.C:
			}
			id, err := s.verifiedRequest(ctx)
			Expect(err).NotTo(HaveOccurred())
			t.verified = append(t.verified, id)
			if n%4 == 0 {
				id, err := s.request(ctx, 100*time.Millisecond)
				Expect(err).NotTo(HaveOccurred())
				t.lapsed = append(t.lapsed, id)
			}
		}
	}()
	return t
}

func (t *stream) stop() {
	close(t.stopped)
	<-t.ended
}

var _ = Describe("The loops of a project served by several replicas", func() {
	DescribeTable("lose no event and contradict nothing when their holder is killed again and again", func(ctx SpecContext, kills int) {
		const inFlight = 3
		s := newShop(ctx)
		s.lease = []string{"--lease-duration=4s", "--lease-renew-deadline=3s", "--lease-retry-period=250ms"}
		s.open(ctx)
		seen := s.follow(ctx)
		s.start(ctx, 3)
		added := s.addContinuously(ctx, 200*time.Millisecond)
		for round := range kills {
			leader := s.leader(ctx)
			held, release := s.receiver.hold()
			Eventually(held).WithContext(ctx).WithTimeout(patience).Should(BeNumerically(">=", inFlight), "events in flight")
			if round%2 == 1 {
				release() // half of the kills come between an answer and its record
			}
			leader.kill()
			release()
			s.startOne()
		}
		added.stop()

		s.allDelivered(ctx, added.verified, 1)
		got := s.receiver.byRequest(webhookSecret)
		duplicates := 0
		for _, id := range added.verified {
			Expect(got).To(HaveKey(id), "every verified request reached the receiver")
			duplicates += len(got[id]) - 1
			Eventually(seen.of).WithContext(ctx).WithArguments(id).WithTimeout(patience).
				Should(Equal([]verifyv1.Phase{verifyv1.PhasePending, verifyv1.PhaseVerified}))
		}
		Expect(got).To(HaveLen(len(added.verified)), "no event of what is not verified")
		// At least the even rounds killed while the receiver had events that it had not answered.
		Expect(duplicates).To(And(BeNumerically(">=", kills/2*inFlight), BeNumerically("<=", kills*webhook.MaxInFlight)))
		AddReportEntry("counts", fmt.Sprintf("%d verified, %d lapsed, %d kills, %d duplicates", len(added.verified), len(added.lapsed), kills, duplicates))

		for _, id := range added.lapsed {
			Eventually(seen.of).WithContext(ctx).WithArguments(id).WithTimeout(30 * time.Second).
				Should(Equal([]verifyv1.Phase{verifyv1.PhasePending, verifyv1.PhaseExpired}))
			Expect(s.verify(ctx, id)).To(MatchError(verification.ErrFinal))
		}
		s.agree(ctx, added.verified, "VERIFIED")
		s.agree(ctx, added.lapsed, "EXPIRED")
	},
		Entry("8 times", SpecTimeout(8*time.Minute), 8),
		Entry("20 times", Label("slow"), SpecTimeout(20*time.Minute), 20),
	)

	It("send nothing stale after their holder was stopped for two lease times", func(ctx SpecContext) {
		s := newShop(ctx)
		s.open(ctx)
		s.start(ctx, 2)
		stopped := s.leader(ctx)
		held, release := s.receiver.hold()
		ids := s.verifiedRequests(ctx, 3)
		Eventually(held).WithContext(ctx).WithTimeout(patience).Should(BeEquivalentTo(3), "in flight when it is stopped")
		stopped.freeze()
		since := time.Now()
		s.receiver.answerWith(http.StatusNoContent) // but the three in flight are not answered yet
		ids = append(ids, s.verifiedRequests(ctx, 10)...)

		s.allDelivered(ctx, ids, 1)
		AddReportEntry("takeover", time.Since(since).Round(10*time.Millisecond).String())
		Expect(s.receiver.deliveries()).To(HaveLen(3+len(ids)), "the three in flight twice, the others once")
		states := s.objects(ctx)
		Eventually(time.Since).WithContext(ctx).WithArguments(since).WithTimeout(time.Minute).Should(BeNumerically(">", 2*leaseDuration))
		Expect(stopped.leads()).To(BeTrue(), "it does not know yet")

		stopped.thaw()
		release() // now it has answers to record
		Eventually(stopped.leads).WithContext(ctx).WithTimeout(patience).Should(BeFalse())
		Consistently(s.receiver.deliveries).WithContext(ctx).WithTimeout(2 * time.Second).Should(HaveLen(3 + len(ids)))
		for id, o := range s.objects(ctx) {
			Expect(o.ResourceVersion).To(Equal(states[id].ResourceVersion), "nothing was written to %s", id)
		}
		s.receiver.byRequest(webhookSecret)

		for _, r := range s.replicas { // A lease can have changed hands again, where a machine is too busy to renew it.
			if r != stopped {
				r.kill()
			}
		}
		more := s.verifiedRequests(ctx, 3)
		s.allDelivered(ctx, more, 1)
		Expect(s.leader(ctx)).To(BeIdenticalTo(stopped), "it leads again")
		Expect(s.receiver.deliveries()).To(HaveLen(3 + len(ids) + len(more)))
		s.agree(ctx, append(ids, more...), "VERIFIED")
	}, SpecTimeout(4*time.Minute))
})

// agree checks that every living replica answers the same status for all of the requests.
func (s *shop) agree(ctx context.Context, ids []string, want string) {
	GinkgoHelper()
	living := 0
	for _, r := range s.replicas {
		if !r.running() {
			continue
		}
		living++
		Eventually(r.ready).WithContext(ctx).WithArguments(ctx).WithTimeout(30 * time.Second).Should(BeTrue())
		for _, id := range ids {
			answer := r.serves(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")
			Expect(answer).To(HaveKeyWithValue("status", want))
		}
	}
	Expect(living).NotTo(BeZero())
}
