package whatsapp

import "github.com/prometheus/client_golang/prometheus"

// metrics count what came in and what went out. Their labels are closed sets, whatever is sent to us.
type metrics struct {
	webhooks *prometheus.CounterVec
	messages *prometheus.CounterVec
	replies  *prometheus.CounterVec
}

// What became of a request to the webhook.
const (
	resultAccepted      = "accepted"
	resultFailed        = "failed"
	resultNotConfigured = "not_configured"
	resultNoSecret      = "no_secret"
	resultSignature     = "bad_signature"
	resultBody          = "bad_body"
	resultTooLarge      = "too_large"
	resultBusy          = "busy"
	resultMethod        = "bad_method"
	resultHandshake     = "handshake"
	resultHandshakeBad  = "handshake_refused"
)

// What became of a reply.
const (
	replySent     = "sent"
	replyFailed   = "failed"
	replyDropped  = "dropped"
	replyRepeated = "repeated"
	replyLimited  = "limited"
)

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		webhooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_whatsapp_webhooks_total", Help: "Requests to the WhatsApp webhook, by result.",
		}, []string{"result"}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_whatsapp_messages_total",
			Help: "Messages and other parts of authentic WhatsApp webhooks, by what became of them.",
		}, []string{"outcome"}),
		replies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_whatsapp_replies_total",
			Help: "Replies and prompts to WhatsApp users: sent, failed, dropped (queue full), repeated, limited.",
		}, []string{"result"}),
	}
	for _, o := range outcomes {
		m.messages.WithLabelValues(string(o))
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.webhooks, m.messages, m.replies} {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) count(o outcome, n int) {
	if n > 0 {
		m.messages.WithLabelValues(string(o)).Add(float64(n))
	}
}
