package simulator

import (
	"crypto/x509"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Options are what a Simulator is made of. All of them may be left out.
type Options struct {
	// Users have a phone from the start; DefaultUsers if nil.
	Users []Person
	// WebhookSecret returns the secret that the receiver checks events with; nil or empty if it knows none.
	WebhookSecret func() []byte
	// Backend is the verification API that the page may call as a client backend does; nil if it may not.
	Backend *Backend
	// ResetLimits resets the limits of the verification API that WrapAPI wraps, which is then in this process; nil if none is.
	ResetLimits func()
	// RootCAs are trusted for callbacks by https; nil for the system's.
	RootCAs *x509.CertPool
	// Redirect says where a callback is really posted to, empty for nowhere; nil for where it says. A process that serves a
	// user's own project uses it to keep webhooks from that project's true address.
	Redirect func(callback string) string
	// Retry is how long the platforms wait before they post a refused webhook again, twice as long after each try; 1 s if
	// zero.
	Retry time.Duration
	// Clock is the real one if nil.
	Clock clock.WithTicker
	// Log gets what goes wrong: never a text, a number or a credential, not even a simulated one.
	Log logr.Logger
}

// Simulator is both platforms and their users. It is safe for concurrent use. Without Start, no webhook is posted.
type Simulator struct {
	*hub

	phones   *phones
	whatsApp *whatsApp
	telegram *telegram
	receiver *receiver
	handler  http.Handler
}

// New returns a simulator.
func New(o Options) *Simulator {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Users == nil {
		o.Users = DefaultUsers()
	}
	if o.Redirect == nil {
		o.Redirect = func(callback string) string { return callback }
	}
	if o.Retry == 0 {
		o.Retry = defaultRetry
	}
	h := newHub(o)
	p := &phones{hub: h, people: o.Users}
	p.whatsApp, p.telegram = &whatsApp{hub: h, phones: p}, &telegram{hub: h, phones: p}
	s := &Simulator{hub: h, phones: p, whatsApp: p.whatsApp, telegram: p.telegram, receiver: newReceiver(o.WebhookSecret, h)}
	s.handler = s.newHandler(o.Backend)
	h.mu.Lock()
	defer h.mu.Unlock()
	p.addFirstUsers()
	return s
}

// ServeHTTP serves the platforms' APIs, the users' API, the receiver and the page.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Phoneproof-Simulated"] = []string{"true"}
	h.Set("X-Content-Type-Options", "nosniff")
	// Handlers answer with the lock held; a client that reads slowly must not hold it too.
	b := &buffered{ResponseWriter: w, status: http.StatusOK}
	s.handler.ServeHTTP(b, r)
	b.send()
}

// buffered keeps an answer back.
type buffered struct {
	http.ResponseWriter

	status int
	body   []byte
}

// WriteHeader notes the status.
func (b *buffered) WriteHeader(status int) { b.status = status }

// Write notes the body.
func (b *buffered) Write(p []byte) (int, error) {
	b.body = append(b.body, p...)
	return len(p), nil
}

// Unwrap gives http.ResponseController access to the connection.
func (b *buffered) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b *buffered) send() {
	b.ResponseWriter.WriteHeader(b.status)
	_, _ = b.ResponseWriter.Write(b.body) // a client that does not take it is no error of ours
}

// newHandler says what is where. What a browser may call it may call from this page only: nothing here has a password.
func (s *Simulator) newHandler(backend *Backend) http.Handler {
	a := &api{
		hub: s.hub, phones: s.phones, whatsApp: s.whatsApp, telegram: s.telegram, receiver: s.receiver, backend: backend,
	}
	mux := http.NewServeMux()
	a.routeUsers(mux)
	a.routeState(mux)
	s.receiver.registerRoutes(mux)
	routePage(mux)
	mux.HandleFunc("/", s.servePlatforms)
	return http.NewCrossOriginProtection().Handler(mux)
}

// servePlatforms distinguishes the APIs by the first part of the path: /v25.0/..., /bot<token>/... and the methods of Telegram's Gateway.
func (s *Simulator) servePlatforms(w http.ResponseWriter, r *http.Request) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case graphVersion.MatchString(first):
		s.whatsApp.serveGraph(w, r, rest)
	case strings.HasPrefix(first, "bot"):
		s.telegram.serveBotAPI(w, r, strings.TrimPrefix(first, "bot"), rest)
	case rest == "" && gatewayMethods[first] != nil:
		s.telegram.serveGateway(w, r, first)
	default:
		answerFailure(w, &failure{http.StatusNotFound, "not_found", "", "there is no such path"})
	}
}

// AddWhatsApp registers an account, or changes what is known of it; what is left empty stays.
func (s *Simulator) AddWhatsApp(a WhatsAppAccount) error {
	if f := s.whatsApp.addAccount(a); f != nil {
		return f
	}
	return nil
}

// AddTelegram registers a bot, or changes what is known of it; what is left empty stays.
func (s *Simulator) AddTelegram(a TelegramAccount) error {
	if f := s.telegram.addAccount(a); f != nil {
		return f
	}
	return nil
}
