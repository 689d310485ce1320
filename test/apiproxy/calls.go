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

// writeVerb returns the verb of a write of the resource; empty for any other call.
func (p *Proxy) writeVerb(r *http.Request) string {
	if !p.isAboutResource(r) {
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

// isAboutResource reports whether a call is about the resource.
func (p *Proxy) isAboutResource(r *http.Request) bool {
	resource, _ := splitPath(r.URL.Path)
	return resource == p.resource
}

// splitPath returns the resource and the object of a path of the form /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE[/OBJECT[/status]].
// Both are empty for another path.
func splitPath(path string) (resource, object string) {
	const place = 6
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch {
	case len(parts) < place || parts[0] != "apis":
		return "", ""
	case len(parts) == place:
		return parts[place-1], ""
	default:
		return parts[place-1], parts[place]
	}
}

// isInformerWatch reports whether a call is the watch of an informer, which lasts for minutes. A read that is made as a watch
// ends within seconds.
func (p *Proxy) isInformerWatch(r *http.Request) bool {
	query := r.URL.Query()
	return p.isAboutResource(r) && r.Method == http.MethodGet && query.Get("watch") != "" && len(query.Get("timeoutSeconds")) > 1
}

// failure is an error response to a write.
type failure struct {
	code        int
	contentType string
	body        string
}

// writeTo sends the response at once. The client may be gone.
func (f failure) writeTo(w http.ResponseWriter) {
	w.Header().Set("Content-Type", f.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(f.body)))
	w.WriteHeader(f.code)
	_, _ = w.Write([]byte(f.body))
	_ = http.NewResponseController(w).Flush()
}

// The responses, in turn, to writes that were not forwarded (failures) and to writes that were stored (losses). A load balancer
// answers in HTML, and may answer 503 if its connection broke after it had sent the write.
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

// badGateway returns a load balancer's response.
func badGateway(code int) failure {
	return failure{code, "text/html", "<html><body><h1>" + http.StatusText(code) + "</h1></body></html>"}
}
