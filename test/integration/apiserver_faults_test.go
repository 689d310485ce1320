package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("An API server that asks for patience", func() {
	It("is left in peace, and nothing is lost", func(ctx SpecContext) {
		const busy = 20 * time.Second
		s := newShop(ctx)
		s.open(ctx)
		way := s.middleman()
		s.start(ctx, 1)
		r := s.replicas[0]
		s.leader(ctx)
		pending := s.init(ctx, r, "+49 1511 2345678")
		mend := s.receiver.failFirst()
		due := s.verifiedRequests(ctx, 20) // and again in 5 s, which is when nothing can be asked or recorded
		Eventually(s.attempted).WithContext(ctx).WithArguments(due).WithTimeout(patience).Should(Equal(len(due)))
		mend()

		way.answers(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "1")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,`+
				`"message":"too many requests, please try again later","details":{"retryAfterSeconds":1}}`)
			return true
		})
		began, before, asked := time.Now(), way.calls.Load(), 0
		for time.Since(began) < busy {
			for path, method := range map[string]string{"init": http.MethodPost, "status?id=" + pending: http.MethodGet} {
				status, header, _ := r.exchange(ctx, s.key, method, "/api/verify/"+path, initBody)
				Expect(status).To(Equal(http.StatusServiceUnavailable))
				Expect(header.Get("Retry-After")).NotTo(BeEmpty())
				asked++
			}
			Expect(r.probe(ctx, "/livez")).To(Equal(http.StatusOK))
			Eventually(time.After(time.Second)).WithContext(ctx).WithTimeout(patience).Should(Receive())
		}
		calls, took := way.calls.Load()-before, time.Since(began)
		way.answers(nil)
		rate := float64(calls-int64(2*asked)) / took.Seconds() // an init and a status are a call each, a probe another one
		AddReportEntry("while busy", fmt.Sprintf("%d calls in %s, %.1f a second beyond those of clients", calls, took.Round(time.Millisecond), rate))
		Expect(rate).To(BeNumerically("<", 10), "no hot loop")

		Eventually(r.ready).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).Should(BeTrue())
		s.allDelivered(ctx, due, 2)
		s.receiver.byRequest(webhookSecret)
		Expect(s.object(ctx, pending).Status.Phase).To(Equal(verifyv1.PhasePending))
	}, SpecTimeout(3*time.Minute))
})

var _ = Describe("A leader whose watch lags", func() {
	It("sends nothing again, expires nothing that was verified meanwhile, and catches up", func(ctx SpecContext) {
		s := newShop(ctx)
		s.open(ctx)
		seen := s.follow(ctx)
		direct := s.kubeconfig
		way := s.middleman()
		s.start(ctx, 1)
		lagging := s.leader(ctx)
		s.kubeconfig = direct
		s.start(ctx, 1)
		other := s.replicas[1]
		held, free := s.receiver.hold()
		var lapsing, rescued []string
		for range 3 { // both end within the lag, and the leader, who sends what came after them, has seen them pending
			for _, list := range []*[]string{&lapsing, &rescued} {
				id, err := s.request(ctx, 25*time.Second)
				Expect(err).NotTo(HaveOccurred())
				*list = append(*list, id)
			}
		}
		flying := s.verifiedRequests(ctx, 5)
		Eventually(held).WithContext(ctx).WithTimeout(patience).Should(BeEquivalentTo(len(flying)))
		pending := s.init(ctx, lagging, "+49 1511 2345678")
		release := way.hold()
		defer release()

		By("having another one do what the lagging one does not hear of")
		way.refusesLeases()
		Eventually(other.leads).WithContext(ctx).WithTimeout(patience).Should(BeTrue())
		for _, id := range rescued {
			Expect(s.verify(ctx, id)).To(Succeed())
		}
		free()
		s.allDelivered(ctx, append(flying, rescued...), 1)
		sent := len(s.receiver.deliveries())
		Expect(sent).To(Equal(2*len(flying)+len(rescued)), "those that were interrupted twice")

		By("having the lagging one lead again, by what it remembers")
		other.kill()
		way.answers(nil)
		Eventually(lagging.leads).WithContext(ctx).WithTimeout(patience).Should(BeTrue())
		later := s.verifiedRequests(ctx, 5)
		for _, id := range lapsing {
			Eventually(seen.of).WithContext(ctx).WithArguments(id).WithTimeout(2 * patience).
				Should(Equal([]verifyv1.Phase{verifyv1.PhasePending, verifyv1.PhaseExpired}))
		}
		Consistently(s.receiver.deliveries).WithContext(ctx).WithTimeout(5*time.Second).Should(HaveLen(sent), "nothing again, and nothing unheard of")
		Expect(lagging.serves(ctx, s.key, http.MethodGet, "/api/verify/status?id="+rescued[0], "")).
			To(HaveKeyWithValue("status", "VERIFIED"), "what the API server says, not what is remembered")
		Expect(lagging.serves(ctx, s.key, http.MethodGet, "/api/verify/status?id="+pending, "")).To(HaveKeyWithValue("status", "PENDING"))

		release()
		s.allDelivered(ctx, later, 1)
		Expect(s.receiver.deliveries()).To(HaveLen(sent + len(later)))
		s.receiver.byRequest(webhookSecret)
		for _, id := range rescued {
			Eventually(seen.of).WithContext(ctx).WithArguments(id).WithTimeout(patience).
				Should(Equal([]verifyv1.Phase{verifyv1.PhasePending, verifyv1.PhaseVerified}))
		}
	}, SpecTimeout(3*time.Minute))
})

var _ = Describe("Two replicas that both hold the lease", func() {
	It("send some events twice, and lose and contradict nothing", func(ctx SpecContext) {
		s := newShop(ctx)
		s.open(ctx)
		seen := s.follow(ctx)
		s.start(ctx, 1)
		honest := s.leader(ctx)
		s.middleman().keepsALease()
		deceived := s.startOne()
		Eventually(deceived.leads).WithContext(ctx).WithTimeout(patience).Should(BeTrue())
		Eventually(deceived.ready).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).Should(BeTrue())
		added := s.addContinuously(ctx, 50*time.Millisecond)
		Eventually(func() int { return len(s.receiver.deliveries()) }).WithContext(ctx).WithTimeout(time.Minute).Should(BeNumerically(">", 100))
		added.stop()
		s.allDelivered(ctx, added.verified, 1)
		Eventually(func() bool { return honest.leads() && deceived.leads() }).WithContext(ctx).WithTimeout(patience).
			Should(BeTrue(), "both, all the time")
		got := s.receiver.byRequest(webhookSecret)
		duplicates := 0
		for _, id := range added.verified {
			Expect(len(got[id])).To(BeElementOf(1, 2), "each leader once at most")
			duplicates += len(got[id]) - 1
			Eventually(seen.of).WithContext(ctx).WithArguments(id).WithTimeout(patience).
				Should(Equal([]verifyv1.Phase{verifyv1.PhasePending, verifyv1.PhaseVerified}))
		}
		for _, id := range added.lapsed {
			Eventually(seen.of).WithContext(ctx).WithArguments(id).WithTimeout(patience).
				Should(Equal([]verifyv1.Phase{verifyv1.PhasePending, verifyv1.PhaseExpired}))
		}
		Expect(duplicates).NotTo(BeZero(), "two do lead")
		s.agree(ctx, added.verified, "VERIFIED")
		AddReportEntry("counts", fmt.Sprintf("%d events, %d of them twice", len(added.verified), duplicates))
	}, SpecTimeout(3*time.Minute))
})

var _ = Describe("A cluster whose etcd is full", func() {
	It("refuses what is new, answers what is known, sends what it can record, and goes on when there is room", func(ctx SpecContext) {
		c, plane := startCluster(ctx)
		s := newShopIn(ctx, c)
		s.start(ctx, 2)
		r := s.replicas[0]
		final := s.verifiedRequests(ctx, 1)
		s.allDelivered(ctx, final, 1)
		number := "4915112345698"
		started := r.serves(ctx, s.key, http.MethodPost, "/api/verify/init", fmt.Sprintf(`{"phoneNumber": %q}`, number))
		canaries.addText(started["expectedText"].(string))
		pending := started["requestId"].(string)
		mend := s.receiver.failFirst()
		due := s.verifiedRequests(ctx, 10) // and again in 5 s
		Eventually(s.attempted).WithContext(ctx).WithArguments(due).WithTimeout(patience).Should(Equal(len(due)))
		mend()

		free, err := plane.FillUp(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(free)
		Eventually(r.initStatus).WithContext(ctx).WithArguments(s.key).WithTimeout(patience).Should(Equal(http.StatusServiceUnavailable))
		// A lease that cannot be renewed is not firm any more after half its time, and whoever has none sends nothing.
		Eventually(s.led).WithContext(ctx).WithTimeout(patience).Should(BeFalse())
		sent := len(s.receiver.deliveries())
		full := time.Now()
		for time.Since(full) < 8*time.Second {
			for _, r := range s.replicas {
				status, header, _ := r.exchange(ctx, s.key, http.MethodPost, "/api/verify/init", initBody)
				Expect(status).To(Equal(http.StatusServiceUnavailable))
				Expect(header.Get("Retry-After")).NotTo(BeEmpty())
				Expect(r.status(ctx, s.key, final[0])).To(Equal("VERIFIED"))
				Expect(r.serves(ctx, s.key, http.MethodGet, "/api/verify/status?id="+pending, "")).To(HaveKeyWithValue("status", "PENDING"))
				Expect(s.postMessage(ctx, r, number, started["expectedText"].(string))).To(Equal(http.StatusServiceUnavailable), "to be sent again")
				Expect(r.probe(ctx, "/livez")).To(Equal(http.StatusOK))
			}
		}
		Expect(s.receiver.deliveries()).To(HaveLen(sent), "nothing is sent whose attempt cannot be recorded")

		Expect(free(ctx)).To(Succeed())
		Eventually(s.postMessage).WithContext(ctx).WithArguments(ctx, r, number, started["expectedText"]).WithTimeout(patience).
			Should(Equal(http.StatusOK))
		s.allDelivered(ctx, due, 2)
		s.allDelivered(ctx, []string{pending}, 1)
		got := s.receiver.byRequest(webhookSecret)
		for _, id := range due {
			Expect(len(got[id])).To(BeElementOf(2, 3), "one may have been on its way when etcd filled up")
		}
		Eventually(r.initStatus).WithContext(ctx).WithArguments(s.key).WithTimeout(patience).Should(Equal(http.StatusOK))
	}, SpecTimeout(3*time.Minute))
})

// led tells whether any of the replicas says that it leads.
func (s *shop) led() bool {
	for _, r := range s.replicas {
		if r.leads() {
			return true
		}
	}
	return false
}
