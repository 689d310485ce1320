package telegram

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// metrics are those of every messenger, and those of what Telegram alone has.
type metrics struct {
	*messenger.Metrics

	duration prometheus.Histogram
	polls    *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	common, err := messenger.NewMetrics(verification.Telegram, registerer)
	if err != nil {
		return nil, fmt.Errorf("create metrics of messages: %w", err)
	}
	m := &metrics{
		Metrics: common,
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "phoneproof_telegram_update_duration_seconds",
			Help:    "How long updates took from their arrival until they could be acknowledged.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		polls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_telegram_polls_total",
			Help: "Steps of the poller, by the state they left it in.",
		}, []string{"state"}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.duration, m.polls} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of updates: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) recordUpdate(became messenger.Outcome, took time.Duration) {
	m.Count(became, 1)
	m.duration.Observe(max(took, 0).Seconds())
}
