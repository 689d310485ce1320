package messenger

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

// CallFailure is what a failed call met.
type CallFailure string

// The classes of failures.
const (
	// CallUnreachable is a call without an answer, Timeout one whose answer did not come in time.
	CallUnreachable CallFailure = "unreachable"
	CallTimeout     CallFailure = "timeout"
	// CallPlatformError is an answer of a failing platform, such as 500, its own or that of a proxy in front of it.
	CallPlatformError CallFailure = "failing"
	// CallUnreadable is an answer that is not one of the platform's.
	CallUnreadable  CallFailure = "unreadable"
	CallRateLimited CallFailure = "rate_limited"
	CallCredentials CallFailure = "credentials"
	CallRefused     CallFailure = "refused"
)

var callFailures = [...]CallFailure{
	CallUnreachable, CallTimeout, CallPlatformError, CallUnreadable, CallRateLimited, CallCredentials, CallRefused,
}

// CallMetrics are the series of all platforms.
type CallMetrics struct {
	duration *prometheus.HistogramVec
	errors   *prometheus.CounterVec
}

// NewCallMetrics registers the metrics.
func NewCallMetrics(registerer prometheus.Registerer) (*CallMetrics, error) {
	m := &CallMetrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "phoneproof_platform_call_duration_seconds",
			Help:    "How long calls of the Graph API, the Bot API and Telegram's Gateway took until their answer was read or they failed. getUpdates is a long poll.",
			Buckets: []float64{.1, .25, .5, 1, 5, 40},
		}, []string{"method", "operation"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_platform_call_errors_total",
			Help: "Calls of the Graph API, the Bot API and Telegram's Gateway that failed, by what they met: refused is also a code to a number " +
				"without Telegram. Calls that ended with their caller are not counted.",
		}, []string{"method", "operation", "class"}),
	}
	for _, collector := range []prometheus.Collector{m.duration, m.errors} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics of platform calls: %w", err)
		}
	}
	return m, nil
}

// CallRecorder records the calls of one platform. A nil value records nothing.
type CallRecorder struct {
	durations map[string]prometheus.Observer // by operation
	errors    *prometheus.CounterVec         // by operation and class
}

// Recorder returns the recorder of the platform behind a method of verification, for these operations and no others.
func (m *CallMetrics) Recorder(method verification.Method, operations ...string) *CallRecorder {
	if m == nil {
		return nil
	}
	r := &CallRecorder{
		durations: make(map[string]prometheus.Observer, len(operations)),
		errors:    m.errors.MustCurryWith(prometheus.Labels{"method": string(method)}),
	}
	for _, name := range operations {
		r.durations[name] = m.duration.WithLabelValues(string(method), name)
	}
	return r
}

// Record records a call that took so long; class is empty for one that succeeded.
func (r *CallRecorder) Record(name string, took time.Duration, class CallFailure) {
	if r == nil {
		return
	}
	duration, known := r.durations[name]
	if !known {
		return
	}
	duration.Observe(max(took, 0).Seconds())
	if slices.Contains(callFailures[:], class) {
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
