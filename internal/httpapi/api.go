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

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/tokenbucket"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Options configure New.
type Options struct {
	// Settings returns the current settings of the project; never nil. It is called once for every request, and again
	// before a long poll is answered, so a changed limit or a removed key applies from the next request on. Required.
	Settings func() *settings.Settings
	// Service starts verifications and reads them. Required.
	Service *verification.Service
	// Invite returns the link and the text for the code of a request, by its Method and its DisplayName. It is called only
	// for a method that is ready. Required.
	Invite func(*settings.Settings, *verification.Request, verification.Code) Invitation
	// Hooks are further handlers by their exact path, such as /hooks/whatsapp. They handle methods, bodies and errors
	// themselves; the API adds the request id, the log line and the metrics. logr.FromContext returns a logger with the
	// request id.
	Hooks map[string]http.Handler
	// Pages handles all paths that begin with PagePrefix, in the same way; nil for none. Its paths are neither logged nor counted
	// one by one, because they hold tickets.
	Pages http.Handler
	// ReadUnsigned reads a body whose signature is still to be checked, and returns a function that must be called when it is no longer
	// used. verification.Unavailable means that too many are being read. nil refuses the parameter format.
	ReadUnsigned func(http.ResponseWriter, *http.Request) (content []byte, release func(), err error)
	// Clock is the source of the time; nil for the real clock.
	Clock clock.Clock
	// Log gets one line for each request that failed with an internal error. Its zero value logs nothing.
	Log logr.Logger
	// Requests gets the lines of all other requests and may write them late; nil for the handler of Log.
	Requests slog.Handler
	// Registerer gets the metrics; nil for none.
	Registerer prometheus.Registerer
	// Holds limits the long polls; nil for a limiter of their own, by boundedhttp.Budget.
	Holds *boundedhttp.HoldLimiter
}

// Invitation is the message that an end user has to send, and the link that opens it.
type Invitation struct {
	// Link opens the messenger: waLink or tgLink of the answer.
	Link string
	// ExpectedText is the text that the user has to send.
	ExpectedText string
	// PageURL is the page of the request; empty if the project has none.
	PageURL string
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

	readUnsigned func(http.ResponseWriter, *http.Request) ([]byte, func(), error)

	routes map[string]*route
	pages  *route

	request *route

	// The limits of each API key, by its name; retries are those of init. deliveries has those of each key and of each of its numbers.
	statusReads, listReads, redeliveries, retries, deliveries *tokenbucket.Limiter[string]
}

// The paths of the API, also used in log lines and metrics.
const (
	pathInit    = "/api/verify/init"
	pathStatus  = "/api/verify/status"
	pathConfirm = "/api/verify/confirm"
	pathDeliver = "/api/verify/deliver"
	pathOpenAPI = "/openapi.json"

	pathRequests  = "/api/verify/requests"
	pathFind      = "/api/verify/requests/find"
	pathCancel    = "/api/verify/cancel"
	pathRedeliver = "/api/verify/redeliver"
	// PagePrefix begins the paths of Options.Pages.
	PagePrefix = "/v/"
)

// route is the handling of one path.
type route struct {
	pattern string
	// allow is the Allow header of a 405; empty if hook checks methods itself.
	allow   string
	methods [2]string
	serve   func(*exchange) error
	hook    http.Handler
}

// acceptsMethod reports whether the route has that method.
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
	if o.Holds == nil {
		o.Holds = boundedhttp.NewHoldLimiter(boundedhttp.Budget())
	}
	a := &API{
		settings: o.Settings, service: o.Service, invite: o.Invite, clock: o.Clock, log: o.Log, requests: o.Requests,
		metrics: newMetrics(), waits: waitLimiter{holds: o.Holds}, readUnsigned: o.ReadUnsigned,
		statusReads: tokenbucket.NewLimiter[string](maxLimitedKeys), listReads: tokenbucket.NewLimiter[string](maxLimitedKeys),
		redeliveries: tokenbucket.NewLimiter[string](maxLimitedKeys), retries: tokenbucket.NewLimiter[string](maxLimitedKeys),
		deliveries: tokenbucket.NewLimiter[string](maxDeliveredNumbers),
	}
	a.routes = map[string]*route{
		pathInit:      {pattern: pathInit, allow: "POST", methods: [2]string{http.MethodPost}, serve: (*exchange).serveInit},
		pathDeliver:   {pattern: pathDeliver, allow: "POST", methods: [2]string{http.MethodPost}, serve: (*exchange).serveDeliver},
		pathConfirm:   {pattern: pathConfirm, allow: "POST", methods: [2]string{http.MethodPost}, serve: (*exchange).serveConfirm},
		pathCancel:    {pattern: pathCancel, allow: "POST", methods: [2]string{http.MethodPost}, serve: (*exchange).serveCancel},
		pathRedeliver: {pattern: pathRedeliver, allow: "POST", methods: [2]string{http.MethodPost}, serve: (*exchange).serveRedeliver},
		pathRequests:  {pattern: pathRequests, allow: "GET", methods: [2]string{http.MethodGet}, serve: (*exchange).serveList},
		pathFind:      {pattern: pathFind, allow: "POST", methods: [2]string{http.MethodPost}, serve: (*exchange).serveFind},
		// HEAD is refused: it would read the store and return no status.
		pathStatus: {pattern: pathStatus, allow: "GET", methods: [2]string{http.MethodGet}, serve: (*exchange).serveStatus},
		pathOpenAPI: {
			pattern: pathOpenAPI, allow: "GET, HEAD", methods: [2]string{http.MethodGet, http.MethodHead}, serve: (*exchange).serveDocument,
		},
	}
	a.request = &route{
		pattern: pathRequests + "/{id}", allow: "GET", methods: [2]string{http.MethodGet}, serve: (*exchange).serveRequest,
	}
	for path, hook := range o.Hooks {
		if a.routes[path] != nil || !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("hook at %q: the path is taken or not absolute", path)
		}
		a.routes[path] = &route{pattern: path, hook: hook}
	}
	if o.Pages != nil {
		a.pages = &route{pattern: PagePrefix, hook: o.Pages}
	}
	if o.Registerer != nil {
		if err := a.metrics.registerAll(o.Registerer); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return a, nil
}

// findRoute returns the route of a request, or nil. Paths match byte by byte: nothing is cleaned, decoded twice or
// redirected, because a proxy in front may have authorized the path as it was written.
//
// The path of baseURL is a prefix. Routes answer with it and without it, because some proxies strip it and others keep
// it. The form with it comes first, because the prefix may begin as the paths of pages and of single requests do.
func (a *API) findRoute(r *http.Request, s *settings.Settings) *route {
	if r.URL.RawPath != "" || r.URL.Opaque != "" { // The path is escaped where it need not be, as %69nit for init.
		return nil
	}
	if inside, hasPrefix := strings.CutPrefix(r.URL.Path, s.PathPrefix); hasPrefix {
		if rt := a.routeOf(inside); rt != nil {
			return rt
		}
	}
	return a.routeOf(r.URL.Path)
}

// isRequestPath reports whether a path is that of a single request.
func isRequestPath(path string) bool {
	id, found := strings.CutPrefix(path, pathRequests+"/")
	return found && id != "" && !strings.Contains(id, "/")
}

func (a *API) routeOf(path string) *route {
	rt := a.routes[path]
	switch {
	case rt != nil:
		return rt
	case strings.HasPrefix(path, PagePrefix):
		return a.pages
	case isRequestPath(path):
		return a.request
	default:
		return nil
	}
}
