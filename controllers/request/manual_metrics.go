package request

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// ManualMetrics count manual requests that are not completed. They outlive the controllers of single terms. A nil value counts
// nothing.
type ManualMetrics struct {
	refusals *prometheus.CounterVec
	skips    prometheus.Counter
}

// NewManualMetrics registers the metrics.
func NewManualMetrics(registerer prometheus.Registerer) (*ManualMetrics, error) {
	m := &ManualMetrics{
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_manual_refusals_total",
			Help: "Refusals of manual requests, by the reason in their condition Accepted. A retry counts again.",
		}, []string{"reason"}),
		skips: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "phoneproof_manual_skipped_total",
			Help: "Manual requests that were skipped because not even their condition can be written.",
		}),
	}
	for _, collector := range []prometheus.Collector{m.refusals, m.skips} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register manual request metrics: %w", err)
		}
	}
	for _, reason := range []string{ // alerts need the series to exist before its first increment
		verifyv1.ReasonMalformed, verifyv1.ReasonPhoneNumberRefused, verifyv1.ReasonSuspended, verifyv1.ReasonMethodNotConfigured,
		verifyv1.ReasonSecretsNotReady, verifyv1.ReasonRateLimited, verifyv1.ReasonTooManyStored,
	} {
		m.refusals.WithLabelValues(reason)
	}
	return m, nil
}

func (m *ManualMetrics) countRefusal(reason string) {
	if m != nil {
		m.refusals.WithLabelValues(reason).Inc()
	}
}

func (m *ManualMetrics) countSkip() {
	if m != nil {
		m.skips.Inc()
	}
}
