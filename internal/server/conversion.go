package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// countEvery is how often stored requests are counted at most, however often metrics are scraped.
	countEvery = 30 * time.Second
	// retryEvery is the same after a count that failed.
	retryEvery = 3 * time.Second
	// countTimeout bounds one count: a scrape waits for it.
	countTimeout = 2 * time.Second
)

// conversions measures what becomes of verifications: how many are started and verified, how long that takes, and how many requests
// are stored. It implements verification.Observer, and prometheus.Collector for the requests that a store holds.
//
// The invariant: every series exists from the start, but for the gauge of stored requests, which is absent while the store does
// not answer. No label depends on what a client or a user sends.
type conversions struct {
	methods map[verification.Method]methodSeries
	steps   map[verification.SessionStep]prometheus.Counter
	tests   map[verification.TestOutcome]prometheus.Counter
	// redeemed is called with each request whose code was entered here.
	redeemed func(*verification.Request)
	store    verification.Counter
	clock    clock.PassiveClock
	log      logr.Logger

	mu     sync.Mutex
	stored verification.Stored
	known  bool
	next   time.Time // when to count again
}

var _ verification.Observer = (*conversions)(nil)

// methodSeries holds the series of a method, looked up once.
type methodSeries struct {
	started  prometheus.Counter
	duration prometheus.Observer
}

var storedDescription = prometheus.NewDesc("phoneproof_stored_requests",
	"Stored requests, by what they wait for: pending, undelivered or finished. PostgreSQL counts up to 10,000 of each. "+
		"Every replica reports the same requests.", []string{"state"}, nil)

// newConversions registers the metrics. Counts age by the machine's clock: the store clock can jump.
func newConversions(
	registerer prometheus.Registerer, store verification.Counter, redeemed func(*verification.Request), machine clock.PassiveClock,
	log logr.Logger,
) (*conversions, error) {
	started := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "phoneproof_verifications_started_total",
		Help: "Verifications that this replica started, by init or by completing a manual request, by method. " +
			"Retries with an Idempotency-Key do not count again.",
	}, []string{"method"})
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "phoneproof_verification_duration_seconds",
		Help: "Time from the start of a verification to VERIFIED, both by the store clock, by method. " +
			"Each verification counts once, at the replica that stored it.",
		Buckets: []float64{5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 3600},
	}, []string{"method"})
	steps := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "phoneproof_session_proofs_total",
		Help: "Verifications with assurance SESSION, by step: started, proven (the message came), confirmed (VERIFIED), wrong_code, " +
			"tries_used_up, declined (Not me) and canceled (on the page). Each step counts once, at the replica that stored it, or not at all if " +
			"that replica did not hear of it in time.",
	}, []string{"step"})
	tests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "phoneproof_test_requests_total",
		Help: "Requests of test keys that this replica stored, by the outcome of their number. No other metric of verifications counts them.",
	}, []string{"outcome"})
	m := &conversions{
		methods: map[verification.Method]methodSeries{}, steps: map[verification.SessionStep]prometheus.Counter{},
		tests:    map[verification.TestOutcome]prometheus.Counter{},
		redeemed: redeemed, store: store, clock: machine, log: log,
	}
	for _, name := range []verification.Method{verification.WhatsApp, verification.Telegram} {
		m.methods[name] = methodSeries{started.WithLabelValues(string(name)), duration.WithLabelValues(string(name))}
	}
	for _, step := range verification.SessionSteps() {
		m.steps[step] = steps.WithLabelValues(string(step))
	}
	for _, entry := range verification.TestNumbers() {
		m.tests[entry.Outcome] = tests.WithLabelValues(string(entry.Outcome))
	}
	for _, collector := range []prometheus.Collector{started, duration, steps, tests, m} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics of verifications: %w", err)
		}
	}
	return m, nil
}

// Started implements verification.Observer.
func (m *conversions) Started(name verification.Method) {
	if series, known := m.methods[name]; known {
		series.started.Inc()
	}
}

// Verified implements verification.Observer.
func (m *conversions) Verified(name verification.Method, took time.Duration) {
	if series, known := m.methods[name]; known {
		series.duration.Observe(took.Seconds())
	}
}

// SessionStep implements verification.Observer.
func (m *conversions) SessionStep(step verification.SessionStep) {
	if counter, known := m.steps[step]; known {
		counter.Inc()
	}
}

// TestStarted implements verification.Observer.
func (m *conversions) TestStarted(outcome verification.TestOutcome) {
	if counter, known := m.tests[outcome]; known {
		counter.Inc()
	}
}

// CodeRedeemed implements verification.Observer.
func (m *conversions) CodeRedeemed(r *verification.Request) { m.redeemed(r) }

// Describe implements prometheus.Collector.
func (m *conversions) Describe(out chan<- *prometheus.Desc) { out <- storedDescription }

// Collect implements prometheus.Collector. While the store does not answer there are no samples.
func (m *conversions) Collect(out chan<- prometheus.Metric) {
	stored, known := m.count()
	if !known {
		return
	}
	for state, n := range map[string]int{"pending": stored.Pending, "undelivered": stored.Undelivered, "finished": stored.Finished} {
		out <- prometheus.MustNewConstMetric(storedDescription, prometheus.GaugeValue, float64(n), state)
	}
}

// count returns the last count, or a new one if that is too old.
func (m *conversions) count() (stored verification.Stored, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clock.Now().Before(m.next) {
		return m.stored, m.known
	}
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	var err error
	wait := countEvery
	if m.stored, err = m.store.Stored(ctx); err != nil {
		wait = retryEvery
		m.log.V(1).Info("counting stored requests failed", "error", err.Error())
	}
	m.known, m.next = err == nil, m.clock.Now().Add(wait)
	return m.stored, m.known
}
