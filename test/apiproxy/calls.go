package apiproxy

import (
	"net/http"
	"strconv"
	"strings"
)

// The verbs of writes.
const (
	Create = "create"
	Update = "update"
	Delete = "delete"
)

// writes returns the verb of a write of the resource; empty for any other call.
func (p *Proxy) writes(r *http.Request) string {
	if !p.concerns(r) {
		return ""
	}
	switch r.Method {
	case http.MethodPost:
		return Create
	case http.MethodPut, http.MethodPatch:
		return Update
	case http.MethodDelete:
		return Delete
	default:
		return ""
	}
}

// concerns reports whether a call is about the resource: /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE[/NAME[/status]].
func (p *Proxy) concerns(r *http.Request) bool {
	const place = 6
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return len(parts) >= place && parts[0] == "apis" && parts[place-1] == p.resource
}

// informs reports whether a call is the watch of an informer: it lasts for minutes, where a question that is asked as a
// watch ends within seconds.
func (p *Proxy) informs(r *http.Request) bool {
	query := r.URL.Query()
	return p.concerns(r) && r.Method == http.MethodGet && query.Get("watch") != "" && len(query.Get("timeoutSeconds")) > 1
}

// failure is an answer to a write.
type failure struct {
	code        int
	contentType string
	body        string
}

// write answers with it at once. The client may have gone.
func (f failure) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", f.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(f.body)))
	w.WriteHeader(f.code)
	_, _ = w.Write([]byte(f.body))
	_ = http.NewResponseController(w).Flush()
}

// What is answered in turn to a write that was not passed on, and to one that was stored. Those in HTML are a load
// balancer's. A load balancer may answer 503, too, when its connection broke after it had sent the write.
//
//nolint:gochecknoglobals // constants, which Go has no slices of
var (
	failures = []failure{internalError, timeout, badGateway(http.StatusGatewayTimeout)}
	losses   = append(failures, badGateway(http.StatusServiceUnavailable))

	internalError = failure{http.StatusInternalServerError, "application/json", `{"kind":"Status","apiVersion":"v1","metadata":{},` +
		`"status":"Failure","message":"Internal error occurred: etcdserver: request timed out","reason":"InternalError","code":500}`}
	timeout = failure{http.StatusGatewayTimeout, "application/json", `{"kind":"Status","apiVersion":"v1","metadata":{},` +
		`"status":"Failure","message":"Timeout: request did not complete within requested timeout - context deadline exceeded",` +
		`"reason":"Timeout","details":{},"code":504}`}
	conflict = failure{http.StatusConflict, "application/json", `{"kind":"Status","apiVersion":"v1","metadata":{},` +
		`"status":"Failure","message":"the object has been modified; please apply your changes to the latest version and try again",` +
		`"reason":"Conflict","code":409}`}
)

// badGateway is a load balancer's answer.
func badGateway(code int) failure {
	return failure{code, "text/html", "<html><body><h1>" + http.StatusText(code) + "</h1></body></html>"}
}
