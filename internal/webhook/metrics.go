package webhook

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count attempts. Their labels are closed sets, so tenants and receivers cannot add series.
type metrics struct {
	attempts *prometheus.CounterVec
	tests    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	waiting  *prometheus.CounterVec
}

// The causes why a due event was not sent.
const (
	heldPaused    = "paused"
	heldBusy      = "busy"
	heldLease     = "lease"
	heldResources = "resources"
)

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_webhook_attempts_total",
			Help: "Attempts to deliver an event, by outcome (delivered, retry, gone) and reason.",
		}, []string{"outcome", "reason"}),
		tests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_webhook_test_attempts_total",
			Help: "Attempts to deliver an event of a test key, by outcome (delivered, retry, gone). No other metric of attempts counts them.",
		}, []string{"outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "phoneproof_webhook_attempt_duration_seconds",
			Help:    "How long attempts took, by outcome.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30},
		}, []string{"outcome"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "phoneproof_webhook_in_flight",
			Help: "Attempts that are running.",
		}),
		waiting: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_webhook_held_total",
			Help: "Times that a due event was not sent: paused (its secret cannot be read), busy (no slot), lease, resources.",
		}, []string{"cause"}),
	}
	if registerer != nil {
		registerer.MustRegister(m.attempts, m.tests, m.duration, m.inFlight, m.waiting)
	}
	return m
}

func (m *metrics) recordAttempt(test bool, v Verdict, took time.Duration) {
	if test {
		m.tests.WithLabelValues(string(v.Outcome)).Inc()
		return
	}
	m.attempts.WithLabelValues(string(v.Outcome), reasonLabel(v.Reason)).Inc()
	m.duration.WithLabelValues(string(v.Outcome)).Observe(took.Seconds())
}

// reasonLabel replaces status codes by their classes, because a receiver can send a thousand of them.
func reasonLabel(r Reason) string {
	status, ok := strings.CutPrefix(string(r), "http_")
	if !ok {
		return string(r)
	}
	if len(status) == 3 && status[0] >= '1' && status[0] <= '5' {
		return "http_" + status[:1] + "xx"
	}
	return "http_other"
}
