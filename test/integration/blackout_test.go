package integration_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// question is a call that a client or a kubelet repeats.
type question string

// The calls during the blackout.
const (
	askInit    question = "init"
	askFinal   question = "status of a final request"
	askPending question = "status of a pending request"
	askReady   question = "readiness"
	askLive    question = "liveness"
)

// sample is one call and its answer.
type sample struct {
	asked  time.Time
	took   time.Duration
	from   *replica
	of     question
	status int
	header http.Header
	id     string // of the request that an init started
}

// survey repeats every call to every replica.
type survey struct {
	stopped chan struct{}
	ended   sync.WaitGroup
	mu      sync.Mutex
	samples []sample
	askers  int
}

// asker identifies one repeated call to one replica.
type asker struct {
	api string
	of  question
}

func (s *shop) startSurvey(ctx context.Context, final, pending string) *survey {
	v := &survey{stopped: make(chan struct{})}
	for _, r := range s.replicas {
		for of, ask := range map[question]func(*sample){
			askInit: func(a *sample) {
				var answer map[string]any
				a.status, a.header, answer = r.sendCall(ctx, s.key, http.MethodPost, "/api/verify/init", `{"phoneNumber": "+49 1511 7654321"}`)
				a.id, _ = answer["requestId"].(string)
			},
			askFinal: func(a *sample) {
				a.status, a.header, _ = r.sendCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+final, "")
			},
			askPending: func(a *sample) {
				a.status, a.header, _ = r.sendCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+pending, "")
			},
			askReady: func(a *sample) { a.status = r.probeStatus(ctx, "/readyz") },
			askLive:  func(a *sample) { a.status = r.probeStatus(ctx, "/livez") },
		} {
			v.askers++
			v.ended.Go(func() {
				defer GinkgoRecover()
				v.repeatCalls(sample{from: r, of: of}, ask)
			})
		}
	}
	return v
}

func (v *survey) repeatCalls(blank sample, ask func(*sample)) {
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-v.stopped:
			return
		case <-ticker.C:
		}
		a := blank
		a.asked = time.Now()
		ask(&a)
		a.took = time.Since(a.asked)
		v.mu.Lock()
		v.samples = append(v.samples, a)
		v.mu.Unlock()
	}
}

// countRounds returns how many of the calls since a time every replica has answered, for each kind of call at least.
func (v *survey) countRounds(since time.Time) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	answers := map[asker]int{}
	for _, a := range v.samples {
		if a.status != 0 && a.asked.After(since) {
			answers[asker{a.from.API, a.of}]++
		}
	}
	if len(answers) < v.askers {
		return 0
	}
	return slices.Min(slices.Collect(maps.Values(answers)))
}

// stop ends the survey and returns its answers.
func (v *survey) stop() []sample {
	close(v.stopped)
	v.ended.Wait()
	return v.samples
}

