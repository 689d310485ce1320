package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Path is where Meta posts to. The callback URL is the project's base URL with it.
const Path = "/hooks/whatsapp"

// Options are what a Hook is made of.
type Options struct {
	// Settings returns the current settings of the project; never nil. Required.
	Settings func() *settings.Settings
	// Service is the project's domain over its store. Required.
	Service *verification.Service
	// Client sends replies and prompts. Required.
	Client *Client
	// Clock tells the time; the real one if nil.
	Clock clock.PassiveClock
	// Log gets what replies came to. Its zero value logs nothing; requests are logged by the logger in their context.
	Log logr.Logger
	// Registerer gets the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Hook answers Meta's webhooks for one project. It is safe for concurrent use, and works without Start; only its replies
// wait for that.
type Hook struct {
	settings func() *settings.Settings
	service  *verification.Service
	client   *Client
	clock    clock.PassiveClock
	log      logr.Logger
	metrics  *metrics
	bodies   *bodies

	replies   *messenger.ReplyQueue
	prompted  *messenger.Cooldown // prompts that were sent just now
	replied   *messenger.Cooldown // who was told what about which request
	strangers *messenger.StrangerLimiter
	senders   *messenger.SenderLimiter
}

// NewHook returns the handler of Path, with its metrics registered.
func NewHook(o Options) (*Hook, error) {
	if o.Settings == nil || o.Service == nil || o.Client == nil {
		return nil, errors.New("the WhatsApp hook needs Settings, Service and Client")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return &Hook{
		settings: o.Settings, service: o.Service, client: o.Client, clock: o.Clock, log: o.Log, metrics: m,
		bodies: newBodies(), replies: messenger.NewReplyQueue(), prompted: messenger.NewCooldown(maxPrompted, promptPause),
		replied: messenger.NewCooldown(maxReplied, replyPause), strangers: messenger.NewStrangerLimiter(), senders: messenger.NewSenderLimiter(),
	}, nil
}

// codes returns what extracts the codes of a project.
func (h *Hook) codes(project string) verification.CodeSpace {
	return verification.NewCodeSpace(project)
}

// ServeHTTP answers the handshake and takes webhooks.
func (h *Hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s := h.settings()
	var result string
	switch {
	case s.WhatsApp == nil, h.client.stranded(s.WhatsApp):
		w.WriteHeader(http.StatusNotFound)
		result = resultNotConfigured
	case r.Method == http.MethodGet:
		result = h.shakeHands(w, r, s)
	case r.Method == http.MethodPost:
		result = h.take(w, r, &delivery{hook: h, settings: s, account: s.WhatsApp, now: h.clock.Now()})
	default:
		w.Header().Set("Allow", "GET, POST")
		w.WriteHeader(http.StatusMethodNotAllowed)
		result = resultMethod
	}
	h.metrics.webhooks.WithLabelValues(result).Inc()
}

// shakeHands answers the check that Meta makes whenever our URL or token is set: the challenge as it is, to whoever knows
// the token (Meta, "Create a webhook endpoint").
func (h *Hook) shakeHands(w http.ResponseWriter, r *http.Request, s *settings.Settings) string {
	query, err := url.ParseQuery(r.URL.RawQuery)
	challenge := single(query, "hub.challenge")
	if err != nil || single(query, "hub.mode") != "subscribe" || challenge == "" || len(challenge) > maxChallengeBytes ||
		!verifies(single(query, "hub.verify_token"), s.Project, s.WhatsApp.AppSecret, h.clock.Now()) {
		w.WriteHeader(http.StatusForbidden)
		return resultHandshakeBad
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(challenge)) //nolint:gosec // plain text that no browser sniffs, to whoever knows the token
	return resultHandshake
}

// single returns the value of a parameter that is given once.
func single(query url.Values, name string) string {
	if values := query[name]; len(values) == 1 {
		return values[0]
	}
	return ""
}

// take answers a webhook: 200 once all is stored that counts, or nothing counts; 403 unless Meta signed it; 503 if it must
// come again. Meta repeats for up to 7 days what is not answered with 200.
func (h *Hook) take(w http.ResponseWriter, r *http.Request, d *delivery) string {
	secrets := d.account.AppSecret.Accepted(d.now)
	if len(secrets) == 0 { // Nothing can be believed. The messages wait at Meta until the secret is back.
		return again(w, resultNoSecret)
	}
	mac, ok := signature(r.Header)
	if !ok {
		w.WriteHeader(http.StatusForbidden)
		return resultSignature
	}
	body, release, err := h.bodies.readBody(w, r)
	defer release()
	if err != nil {
		return refuseBody(w, err)
	}
	if !signed(body, mac, secrets) {
		w.WriteHeader(http.StatusForbidden)
		return resultSignature
	}
	log := logr.FromContextOrDiscard(r.Context())
	messages := decode(body, d.account.PhoneNumberID, h.metrics.count)
	// Meta may hang up while we store; what is stored by then is stored, so there is no reason to stop half-way.
	b := &batch{delivery: d, log: log}
	if err := b.receiveAll(context.WithoutCancel(r.Context()), messages); err != nil {
		log.Error(err, "WhatsApp messages are to be delivered again", "failed", b.failures.Load(), "messages", len(messages))
		return again(w, resultFailed)
	}
	w.WriteHeader(http.StatusOK)
	return resultAccepted
}

// again asks for another delivery.
func again(w http.ResponseWriter, result string) string {
	w.Header().Set("Retry-After", retryAfter)
	w.WriteHeader(http.StatusServiceUnavailable)
	return result
}

func refuseBody(w http.ResponseWriter, err error) string {
	switch {
	case errors.Is(err, errBusy):
		return again(w, resultBusy)
	case errors.Is(err, errBodyTooLarge):
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return resultTooLarge
	default:
		w.WriteHeader(http.StatusBadRequest)
		return resultBody
	}
}

// Start sends the replies until ctx ends, and those that are waiting then for a little longer.
func (h *Hook) Start(ctx context.Context) error { return h.replies.Start(ctx) }

// NeedLeaderElection says that every replica replies to what it took.
func (h *Hook) NeedLeaderElection() bool { return false }
