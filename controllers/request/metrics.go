package request

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Metrics count the steps of the controller. They outlive the controllers of single terms. A nil value counts nothing.
type Metrics struct {
	steps *prometheus.CounterVec
	skips prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_request_steps_total",
			Help: "Steps that were taken and persisted: expire, deliver (one attempt), delete, play (the outcome of a test number).",
		}, []string{"step"}),
		skips: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "phoneproof_request_skipped_total",
			Help: "Requests that were left alone because the store refuses them for their own content.",
		}),
	}
	for _, collector := range []prometheus.Collector{m.steps, m.skips} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register request metrics: %w", err)
		}
	}
	for _, step := range []verification.Step{
		verification.StepExpire, verification.StepDeliver, verification.StepDelete, verification.StepPlay,
	} {
		m.steps.WithLabelValues(step.String()) // alerts need the series to exist before its first increment
	}
	return m, nil
}

func (m *Metrics) countStep(step verification.Step) {
	if m != nil {
		m.steps.WithLabelValues(step.String()).Inc()
	}
}

func (m *Metrics) countSwept(s verification.Swept) {
	if m != nil {
		m.steps.WithLabelValues(verification.StepExpire.String()).Add(float64(s.Expired))
		m.steps.WithLabelValues(verification.StepDelete.String()).Add(float64(s.Deleted))
	}
}

func (m *Metrics) countSkip() {
	if m != nil {
		m.skips.Inc()
	}
}
