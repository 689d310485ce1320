package integration_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

var _ = Describe("An API server that asks for patience", func() {
	It("gets few calls, and nothing is lost", func(ctx SpecContext) {
		const busy = 20 * time.Second
		s := newShop(ctx)
		s.allowSlowAnswers(ctx)
		stopFailing := s.receiver.failFirst()
		due := s.createVerifiedRequests(ctx, webhook.SlowStart) // the second attempt is due in 5 s, when the API server answers nothing
		way := s.startProxy()
		s.start(ctx, 1)
		r := s.replicas[0]
		pending := s.initRequest(ctx, r, "+49 1511 2345678")
		Eventually(s.countAttempted).WithContext(ctx).WithArguments(due).Should(Equal(len(due)))
		stopFailing()

		var calls atomic.Int64
		way.AnswerWith(func(w http.ResponseWriter, _ *http.Request) bool {
			calls.Add(1)
			w.Header().Set("Retry-After", "1")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,`+
				`"message":"too many requests, please try again later","details":{"retryAfterSeconds":1}}`)
			return true
		})
		began, asked := time.Now(), 0
		for time.Since(began) < busy {
			for path, method := range map[string]string{"init": http.MethodPost, "status?id=" + pending: http.MethodGet} {
				status, header, _ := r.sendCall(ctx, s.key, method, "/api/verify/"+path, initBody)
				Expect(status).To(Equal(http.StatusServiceUnavailable))
				Expect(header.Get("Retry-After")).NotTo(BeEmpty())
				asked++
			}
			Expect(r.probeStatus(ctx, "/livez")).To(Equal(http.StatusOK))
			Eventually(time.After(time.Second)).WithContext(ctx).Should(Receive())
		}
		took := time.Since(began)
		way.AnswerWith(nil)
		rate := float64(calls.Load()-int64(2*asked)) / took.Seconds() // an init and a status are one call each; probes may add calls
		AddReportEntry("while busy", fmt.Sprintf("%d calls in %s, %.1f a second beyond those of clients", calls.Load(), took.Round(time.Millisecond), rate))
		Expect(rate).To(BeNumerically("<", 10), "no hot loop")

		Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue())
		s.awaitDelivered(ctx, due, 2)
		s.receiver.byRequest(webhookSecret)
		Expect(s.readRequest(ctx, pending).Status.Phase).To(Equal(verifyv1.PhasePending))
	}, SpecTimeout(hang))
})

var _ = Describe("A leader whose watch lags", func() {
	It("repeats no delivery, expires no request that was verified meanwhile, and catches up", func(ctx SpecContext) {
		s := newShop(ctx)
		s.allowSlowAnswers(ctx)
		seen := s.followPhases(ctx)
		direct := s.kubeconfig
		way := s.startProxy()
		s.start(ctx, 1)
		lagging := s.findLeader(ctx)
		s.kubeconfig = direct
		s.start(ctx, 1)
		other := s.replicas[1]
		held, free := s.receiver.holdAnswers()
		var lapsing, rescued []string
		for range 3 { // both end within the lag; the leader has seen them pending, because it sends events of later requests
			for _, list := range []*[]string{&lapsing, &rescued} {
				id, err := s.storeRequest(ctx, 45*time.Second)
				Expect(err).NotTo(HaveOccurred())
				*list = append(*list, id)
			}
		}
		flying := s.createVerifiedRequests(ctx, 5)
		Eventually(held).WithContext(ctx).Should(BeEquivalentTo(len(flying)))
		pending := s.initRequest(ctx, lagging, "+49 1511 2345678")
		way.LagWatches(hang)
		for _, id := range rescued {
			Expect(s.verifyRequest(ctx, id)).To(Succeed())
		}

		By("letting another replica lead and write what the lagging one does not receive")
		way.AnswerWith(refuseLeases)
		Eventually(other.isLeading).WithContext(ctx).Should(BeTrue())
		free()
		s.awaitDelivered(ctx, append(flying, rescued...), 1)
		sent := len(s.receiver.deliveries())
		Expect(sent).To(Equal(2*len(flying)+len(rescued)), "the interrupted deliveries twice")

		By("letting the lagging replica lead again with its stale cache")
		other.Kill()
		way.AnswerWith(nil)
		Eventually(lagging.isLeading).WithContext(ctx).Should(BeTrue())
		later := s.createVerifiedRequests(ctx, 5)
		for _, id := range lapsing {
			Eventually(seen.phasesOf).WithContext(ctx).WithArguments(id).
				Should(Equal([]verifyv1.Phase{verifyv1.PhasePending, verifyv1.PhaseExpired}))
		}
		Consistently(s.receiver.deliveries).WithContext(ctx).WithTimeout(5*time.Second).Should(HaveLen(sent), "no repetition, and no later event")
		Expect(lagging.mustCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+rescued[0], "")).
			To(HaveKeyWithValue("status", "VERIFIED"), "from the API server, not from the cache")
		Expect(lagging.mustCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+pending, "")).To(HaveKeyWithValue("status", "PENDING"))

		way.LagWatches(0)
		s.awaitDelivered(ctx, later, 1)
		Expect(s.receiver.deliveries()).To(HaveLen(sent + len(later)))
		s.receiver.byRequest(webhookSecret)
		for _, id := range rescued {
			Eventually(seen.phasesOf).WithContext(ctx).WithArguments(id).
				Should(Equal([]verifyv1.Phase{verifyv1.PhasePending, verifyv1.PhaseVerified}))
		}
	}, SpecTimeout(hang))
})

var _ = Describe("Two replicas that both hold the lease", func() {
	It("send some events twice, and lose or contradict none", func(ctx SpecContext) {
		s := newShop(ctx)
		s.openStore(ctx)
		seen := s.followPhases(ctx)
		s.start(ctx, 1)
		honest := s.findLeader(ctx)
		s.startProxy().AnswerWith(fakeLease())
		deceived := s.startOne()
		Eventually(deceived.isLeading).WithContext(ctx).Should(BeTrue())
		Eventually(deceived.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue())
		var verified, lapsed []string
		for next := time.Tick(50 * time.Millisecond); len(s.receiver.deliveries()) <= 100 && ctx.Err() == nil; <-next {
			verified = append(verified, s.createVerifiedRequests(ctx, 1)...)
			if len(verified)%4 == 0 {
				id, err := s.storeRequest(ctx, 100*time.Millisecond)
				Expect(err).NotTo(HaveOccurred())
				lapsed = append(lapsed, id)
			}
		}
		s.awaitDelivered(ctx, verified, 1)
		Eventually(func() bool { return honest.isLeading() && deceived.isLeading() }).WithContext(ctx).
			Should(BeTrue(), "both lead")
		got := s.receiver.byRequest(webhookSecret)
		duplicates := 0
		for _, id := range verified {
			Expect(len(got[id])).To(And(BeNumerically(">=", 1), BeNumerically("<=", honest.countTerms()+deceived.countTerms())), "once in each term at most")
			duplicates += len(got[id]) - 1
			Eventually(seen.phasesOf).WithContext(ctx).WithArguments(id).
				Should(Equal([]verifyv1.Phase{verifyv1.PhasePending, verifyv1.PhaseVerified}))
		}
		for _, id := range lapsed {
			Eventually(seen.phasesOf).WithContext(ctx).WithArguments(id).
				Should(Equal([]verifyv1.Phase{verifyv1.PhasePending, verifyv1.PhaseExpired}))
		}
		Expect(duplicates).NotTo(BeZero(), "both leaders sent events")
		s.expectVerified(ctx, verified)
		AddReportEntry("counts", fmt.Sprintf("%d events, %d of them twice", len(verified), duplicates))
	}, SpecTimeout(hang))
})

var _ = Describe("A cluster whose etcd is full", func() {
	It("refuses new requests, answers for stored ones, sends no event that it cannot record, and recovers with free space", func(ctx SpecContext) {
		c, plane := startCluster(ctx)
		s := newShopIn(ctx, c)
		s.allowSlowAnswers(ctx)
		s.start(ctx, 2)
		r := s.replicas[0]
		final := s.createVerifiedRequests(ctx, 1)
		s.awaitDelivered(ctx, final, 1)
		number := "4915112345698"
		started := r.mustCall(ctx, s.key, http.MethodPost, "/api/verify/init", fmt.Sprintf(`{"phoneNumber": %q}`, number))
		canaries.addText(started["expectedText"].(string))
		pending := started["requestId"].(string)
		stopFailing := s.receiver.failFirst()
		due := s.createVerifiedRequests(ctx, 10) // the second attempt is due in 5 s
		Eventually(s.countAttempted).WithContext(ctx).WithArguments(due).Should(Equal(len(due)))
		stopFailing()

		free, err := plane.FillUp(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(free)
		Eventually(r.initStatus).WithContext(ctx).WithArguments(s.key).Should(Equal(http.StatusServiceUnavailable))
		// A lease that cannot be renewed is not safely held after half its duration, and a replica without a lease sends nothing.
		Eventually(s.anyLeads).WithContext(ctx).Should(BeFalse())
		sent := len(s.receiver.deliveries())
		full := time.Now()
		for time.Since(full) < 8*time.Second {
			for _, r := range s.replicas {
				status, header, _ := r.sendCall(ctx, s.key, http.MethodPost, "/api/verify/init", initBody)
				Expect(status).To(Equal(http.StatusServiceUnavailable))
				Expect(header.Get("Retry-After")).NotTo(BeEmpty())
				Expect(r.readStatus(ctx, s.key, final[0])).To(Equal("VERIFIED"))
				Expect(r.mustCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+pending, "")).To(HaveKeyWithValue("status", "PENDING"))
				Expect(s.postMessage(ctx, r, number, started["expectedText"].(string))).To(Equal(http.StatusServiceUnavailable), "the platform is to send it again")
				Expect(r.probeStatus(ctx, "/livez")).To(Equal(http.StatusOK))
			}
		}
		Expect(s.receiver.deliveries()).To(HaveLen(sent), "no event whose attempt cannot be recorded")

		Expect(free(ctx)).To(Succeed())
		Eventually(s.postMessage).WithContext(ctx).WithArguments(ctx, r, number, started["expectedText"]).
			Should(Equal(http.StatusOK))
		s.awaitDelivered(ctx, due, 2)
		s.awaitDelivered(ctx, []string{pending}, 1)
		got := s.receiver.byRequest(webhookSecret)
		for _, id := range due {
			Expect(len(got[id])).To(BeElementOf(2, 3), "one may have been in flight when etcd filled up")
		}
		Eventually(r.initStatus).WithContext(ctx).WithArguments(s.key).Should(Equal(http.StatusOK))
	}, SpecTimeout(hang))
})

// anyLeads reports whether any of the replicas leads, according to its log.
func (s *shop) anyLeads() bool {
	for _, r := range s.replicas {
		if r.isLeading() {
			return true
		}
	}
	return false
}

// expectVerified checks that every replica returns VERIFIED for all requests.
func (s *shop) expectVerified(ctx context.Context, ids []string) {
	GinkgoHelper()
	for _, r := range s.replicas {
		Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue())
		for _, id := range ids {
			answer := r.mustCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")
			Expect(answer).To(HaveKeyWithValue("status", "VERIFIED"))
		}
	}
}
