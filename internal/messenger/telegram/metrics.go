package telegram

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What became of replies.
const (
	replySent    = "sent"
	replyRefused = "refused" // the user blocked the bot, or the chat is gone
	replyFailed  = "failed"
	replyDropped = "dropped" // the queue was full
	replyLimited = "limited" // a stranger who had an answer
)

// metrics count what happened. Their labels are closed sets: nothing in a message can add a series.
type metrics struct {
	updates  *prometheus.CounterVec
	duration prometheus.Histogram
	replies  *prometheus.CounterVec
	requests *prometheus.CounterVec
	polls    *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		updates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_telegram_updates_total",
			Help: "Updates from Telegram, by what became of them.",
		}, []string{"outcome"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "phoneproof_telegram_update_duration_seconds",
			Help:    "How long updates took from their arrival until they could be acknowledged.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		replies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_telegram_replies_total",
			Help: "Replies to users, prompts included, by result (sent, refused, failed, dropped, limited).",
		}, []string{"result"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_telegram_hook_requests_total",
			Help: "Requests to the webhook's path, by result.",
		}, []string{"result"}),
		polls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_telegram_polls_total",
			Help: "Steps of the poller, by the state they left it in.",
		}, []string{"state"}),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.updates, m.duration, m.replies, m.requests, m.polls} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *metrics) update(became outcome, took time.Duration) {
	m.updates.WithLabelValues(string(became)).Inc()
	m.duration.Observe(max(took, 0).Seconds())
}

func (m *metrics) reply(err error) {
	result := replySent
	switch {
	case errors.Is(err, ErrRefused):
		result = replyRefused
	case err != nil:
		result = replyFailed
	}
	m.replies.WithLabelValues(result).Inc()
}
