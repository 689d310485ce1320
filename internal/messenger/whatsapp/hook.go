package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/panics"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Path is where Meta posts to. The callback URL is the project's base URL with it.
const Path = "/hooks/whatsapp"

// Options configure a Hook.
type Options struct {
	// Settings returns the current settings of the project; never nil. Required.
	Settings func() *settings.Settings
	// Service is the project's domain over its store. Required.
	Service *verification.Service
	// Client sends replies and prompts. Required.
	Client *Client
	// PageURL returns the page of a proven request, empty if it has none; nil if no project has a page.
	PageURL func(*settings.Settings, *verification.Request) string
	// Codes count delivered codes. Required.
	Codes *messenger.CodeMetrics
	// Clock is the clock; the real one if nil.
	Clock clock.PassiveClock
	// Log logs the results of replies. Its zero value logs nothing; requests are logged by the logger in their context.
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
	pageURL  func(*settings.Settings, *verification.Request) string
	clock    clock.PassiveClock
	log      logr.Logger
	metrics  *messenger.Metrics
	bodies   *bodies

	replies  *messenger.Replier
	prompted *messenger.Cooldown // prompts that were sent just now
	echoed   *messenger.Cooldown // numbers that were asked by an echo
	senders  *messenger.SenderLimiter
	statuses *statusCounter
	codes    *messenger.CodeMetrics
}

