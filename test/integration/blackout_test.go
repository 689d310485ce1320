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

// question is what a client or a kubelet asks again and again.
type question string

// The questions of the blackout.
const (
	askInit    question = "init"
	askFinal   question = "status of a final request"
	askPending question = "status of a pending request"
	askReady   question = "readiness"
	askLive    question = "liveness"
)

// sample is one answer.
type sample struct {
	asked  time.Time
	took   time.Duration
	from   *replica
	of     question
	status int
	header http.Header
	id     string // of the request that an init was answered with
}

// survey asks every replica every question, all the time.
type survey struct {
	stopped chan struct{}
	ended   sync.WaitGroup
	mu      sync.Mutex
	samples []sample
	askers  int
}

// asker is one replica that is asked one question.
type asker struct {
	api string
	of  question
}

func (s *shop) survey(ctx context.Context, final, pending string) *survey {
	v := &survey{stopped: make(chan struct{})}
	for _, r := range s.replicas {
		for of, ask := range map[question]func(*sample){
			askInit: func(a *sample) {
				var answer map[string]any
				a.status, a.header, answer = r.exchange(ctx, s.key, http.MethodPost, "/api/verify/init", `{"phoneNumber": "+49 1511 7654321"}`)
				a.id, _ = answer["requestId"].(string)
			},
			askFinal: func(a *sample) {
				a.status, a.header, _ = r.exchange(ctx, s.key, http.MethodGet, "/api/verify/status?id="+final, "")
			},
			askPending: func(a *sample) {
				a.status, a.header, _ = r.exchange(ctx, s.key, http.MethodGet, "/api/verify/status?id="+pending, "")
			},
			askReady: func(a *sample) { a.status = r.probe(ctx, "/readyz") },
			askLive:  func(a *sample) { a.status = r.probe(ctx, "/livez") },
		} {
			v.askers++
			v.ended.Go(func() {
				defer GinkgoRecover()
				v.repeat(sample{from: r, of: of}, ask)
			})
		}
	}
	return v
}

func (v *survey) repeat(blank sample, ask func(*sample)) {
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

// rounds returns how often every replica has answered every question that it was asked since a time.
func (v *survey) rounds(since time.Time) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	answers := map[asker]int{}
	for _, a := range v.samples {
		if a.status != 0 && a.asked.After(since) {
			answers[asker{a.from.api, a.of}]++
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
	It("keeps its processes and promises, says so, and resumes by itself", func(ctx SpecContext) {
		const away = 15 * time.Second
		c, plane := startCluster(ctx)
		s := newShopIn(ctx, c)
		s.start(ctx, 3)
		final, err := s.verifiedRequest(ctx)
		Expect(err).NotTo(HaveOccurred())
		s.allDelivered(ctx, []string{final}, 1)
		s.agree(ctx, []string{final}, "VERIFIED")
		pending := s.init(ctx, s.replicas[0], "+49 1511 2345678")

		mend := s.receiver.failFirst()
		due := s.verifiedRequests(ctx, 5)
		Eventually(s.attempted).WithContext(ctx).WithArguments(due).WithTimeout(patience).Should(Equal(len(due)), "and again in 5 s")
		mend()
		held, release := s.receiver.hold()
		flying := s.verifiedRequests(ctx, 3)
		Eventually(held).WithContext(ctx).WithTimeout(patience).Should(BeNumerically(">=", 3))

		survey := s.survey(ctx, final, pending)
		Expect(plane.StopAPIServer()).To(Succeed())
		down := time.Now()
		release() // the receiver took three events, which nobody can record now
		Eventually(time.Since).WithContext(ctx).WithArguments(down).WithTimeout(time.Minute).Should(BeNumerically(">=", away))
		// It lasts until all have answered: what hangs for want of an API server would never do so.
		Eventually(survey.rounds).WithContext(ctx).WithArguments(down).WithTimeout(2*patience).Should(BeNumerically(">=", 3), "answers in the blackout")
		up := time.Now()
		Expect(plane.StartAPIServer()).To(Succeed())
		for _, r := range s.replicas {
			Eventually(r.ready).WithContext(ctx).WithArguments(ctx).WithTimeout(2 * patience).Should(BeTrue())
		}
		AddReportEntry("ready again after", time.Since(up).Round(10*time.Millisecond).String())
		s.allDelivered(ctx, flying, 1)
		s.allDelivered(ctx, due, 2)
		AddReportEntry("delivered after", time.Since(up).Round(10*time.Millisecond).String())
		samples := survey.stop()

		for _, r := range s.replicas {
			Expect(r.running()).To(BeTrue(), "no process exits")
		}
		answeredWell(samples, down, up)
		for _, d := range s.receiver.deliveries() {
			Expect(d.at).NotTo(BeTemporally("~", down.Add(away/2), away/2-3*time.Second), "nothing is sent whose state cannot be read")
		}
		got := s.receiver.byRequest(webhookSecret)
		for _, id := range flying {
			Expect(len(got[id])).To(BeNumerically("<=", 2), "once in the blackout and once after it")
		}
		objects := s.objects(ctx)
		for _, a := range samples {
			if a.status == http.StatusOK && a.of == askInit {
				Expect(objects).To(HaveKey(a.id), "acknowledged is stored")
			}
		}
	}, SpecTimeout(3*time.Minute))
})

// attempted counts those of the requests that have an attempt recorded.
func (s *shop) attempted(ctx context.Context, ids []string) int {
	count := 0
	for id, o := range s.objects(ctx) {
		if slices.Contains(ids, id) && o.Status.Delivery != nil && o.Status.Delivery.Attempts > 0 {
			count++
		}
	}
	return count
}

// answeredWell checks all answers: in the blackout, from a second after its begin, and before and after it.
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
			known = down.Add(4 * time.Second) // a check begins a second after the last one, and has a second
		}
		if a.asked.After(known) && a.asked.Add(a.took).Before(up) {
			during[a.of]++
			Expect(a.status).To(Equal(want[a.of]), "%s while the API server is away", a.of)
		}
		if a.status == http.StatusServiceUnavailable && a.header != nil {
			Expect(a.header.Get("Retry-After")).NotTo(BeEmpty(), "%s", a.of)
		}
		slowest[a.of] = max(slowest[a.of], a.took)
		if a.status == http.StatusOK || a.took < time.Second { // else the store had no time, on a machine that is busy
			last[fmt.Sprint(a.of, a.from.api)] = a
		}
	}
	Expect(during).To(HaveLen(len(want)))
	for _, a := range last {
		Expect(a.status).To(Equal(http.StatusOK), "%s at the end", a.of)
	}
	AddReportEntry("answers", fmt.Sprintf("%d, during the blackout %v, slowest %v", len(samples), during, slowest))
}
