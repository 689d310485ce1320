package apiproxy

import (
	"net/http"
	"strings"
)

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
