package simulator

import (
	"crypto/x509"
	"net/http"
	"strings"
	"sync"
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
	// RootCAs are trusted for callbacks by https; nil for the system's.
	RootCAs *x509.CertPool
	// Redirect says where a callback is really posted to, empty for nowhere; nil for where it says. A process that serves a
	// project of somebody's own by it keeps webhooks from that project's true address.
	Redirect func(callback string) string
	// Retry is how long the platforms wait before they post a refused webhook again, twice as long after each try; 1 s if
	// zero.
	Retry time.Duration
	// Clock tells the time; the real one if nil.
	Clock clock.WithTicker
	// Log gets what goes wrong: never a text, a number or a credential, not even a simulated one.
	Log logr.Logger
}

// Simulator is both platforms and their users. It is safe for concurrent use. Without Start, nothing is posted to anybody.
type Simulator struct {
	clock    clock.WithTicker
	log      logr.Logger
	people   []Person
	backend  *Backend
	redirect func(string) string
	retry    time.Duration
	client   *http.Client
	receiver *receiver
	handler  http.Handler

	mu         sync.Mutex // of what follows
	changed    chan struct{}
	users      []*user
	lastUser   int
	businesses []*business
	bots       []*bot
	parcels    []*parcel
	deliveries []delivery
	faults     []*fault
	revoked    []string
	events     []event
	seq        int64
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
	s := &Simulator{
		clock: o.Clock, log: o.Log, people: o.Users, backend: o.Backend, redirect: o.Redirect, retry: o.Retry,
		client: newClient(o.RootCAs), changed: make(chan struct{}),
	}
	s.receiver = newReceiver(o.WebhookSecret, s)
	s.handler = s.routes()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.populate()
	return s
}

// populate adds the users of the start. s.mu is held.
func (s *Simulator) populate() {
	for _, p := range s.people {
		if _, f := s.addUser(p); f != nil {
			s.log.Info("a user is left out", "reason", f.Error())
		}
	}
}

// reset forgets everything but the accounts, without which nothing could be said to anybody. s.mu is held.
func (s *Simulator) reset() {
	s.users, s.parcels, s.deliveries, s.faults, s.revoked, s.events = nil, nil, nil, nil, nil, nil
	// The next users have the ids of these, and none of their messages.
	for _, b := range s.bots {
		b.pending = nil
		clear(b.captured)
	}
	for _, b := range s.businesses {
		clear(b.captured)
	}
	s.lastUser = 0
	s.populate()
	s.tell(event{Type: "reset"})
}

// ServeHTTP serves the platforms' APIs, the users' API, the receiver and the page.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Phoneproof-Simulated"] = []string{"true"}
	h.Set("X-Content-Type-Options", "nosniff")
	// Handlers answer with the lock held; a client that reads slowly must not hold it too.
	b := &buffered{ResponseWriter: w, status: http.StatusOK}
	s.handler.ServeHTTP(b, r)
	w.WriteHeader(b.status)
	_, _ = w.Write(b.body) // a client that does not take it is no error of ours
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

// routes says what is where. What a browser may call it may call from this page only: nothing here has a password.
func (s *Simulator) routes() http.Handler {
	mux := http.NewServeMux()
	s.routeUsers(mux)
	s.routeState(mux)
	s.receiver.route(mux)
	routePage(mux)
	mux.HandleFunc("/", s.platforms)
	return http.NewCrossOriginProtection().Handler(mux)
}

// platforms tells the two APIs apart by the first part of the path: /v25.0/... and /bot<token>/...
func (s *Simulator) platforms(w http.ResponseWriter, r *http.Request) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case graphVersion.MatchString(first):
		s.graph(w, r, rest)
	case strings.HasPrefix(first, "bot"):
		s.botAPI(w, r, strings.TrimPrefix(first, "bot"), rest)
	default:
		refuse(w, &failure{http.StatusNotFound, "not_found", "", "there is no such path"})
	}
}
