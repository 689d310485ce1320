// Package calls measures the calls of the messengers' platforms, Graph API and Bot API alike.
//
// The invariant: every label comes from a closed set that the program itself names. Durations have their series from the start,
// an error has one from its first occurrence on.
package calls

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Class is what a failed call met.
type Class string

// The classes of failures.
const (
	// Unreachable is a call without an answer, Timeout one whose answer did not come in time.
	Unreachable Class = "unreachable"
	Timeout     Class = "timeout"
	// Failing is an answer that says that the platform failed, such as 500, its own or that of a proxy in front of it.
	Failing Class = "failing"
	// Unreadable is an answer that is not one of the platform's.
	Unreadable  Class = "unreadable"
	RateLimited Class = "rate_limited"
	Credentials Class = "credentials"
	Refused     Class = "refused"
)

var classes = [...]Class{Unreachable, Timeout, Failing, Unreadable, RateLimited, Credentials, Refused}

// Metrics are the series of all platforms.
type Metrics struct {
	duration *prometheus.HistogramVec
	errors   *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "phoneproof_platform_call_duration_seconds",
			Help:    "How long calls of the Graph API and the Bot API took until their answer was read or they failed. getUpdates is a long poll.",
			Buckets: []float64{.1, .25, .5, 1, 5, 40},
		}, []string{"method", "operation"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_platform_call_errors_total",
			Help: "Calls of the Graph API and the Bot API that failed, by what they met. Calls that ended with their caller are not counted.",
		}, []string{"method", "operation", "class"}),
	}
	for _, collector := range []prometheus.Collector{m.duration, m.errors} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics of platform calls: %w", err)
		}
	}
	return m, nil
}

// Recorder records the calls of one platform. A nil value records nothing.
type Recorder struct {
	durations map[string]prometheus.Observer // by operation
	errors    *prometheus.CounterVec         // by operation and class
}

// Recorder returns the recorder of the platform behind a method of verification, for these operations and no others.
func (m *Metrics) Recorder(method verification.Method, operations ...string) *Recorder {
	if m == nil {
		return nil
	}
	r := &Recorder{
		durations: make(map[string]prometheus.Observer, len(operations)),
		errors:    m.errors.MustCurryWith(prometheus.Labels{"method": string(method)}),
	}
	for _, name := range operations {
		r.durations[name] = m.duration.WithLabelValues(string(method), name)
	}
	return r
}

// Record records a call that took so long; class is empty for one that succeeded.
func (r *Recorder) Record(name string, took time.Duration, class Class) {
	if r == nil {
		return
	}
	duration, known := r.durations[name]
	if !known {
		return
	}
	duration.Observe(max(took, 0).Seconds())
	if slices.Contains(classes[:], class) {
		r.errors.WithLabelValues(name, string(class)).Inc()
	}
}

// ContextCause returns context.Canceled or context.DeadlineExceeded where that ended a call, and context.DeadlineExceeded also for
// timeouts of the network, such as that of a TLS handshake. For other errors it returns nil.
func ContextCause(err error) error {
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	timeout, ok := errors.AsType[net.Error](err)
	if errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout() {
		return context.DeadlineExceeded
	}
	return nil
}