var _ = Describe("A project whose API server goes away", func() {
	It("keeps its processes running and its promises, reports the outage, and recovers without a restart", func(ctx SpecContext) {
		const away = 15 * time.Second // longer than readinessAge
		c, plane := startCluster(ctx)
		s := newShopIn(ctx, c)
		s.allowSlowAnswers(ctx)
		s.start(ctx, 3)
		final, err := s.createVerifiedRequest(ctx)
		Expect(err).NotTo(HaveOccurred())
		s.awaitDelivered(ctx, []string{final}, 1)
		s.expectVerified(ctx, []string{final})
		pending := s.initRequest(ctx, s.replicas[0], "+49 1511 2345678")

		stopFailing := s.receiver.failFirst()
		due := s.createVerifiedRequests(ctx, 5)
		Eventually(s.countAttempted).WithContext(ctx).WithArguments(due).Should(Equal(len(due)), "the second attempt is due in 5 s")
		stopFailing()
		held, release := s.receiver.holdAnswers()
		flying := s.createVerifiedRequests(ctx, 3)
		Eventually(held).WithContext(ctx).Should(BeNumerically(">=", 3))

		survey := s.startSurvey(ctx, final, pending)
		Expect(plane.StopAPIServer()).To(Succeed())
		down := time.Now()
		release() // the receiver accepted three events, which cannot be recorded now
		Eventually(time.Since).WithContext(ctx).WithArguments(down).Should(BeNumerically(">=", away))
		// The blackout lasts until all have answered: a call that hangs without an API server would never be answered.
		Eventually(survey.countRounds).WithContext(ctx).WithArguments(down.Add(readinessAge)).
			Should(BeNumerically(">=", 3), "answers in the blackout")
		up := time.Now()
		Expect(plane.StartAPIServer()).To(Succeed())
		for _, r := range s.replicas {
			Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue())
		}
		AddReportEntry("ready again after", time.Since(up).Round(10*time.Millisecond).String())
		s.awaitDelivered(ctx, flying, 1)
		s.awaitDelivered(ctx, due, 2)
		AddReportEntry("delivered after", time.Since(up).Round(10*time.Millisecond).String())
		samples := survey.stop()

		for _, r := range s.replicas {
			Expect(r.Running()).To(BeTrue(), "no process exits")
		}
		answeredWell(samples, down, up)
		for _, d := range s.receiver.deliveries() {
			Expect(d.at).NotTo(BeTemporally("~", down.Add(away/2), away/2-3*time.Second), "no event whose state cannot be read")
		}
		got := s.receiver.byRequest(webhookSecret)
		for _, id := range flying {
			Expect(len(got[id])).To(BeNumerically("<=", 2), "once during the blackout and once after it")
		}
		objects := s.listRequests(ctx)
		for _, a := range samples {
			if a.status == http.StatusOK && a.of == askInit {
				Expect(objects).To(HaveKey(a.id), "acknowledged means stored")
			}
		}
	}, SpecTimeout(hang))
})

// countAttempted counts the requests that have an attempt recorded.
func (s *shop) countAttempted(ctx context.Context, ids []string) int {
	count := 0
	for id, o := range s.listRequests(ctx) {
		if slices.Contains(ids, id) && o.Status.Delivery != nil && o.Status.Delivery.Attempts > 0 {
			count++
		}
	}
	return count
}

// readinessAge is the longest time for which a server answers by its last readiness check.
const readinessAge = 10 * time.Second

// answeredWell checks all answers: before the blackout, during it (from a second after its begin, or readinessAge) and after it.
func answeredWell(samples []sample, down, up time.Time) {
	GinkgoHelper()
	want := map[question]int{
		askInit: http.StatusServiceUnavailable, askPending: http.StatusServiceUnavailable, askReady: http.StatusServiceUnavailable,
		askFinal: http.StatusOK, askLive: http.StatusOK,
	}
	during, last, slowest := map[question]int{}, map[string]sample{}, map[question]time.Duration{}
	for _, a := range samples {
		Expect(a.status).To(BeElementOf(http.StatusOK, http.StatusServiceUnavailable),
			"%s, %s after the API server went away, took %s", a.of, a.asked.Sub(down), a.took)
		known := down.Add(time.Second)
		if a.of == askReady {
			known = down.Add(readinessAge)
		}
		if a.asked.After(known) && a.asked.Add(a.took).Before(up) {
			during[a.of]++
			Expect(a.status).To(Equal(want[a.of]), "%s while the API server is down", a.of)
		}
		if a.status == http.StatusServiceUnavailable && a.header != nil {
			Expect(a.header.Get("Retry-After")).NotTo(BeEmpty(), "%s", a.of)
		}
		slowest[a.of] = max(slowest[a.of], a.took)
		// A refusal that took longer is the store's timeout on a loaded machine; one such check makes a server unready until the next one.
		if a.of != askReady && (a.status == http.StatusOK || a.took < time.Second) {
			last[fmt.Sprint(a.of, a.from.API)] = a
		}
	}
	Expect(during).To(HaveLen(len(want)))
	for _, a := range last {
		Expect(a.status).To(Equal(http.StatusOK), "%s at the end", a.of)
	}
	AddReportEntry("answers", fmt.Sprintf("%d, during the blackout %v, slowest %v", len(samples), during, slowest))
}
