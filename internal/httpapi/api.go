package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Options are what the API is made of.
type Options struct {
	// Settings returns the current settings of the project; never nil. Every request asks once, a long poll once more
	// before it answers, so a changed limit or a removed key counts from the next request on. Required.
	Settings func() *settings.Settings
	// Service is the project's domain over its store. Required.
	Service *verification.Service
	// Invite returns the link and the text that belong to the code of a request: of its Method and its DisplayName. It is
	// called only for a method that is ready. Required.
	Invite func(*settings.Settings, *verification.Request, verification.Code) Invitation
	// Hooks are more handlers by their exact path, such as /hooks/whatsapp. Their methods, bodies and errors are theirs;
	// request id, log line and metrics are not, and logr.FromContext gives them a logger with the request id.
	Hooks map[string]http.Handler
	// Clock tells the time; the real one if nil.
	Clock clock.Clock
	// Log gets what went wrong, one line per request. Its zero value logs nothing.
	Log logr.Logger
	// Requests gets the lines of the other requests, which may be late; nil for those of Log.
	Requests slog.Handler
	// Registerer gets the metrics; nil for none.
	Registerer prometheus.Registerer
	// MaxWaits bounds the long polls held at once; zero for 2,000. What serves the API must hold more connections.
	MaxWaits int
}

// Invitation is what leads an end user to send the code.
type Invitation struct {
	// Link opens the messenger: waLink or tgLink of the answer.
	Link string
	// ExpectedText is the text that the user is to send.
	ExpectedText string
}

// API answers the HTTP API of one project. It is safe for concurrent use.
type API struct {
	settings func() *settings.Settings
	service  *verification.Service
	invite   func(*settings.Settings, *verification.Request, verification.Code) Invitation
	clock    clock.Clock
	log      logr.Logger
	requests slog.Handler
	metrics  *metrics
	waits    waitLimiter
	routes   map[string]*route

	statusReads readLimit
	retries     readLimit // of init
}

// The paths of the API, as clients, log lines and metrics know them.
const (
	pathInit    = "/api/verify/init"
	pathStatus  = "/api/verify/status"
	pathOpenAPI = "/openapi.json"
)

// route is what happens at one path.
type route struct {
	pattern string
	// allow is what a 405 answers; empty where hook judges methods itself.
	allow   string
	methods [2]string
	serve   func(*exchange) error
	hook    http.Handler
}

// takes tells whether the route has that method.
func (rt *route) acceptsMethod(method string) bool {
	return rt.hook != nil || method == rt.methods[0] || (method == rt.methods[1] && method != "")
}

// New returns the API, with its metrics registered.
func New(o Options) (*API, error) {
	if o.Settings == nil || o.Service == nil || o.Invite == nil {
		return nil, errors.New("httpapi needs Settings, Service and Invite")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Requests == nil {
		o.Requests = logr.ToSlogHandler(o.Log)
	}
	if o.MaxWaits == 0 {
		o.MaxWaits = maxWaits
	}
	document, err := openAPIDocument()
	if err != nil {
		return nil, fmt.Errorf("convert openapi.yaml: %w", err)
	}
	a := &API{
		settings: o.Settings, service: o.Service, invite: o.Invite, clock: o.Clock, log: o.Log, requests: o.Requests,
		metrics: newMetrics(), waits: waitLimiter{most: o.MaxWaits},
	}
	a.routes = map[string]*route{
		pathInit: {pattern: pathInit, allow: "POST", methods: [2]string{http.MethodPost}, serve: (*exchange).serveInit},
		// HEAD is refused: it would cost a read of the store and say nothing.
		pathStatus: {pattern: pathStatus, allow: "GET", methods: [2]string{http.MethodGet}, serve: (*exchange).serveStatus},
		pathOpenAPI: {
			pattern: pathOpenAPI, allow: "GET, HEAD", methods: [2]string{http.MethodGet, http.MethodHead},
			serve: func(x *exchange) error { return x.serveDocument(document) },
		},
	}
	for path, hook := range o.Hooks {
		if a.routes[path] != nil || !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("hook at %q: the path is taken or not absolute", path)
		}
		a.routes[path] = &route{pattern: path, hook: hook}
	}
	if o.Registerer != nil {
		if err := a.metrics.registerAll(o.Registerer); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return a, nil
}

// find returns the route of a request, or nil. Paths match byte by byte: nothing is cleaned, decoded twice or
// redirected, because a proxy in front may have decided on the path as it was written.
//
// The path of baseURL is a prefix. Routes answer with it and without it: proxies strip it or keep it, and both are
// common. No route is another one behind a prefix, so neither form can be mistaken for the other.
func (a *API) findRoute(r *http.Request, s *settings.Settings) *route {
	if r.URL.RawPath != "" || r.URL.Opaque != "" { // Written in another way than it reads, as %69nit for init.
		return nil
	}
	if rt := a.routes[r.URL.Path]; rt != nil {
		return rt
	}
	if path, ok := strings.CutPrefix(r.URL.Path, s.PathPrefix); ok && s.PathPrefix != "" {
		return a.routes[path]
	}
	return nil
}