// NewHook returns the handler of Path, with its metrics registered.
func NewHook(o Options) (*Hook, error) {
	if o.Settings == nil || o.Service == nil || o.Client == nil || o.Codes == nil {
		return nil, errors.New("the WhatsApp hook needs Settings, Service, Client and Codes")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.PageURL == nil {
		o.PageURL = func(*settings.Settings, *verification.Request) string { return "" }
	}
	m, err := messenger.NewMetrics(verification.WhatsApp, o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("create metrics: %w", err)
	}
	statuses, err := newStatusCounter(o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("create metrics: %w", err)
	}
	return &Hook{
		settings: o.Settings, service: o.Service, client: o.Client, pageURL: o.PageURL, clock: o.Clock, log: o.Log, metrics: m,
		bodies: newBodies(), replies: messenger.NewReplier(o.Clock, o.Log, m), prompted: messenger.NewCooldown(maxPrompted, promptPause),
		echoed: messenger.NewCooldown(maxEchoed, echoPause), senders: messenger.NewSenderLimiter(), statuses: statuses,
		codes: o.Codes,
	}, nil
}

// ServeHTTP answers the handshake and takes webhooks.
func (h *Hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s := h.settings()
	var result string
	switch {
	case s.WhatsApp == nil, h.client.platform.Stranded(s.WhatsApp.Simulated):
		w.WriteHeader(http.StatusNotFound)
		result = messenger.RequestNotInUse
	case r.Method == http.MethodGet:
		result = h.answerHandshake(w, r, s)
	case r.Method == http.MethodPost:
		result = h.receiveWebhook(w, r, &delivery{hook: h, settings: s, account: s.WhatsApp, now: h.clock.Now()})
	default:
		w.Header().Set("Allow", "GET, POST")
		w.WriteHeader(http.StatusMethodNotAllowed)
		result = messenger.RequestMethodNotAllowed
	}
	h.metrics.Requests.WithLabelValues(result).Inc()
}

// answerHandshake answers the check that Meta makes whenever our URL or token is set: the challenge as it is, to a caller who
// knows the token (Meta, "Create a webhook endpoint").
func (h *Hook) answerHandshake(w http.ResponseWriter, r *http.Request, s *settings.Settings) string {
	query, err := url.ParseQuery(r.URL.RawQuery)
	challenge := singleValue(query, "hub.challenge")
	if err != nil || singleValue(query, "hub.mode") != "subscribe" || challenge == "" || len(challenge) > maxChallengeBytes ||
		!isVerifyToken(singleValue(query, "hub.verify_token"), s.Project, s.WhatsApp.AppSecret, h.clock.Now()) {
		w.WriteHeader(http.StatusForbidden)
		return messenger.RequestHandshakeRefused
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(challenge)) //nolint:gosec // plain text that no browser sniffs, to a caller who knows the token
	return messenger.RequestHandshake
}

// singleValue returns the value of a parameter that is given once.
func singleValue(query url.Values, name string) string {
	if values := query[name]; len(values) == 1 {
		return values[0]
	}
	return ""
}

// receiveWebhook answers a webhook: 200 once all that counts is stored; 403 unless Meta signed it; 503 if it must
// come again. Meta repeats for up to 7 days what is not answered with 200.
func (h *Hook) receiveWebhook(w http.ResponseWriter, r *http.Request, d *delivery) string {
	secrets := d.account.AppSecret.Accepted(d.now)
	if len(secrets) == 0 { // Nothing can be checked. The messages wait at Meta until the secret is back.
		return requestRedelivery(w, messenger.RequestNoSecret)
	}
	mac, ok := readSignature(r.Header)
	if !ok {
		w.WriteHeader(http.StatusForbidden)
		return messenger.RequestUnsigned
	}
	body, release, err := h.bodies.readBody(w, r)
	defer release()
	if err != nil {
		return refuseBody(w, err)
	}
	if !isSigned(body, mac, secrets) {
		w.WriteHeader(http.StatusForbidden)
		return messenger.RequestUnauthorized
	}
	log := logr.FromContextOrDiscard(r.Context())
	in := decodeWebhook(body, d.account.PhoneNumberID, h.metrics.Count)
	// Meta may hang up while we store; what is stored by then is stored, so there is no reason to stop half-way.
	ctx := context.WithoutCancel(r.Context())
	b := &batch{delivery: d, log: log}
	if err := b.receiveAll(ctx, in.messages, in.statuses); err != nil {
		log.Error(err, "WhatsApp webhook not acknowledged, will be delivered again",
			"failed", b.failures.Load(), "messages", len(in.messages), "statuses", len(in.statuses))
		return requestRedelivery(w, messenger.RequestFailed)
	}
	w.WriteHeader(http.StatusOK)
	return messenger.RequestAccepted
}

// requestRedelivery answers that the webhook has to come again.
func requestRedelivery(w http.ResponseWriter, result string) string {
	w.Header().Set("Retry-After", retryAfter)
	w.WriteHeader(http.StatusServiceUnavailable)
	return result
}

func refuseBody(w http.ResponseWriter, err error) string {
	switch {
	case errors.Is(err, errBusy):
		return requestRedelivery(w, messenger.RequestBusy)
	case errors.Is(err, errBodyTooLarge):
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return messenger.RequestTooLarge
	default:
		w.WriteHeader(http.StatusBadRequest)
		return messenger.RequestUnread
	}
}

// Start sends the replies until ctx ends, and those that are waiting then for a little longer.
func (h *Hook) Start(ctx context.Context) error { return h.replies.Start(ctx) }

// NeedLeaderElection reports false: every replica replies to what it received.
func (h *Hook) NeedLeaderElection() bool { return false }

// errLeftOver is returned if a batch ended before all of its messages were handled.
var errLeftOver = errors.New("some messages were not handled")

// batch holds the messages of one webhook while they are handled.
type batch struct {
	*delivery

	log      logr.Logger
	failures atomic.Int64

	mu    sync.Mutex
	first error
}

// receiveAll handles all messages, those of one sender in their order, and then all statuses. One that fails keeps no other back. An
// error means that the webhook must come again; a copy of what was handled changes nothing.
func (b *batch) receiveAll(ctx context.Context, messages []message, statuses []status) error {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	messenger.HandleBySender(messages, senders, (*message).senderKey, func(m *message) bool {
		b.receiveOne(ctx, m)
		return true
	})
	for i := range statuses {
		b.receiveStatus(ctx, &statuses[i])
	}
	return b.first
}

// outcomesOfChanges are those of messages that change a request, beyond its hints.
var outcomesOfChanges = []messenger.Outcome{
	messenger.OutcomeVerified, messenger.OutcomeNeedContact, messenger.OutcomeNeedConfirmation, messenger.OutcomeNeedEcho,
	messenger.OutcomeDeclined, messenger.OutcomeProven,
}

// receiveOne handles a message and counts its outcome.
func (b *batch) receiveOne(ctx context.Context, m *message) {
	if ctx.Err() != nil || b.failures.Load() >= maxFailures {
		b.recordFailure(messenger.OutcomeFailed, errLeftOver)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, messageTimeout)
	defer cancel()
	came, err := b.receiveGuarded(ctx, m)
	if err != nil {
		b.recordFailure(came, err)
		return
	}
	b.hook.metrics.Count(came, 1)
	level := 1
	if slices.Contains(outcomesOfChanges, came) {
		level = 0
	}
	b.log.V(level).Info("WhatsApp message handled", "outcome", came, "type", knownType(m.Type))
}

// recordFailure records what has to come again. A refused look-up does not count towards maxFailures: any sender can cause it.
func (b *batch) recordFailure(came messenger.Outcome, err error) {
	if !errors.Is(err, verification.TooManyUnknown(nil)) {
		b.failures.Add(1)
	}
	b.hook.metrics.Count(came, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first == nil || errors.Is(b.first, errLeftOver) {
		b.first = err
	}
}

// receiveGuarded handles a message and survives a panic.
func (b *batch) receiveGuarded(ctx context.Context, m *message) (came messenger.Outcome, err error) {
	defer panics.Recover(func(failure error) {
		came, err = messenger.OutcomePanicked, nil
		b.log.Error(failure, "WhatsApp message dropped", "outcome", came, "type", knownType(m.Type))
	})
	return b.receiveMessage(ctx, m)
}

// knownType folds types that we do not know into one: they come from outside.
func knownType(t string) string {
	switch t {
	case "text", "button", "interactive", "contacts", "reaction", "system", "unsupported", "edit", "revoke",
		"image", "video", "audio", "document", "sticker", "location", "order":
		return t
	default:
		return "other"
	}
}
