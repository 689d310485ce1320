package messenger

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Metrics count what came in from a messenger and what went out. Their labels are closed sets, whatever is sent to us.
type Metrics struct {
	Messages *prometheus.CounterVec // by Outcome
	Replies  *prometheus.CounterVec // by a Reply constant
	Requests *prometheus.CounterVec // by a Request constant
}

// The results of replies and prompts.
const (
	ReplySent     = "sent"
	ReplyRefused  = "refused" // the platform will never deliver it, as when the user has blocked us
	ReplyFailed   = "failed"
	ReplyDropped  = "dropped" // the queue was full
	ReplyRepeated = "repeated"
	ReplyLimited  = "limited"
	// ReplySuppressed is a reply that the project does not want sent.
	ReplySuppressed = "suppressed"
	// ReplyBacklog is a reply to a stranger whose message is older than any request that lives.
	ReplyBacklog = "backlog"
)

// The results of requests to the callback.
const (
	RequestAccepted         = "accepted"
	RequestFailed           = "failed"
	RequestNotInUse         = "not_in_use"
	RequestMethodNotAllowed = "method_not_allowed"
	RequestUnauthorized     = "unauthorized" // a signature or secret that is not right; at Telegram also none
	RequestUnsigned         = "unsigned"     // no signature in the form of Meta's
	RequestTooLarge         = "too_large"
	RequestUnread           = "unread"
	RequestBusy             = "busy"
	RequestNoSecret         = "no_secret"
	RequestHandshake        = "handshake"
	RequestHandshakeRefused = "handshake_refused"
)

// NewMetrics returns the metrics of the messenger behind a method of verification, registered unless registerer is nil.
func NewMetrics(method verification.Method, registerer prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name, Help: help, ConstLabels: prometheus.Labels{"method": string(method)},
		}, []string{label})
	}
	m := &Metrics{
		Messages: counter("phoneproof_messages_total", "Messages and other parts of authentic posts of a messenger, by outcome.", "outcome"),
		Replies: counter("phoneproof_replies_total",
			"Replies and prompts to users: sent, refused, failed, dropped (queue full), repeated, limited, suppressed (by the project), "+
				"backlog (to an old message about no stored request).",
			"result"),
		Requests: counter("phoneproof_callback_requests_total", "Requests to the callback of a messenger, by result.", "result"),
	}
	for _, o := range domainOutcomes {
		m.Messages.WithLabelValues(string(o))
	}
	if registerer == nil {
		return m, nil
	}
	for _, collector := range []prometheus.Collector{m.Messages, m.Replies, m.Requests} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics of messages: %w", err)
		}
	}
	return m, nil
}

// Count counts messages with one outcome.
func (m *Metrics) Count(o Outcome, messages int) {
	if messages > 0 {
		m.Messages.WithLabelValues(string(o)).Add(float64(messages))
	}
}
