package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// roundsVariable makes the comparison below as long as its reader likes: a few rounds show that nothing is badly wrong,
// many show figures.
const roundsVariable = "PHONEPROOF_ROUNDS"

var _ = Describe("A receiver that hangs", func() {
	It("delays nothing but its own events", func(ctx SpecContext) {
		const perRound, backlog = 24, 60
		rounds := 2
		if text := os.Getenv(roundsVariable); text != "" {
			var err error
			rounds, err = strconv.Atoi(text)
			Expect(err).NotTo(HaveOccurred())
		}
		s := newShop(ctx)
		s.change(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.Webhook.Timeout = "30s"
			p.Spec.Request.MaxStored = new(int32(10_000))
		})
		s.open(ctx)
		s.start(ctx, 1)
		ends := s.followEnds(ctx)
		s.measure(ctx, ends, perRound) // connections and caches
		usual, hung := timings{}, timings{}
		for round := range rounds {
			// Whatever changes with time, such as how much is stored, must not favour the one or the other.
			if round%2 == 0 {
				usual.add(s.measure(ctx, ends, perRound))
			}
			held, release := s.receiver.hold()
			ids := s.verifiedRequests(ctx, backlog)
			Eventually(held).WithContext(ctx).WithTimeout(30*time.Second).Should(BeNumerically(">=", webhook.SlowStart), "every slot is taken")
			hung.add(s.measure(ctx, ends, perRound))
			Expect(s.undelivered(ctx, ids)).To(HaveLen(len(ids)), "it still hangs")
			release()
			Eventually(s.undelivered).WithContext(ctx).WithArguments(ids).WithTimeout(90 * time.Second).
				WithPolling(250 * time.Millisecond).Should(BeEmpty())
			if round%2 == 1 {
				usual.add(s.measure(ctx, ends, perRound))
			}
		}
		for what := range usual {
			AddReportEntry(what, compare(usual[what], hung[what]))
			// The slowest of all are the machine's.
			before, after := percentile(usual.all(what), 50), percentile(hung.all(what), 50)
			Expect(after).To(BeNumerically("<", max(5*before, time.Second)), what)
		}
	}, SpecTimeout(20*time.Minute))
})

// timings are samples by what was timed, one slice for each round.
type timings map[string][][]time.Duration

func (t timings) add(round map[string][]time.Duration) {
	for what, samples := range round {
		t[what] = append(t[what], samples)
	}
}

func (t timings) all(what string) []time.Duration { return slices.Concat(t[what]...) }

func percentile(samples []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[(len(sorted)-1)*p/100]
}

// compare says in words how the rounds with a receiver that hangs differ from the usual ones, and how much those differ
// from one another, which is what the machine does.
func compare(usual, hung [][]time.Duration) string {
	var ratios, noise []float64
	for i := range usual {
		before := float64(percentile(usual[i], 99))
		ratios = append(ratios, float64(percentile(hung[i], 99))/before)
		noise = append(noise, float64(percentile(usual[(i+1)%len(usual)], 99))/before)
	}
	slices.Sort(ratios)
	slices.Sort(noise)
	all, allHung := slices.Concat(usual...), slices.Concat(hung...)
	parts := []string{fmt.Sprintf("%d samples, %d rounds", len(all), len(usual))}
	for _, p := range []int{50, 99} {
		before, after := percentile(all, p), percentile(allHung, p)
		parts = append(parts, fmt.Sprintf("p%d %s, with a receiver that hangs %s: %.2f times", p,
			before.Round(10*time.Microsecond), after.Round(10*time.Microsecond), float64(after)/float64(before)))
	}
	parts = append(parts, fmt.Sprintf("ratios of the rounds' p99 %s, of usual rounds to one another %s", middle(ratios), middle(noise)))
	return strings.Join(parts, "; ")
}

// middle is the median of sorted figures, and what the half of them around it lies between.
func middle(sorted []float64) string {
	quartile := func(n int) float64 { return sorted[(len(sorted)-1)*n/4] }
	return fmt.Sprintf("%.2f (%.2f to %.2f)", quartile(2), quartile(1), quartile(3))
}

// measure times what clients wait for, and how long the loop takes to expire and to delete requests whose time has come.
// It asks for less than the loop's pace of deletions, which would be all that is seen otherwise.
func (s *shop) measure(ctx context.Context, ends *ends, n int) map[string][]time.Duration {
	GinkgoHelper()
	r := s.replicas[0]
	took := map[string][]time.Duration{}
	timed := func(what string, do func()) {
		begun := time.Now()
		do()
		took[what] = append(took[what], time.Since(begun))
	}
	began := map[string]time.Time{}
	var lapsed, old []string
	tick := time.NewTicker(time.Second / (deletesPerSecond - 2))
	defer tick.Stop()
	for range n {
		now := time.Now()
		id := s.backdated(ctx, 30*time.Minute)
		began[id], lapsed = now, append(lapsed, id)
		now = time.Now()
		id = s.backdated(ctx, 2*time.Hour)
		began[id], old = now, append(old, id)
		for range 3 {
			var id string
			timed("init", func() { id = s.init(ctx, r, "+49 1511 2345678") })
			timed("status", func() {
				r.serves(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")
			})
		}
		<-tick.C
	}
	for what, ids := range map[string][]string{"expiry": lapsed, "expiry and retention": old} {
		for _, id := range ids {
			var end time.Time
			Eventually(func() bool {
				var ended bool
				end, ended = ends.of(id, what != "expiry")
				return ended
			}).WithContext(ctx).WithTimeout(patience).Should(BeTrue(), what)
			took[what] = append(took[what], end.Sub(began[id]))
		}
	}
	return took
}

// ends are the times at which the API server told of requests that they expired and that they were deleted.
type ends struct {
	mu      sync.Mutex
	expired map[string]time.Time
	deleted map[string]time.Time
}

// followEnds watches the project's requests until the spec ends.
func (s *shop) followEnds(ctx context.Context) *ends {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	Expect(verifyv1.AddToScheme(scheme)).To(Succeed())
	watcher, err := client.NewWithWatch(plane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	changes, err := watcher.Watch(ctx, &verifyv1.VerificationRequestList{}, client.InNamespace(s.namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(changes.Stop)
	e := &ends{expired: map[string]time.Time{}, deleted: map[string]time.Time{}}
	go func() {
		for change := range changes.ResultChan() {
			e.note(change, time.Now())
		}
	}()
	return e
}

func (e *ends) note(change watch.Event, now time.Time) {
	o, ok := change.Object.(*verifyv1.VerificationRequest)
	if !ok {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.expired[o.Name]; !known && o.Status.Phase == verifyv1.PhaseExpired {
		e.expired[o.Name] = now
	}
	if change.Type == watch.Deleted {
		e.deleted[o.Name] = now
	}
}

func (e *ends) of(id string, deleted bool) (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if deleted {
		at, ended := e.deleted[id]
		return at, ended
	}
	at, ended := e.expired[id]
	return at, ended
}
