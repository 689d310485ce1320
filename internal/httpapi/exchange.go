package httpapi

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// exchange is one request with its answer. It uses the settings of the time at which it began, so they do not change meanwhile.
type exchange struct {
	api      *API
	w        http.ResponseWriter
	r        *http.Request
	settings *settings.Settings
	start    time.Time
	body     requestBody

	// Fields of the log line and labels of the metrics.
	id      string
	route   string
	keyName string
	// testKey is set for a test key, which sees other requests than all others.
	testKey bool
	// refusesByBody is set if the caller reads refusals from the body of a 200.
	refusesByBody bool

	status int
	code   verification.ErrorCode
	cause  error
}

// routeUnknown is the route of all unknown paths, so that their text does not become a log field or a label.
const routeUnknown = "unknown"

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := exchange{api: a, w: w, r: r, settings: a.settings(), start: a.clock.Now(), route: routeUnknown}
	x.body = requestBody{ReadCloser: r.Body, ended: r.ContentLength == 0}
	x.id = chooseRequestID(r.Header)
	x.setCommonHeaders()
	defer x.finishExchange()
	x.serveRoute()
}

func (x *exchange) serveRoute() {
	rt := x.api.findRoute(x.r, x.settings)
	switch {
	case rt == nil:
		x.answerError(errRouteNotFound)
	case !rt.acceptsMethod(x.r.Method):
		x.route = rt.pattern
		x.w.Header().Set("Allow", rt.allow)
		x.answerError(errMethodNotAllowed)
	case rt.hook != nil:
		x.route = rt.pattern
		if rt == x.api.pages && isPageWait(x.r.URL.Path) {
			x.route += waitSuffix
		}
		x.serveHook(rt.hook)
	default:
		x.route = rt.pattern
		if err := rt.serve(x); err != nil {
			x.answerError(err)
		}
	}
}

// isPageWait reports whether a path is that of an open page that waits for news, for up to a minute.
func isPageWait(path string) bool {
	return strings.HasSuffix(path, "/events") || strings.HasSuffix(path, "/state")
}

// serveHook passes the request to the handler of a messenger or of the pages.
func (x *exchange) serveHook(hook http.Handler) {
	recorder := &statusRecorder{ResponseWriter: x.w, exchange: x}
	r := x.r
	if x.route != PagePrefix+waitSuffix || !x.body.ended { // open pages are many, and log nothing of their own
		// The body of the copy records whether it was read to its end; net/http keeps the original.
		r = r.WithContext(logr.NewContext(r.Context(), x.api.log.WithValues("xRequestId", x.id)))
		r.Body = &x.body
	}
	hook.ServeHTTP(recorder, r)
	recorder.beginAnswer(http.StatusOK) // as net/http answers for a handler that wrote nothing
}

// finishExchange recovers a panic, then logs and counts the request.
func (x *exchange) finishExchange() {
	recovered := recover()
	if recovered != nil && recovered != http.ErrAbortHandler { //nolint:errorlint // the sentinel itself is what net/http compares
		wrote := x.status != 0
		x.answerPanic(recovered)
		if wrote { // The client has half an answer, and only a closed connection shows that.
			recovered = http.ErrAbortHandler
		} else {
			recovered = nil
		}
	}
	if recovered != nil && x.status == 0 { // A hook aborted the connection, which the client sees as a server error.
		x.status, x.code = http.StatusInternalServerError, codeInternal
	}
	x.recordRequest()
	if recovered != nil {
		panic(recovered)
	}
}

// answerPanic answers a panic with errInternal. The stack is only logged.
func (x *exchange) answerPanic(value any) {
	x.api.metrics.panics.Inc()
	x.cause = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
	if x.status != 0 {
		x.code = codeInternal
		return
	}
	x.writeError(errInternal)
}

// answerError answers with err. All errors but panics are answered here.
func (x *exchange) answerError(err error) {
	shown, cause := publicError(x.r.Context(), err)
	x.cause = cause
	x.writeError(shown)
}

// statusRecorder records the status of a hook's answer.
type statusRecorder struct {
	http.ResponseWriter

	exchange *exchange
}

// beginAnswer records the first final status.
func (r *statusRecorder) beginAnswer(status int) {
	if r.exchange.status == 0 && status >= http.StatusOK {
		r.exchange.beginAnswer(status)
	}
}

// WriteHeader begins the answer.
func (r *statusRecorder) WriteHeader(status int) {
	r.beginAnswer(status)
	r.ResponseWriter.WriteHeader(status)
}

// Write begins the answer with the status that net/http sends before a body.
func (r *statusRecorder) Write(p []byte) (int, error) {
	r.beginAnswer(http.StatusOK)
	return r.ResponseWriter.Write(p)
}

// FlushError begins the answer in the same way; http.ResponseController calls it.
func (r *statusRecorder) FlushError() error {
	r.beginAnswer(http.StatusOK)
	return http.NewResponseController(r.ResponseWriter).Flush()
}

// Unwrap gives http.ResponseController access to the connection.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
