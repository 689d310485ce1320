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

// requestStream adds requests to a shop until it is stopped.
type requestStream struct {
	stopped  chan struct{}
	ended    chan struct{}
	verified []string // read it only after stop
	lapsed   []string // read it only after stop
}

// addContinuously verifies a request at every tick, and lets another one lapse at every fourth.
func (s *shop) addContinuously(ctx context.Context, every time.Duration) *requestStream {
	t := &requestStream{stopped: make(chan struct{}), ended: make(chan struct{})}
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
			id, err := s.createVerifiedRequest(ctx)
			Expect(err).NotTo(HaveOccurred())
			t.verified = append(t.verified, id)
			if n%4 == 0 {
				id, err := s.storeRequest(ctx, 100*time.Millisecond)
				Expect(err).NotTo(HaveOccurred())
				t.lapsed = append(t.lapsed, id)
			}
		}
	}()
	return t
}

func (t *requestStream) stop() {
	close(t.stopped)
	<-t.ended
}

var _ = Describe("The loops of a project served by several replicas", func() {
	DescribeTable("lose no event and contradict nothing when their leader is killed again and again", func(ctx SpecContext, kills int) {
		const inFlight = 3
		s := newShop(ctx)
		s.lease = []string{"--lease-duration=4s", "--lease-renew-deadline=3s", "--lease-retry-period=250ms"}
		s.allowSlowAnswers(ctx)
		s.openStore(ctx)
		seen := s.followPhases(ctx)
		s.start(ctx, 3)
		added := s.addContinuously(ctx, 200*time.Millisecond)
		for round := range kills {
			leader := s.findLeader(ctx)
			held, release := s.receiver.holdAnswers()
			Eventually(held).WithContext(ctx).Should(BeNumerically(">=", inFlight), "events in flight")
			if round%2 == 1 {
				release() // half of the kills come between an answer and its record
			}
			leader.kill()
			release()
			s.startOne()
		}
		added.stop()

		s.awaitDelivered(ctx, added.verified, 1)
		got := s.receiver.byRequest(webhookSecret)
		duplicates := 0
		for _, id := range added.verified {
			Expect(got).To(HaveKey(id), "every verified request reached the receiver")
			duplicates += len(got[id]) - 1
			Eventually(seen.phasesOf).WithContext(ctx).WithArguments(id).
				Should(Equal([]verifyv1.Phase{verifyv1.PhasePending, verifyv1.PhaseVerified}))
		}
		Expect(got).To(HaveLen(len(added.verified)), "no event of an unverified request")
		// At least the even rounds kill the leader while the receiver has unanswered events.
		Expect(duplicates).To(And(BeNumerically(">=", kills/2*inFlight), BeNumerically("<=", kills*webhook.MaxInFlight)))
		AddReportEntry("counts", fmt.Sprintf("%d verified, %d lapsed, %d kills, %d duplicates", len(added.verified), len(added.lapsed), kills, duplicates))

		for _, id := range added.lapsed {
			Eventually(seen.phasesOf).WithContext(ctx).WithArguments(id).
				Should(Equal([]verifyv1.Phase{verifyv1.PhasePending, verifyv1.PhaseExpired}))
			Expect(s.verifyRequest(ctx, id)).To(MatchError(verification.ErrFinal))
		}
		s.expectStatus(ctx, added.verified, "VERIFIED")
		s.expectStatus(ctx, added.lapsed, "EXPIRED")
	},
		Entry("8 times", SpecTimeout(hang), 8),
		Entry("20 times", Label("slow"), SpecTimeout(20*time.Minute), 20),
	)

	It("send nothing stale after their leader was frozen for two lease durations", func(ctx SpecContext) {
		s := newShop(ctx)
		s.allowSlowAnswers(ctx)
		s.openStore(ctx)
		s.start(ctx, 2)
		stopped := s.findLeader(ctx)
		held, release := s.receiver.holdAnswers()
		ids := s.createVerifiedRequests(ctx, 3)
		Eventually(held).WithContext(ctx).Should(BeEquivalentTo(3), "in flight when it is frozen")
		stopped.freeze()
		since := time.Now()
		s.receiver.answerWith(http.StatusNoContent) // but the three in flight are not answered yet
		ids = append(ids, s.createVerifiedRequests(ctx, 10)...)

		s.awaitDelivered(ctx, ids, 1)
		AddReportEntry("takeover", time.Since(since).Round(10*time.Millisecond).String())
		Expect(s.receiver.deliveries()).To(HaveLen(3+len(ids)), "the three in flight twice, the others once")
		states := s.listRequests(ctx)
		Eventually(time.Since).WithContext(ctx).WithArguments(since).Should(BeNumerically(">", 2*leaseDuration))
		Expect(stopped.isLeading()).To(BeTrue(), "it does not know yet")

		stopped.thaw()
		release() // now it has answers to record
		// Not its metric: on a loaded machine it may lead again before that is read.
		Eventually(stopped.output).WithContext(ctx).Should(ContainSubstring("no longer leading"))
		Consistently(s.receiver.deliveries).WithContext(ctx).WithTimeout(2 * time.Second).Should(HaveLen(3 + len(ids)))
		for id, o := range s.listRequests(ctx) {
			Expect(o.ResourceVersion).To(Equal(states[id].ResourceVersion), "nothing was written to %s", id)
		}
		s.receiver.byRequest(webhookSecret)

		for _, r := range s.replicas { // On a loaded machine the lease may not have been renewed and may have changed its holder again.
			if r != stopped {
				r.kill()
			}
		}
		more := s.createVerifiedRequests(ctx, 3)
		s.awaitDelivered(ctx, more, 1)
		Expect(s.findLeader(ctx)).To(BeIdenticalTo(stopped), "it leads again")
		Expect(s.receiver.deliveries()).To(HaveLen(3 + len(ids) + len(more)))
		s.expectStatus(ctx, append(ids, more...), "VERIFIED")
	}, SpecTimeout(hang))
})

// expectStatus checks that every running replica returns the same status for all requests.
func (s *shop) expectStatus(ctx context.Context, ids []string, want string) {
	GinkgoHelper()
	living := 0
	for _, r := range s.replicas {
		if !r.isRunning() {
			continue
		}
		living++
		Eventually(r.isReady).WithContext(ctx).WithArguments(ctx).Should(BeTrue())
		for _, id := range ids {
			answer := r.mustCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")
			Expect(answer).To(HaveKeyWithValue("status", want))
		}
	}
	Expect(living).NotTo(BeZero())
}
