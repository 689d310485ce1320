package simulator

import (
	"embed"
	"net/http"
)

//go:embed page
var page embed.FS

// routePage serves the page. It loads nothing from elsewhere and may not be framed.
func routePage(mux *http.ServeMux) {
	for path, file := range map[string]struct{ name, kind string }{
		"GET /{$}":       {"page/index.html", "text/html; charset=utf-8"},
		"GET /app.js":    {"page/app.js", "text/javascript; charset=utf-8"},
		"GET /style.css": {"page/style.css", "text/css; charset=utf-8"},
		"GET /icon.svg":  {"page/icon.svg", "image/svg+xml"},
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			content, err := page.ReadFile(file.name)
			if err != nil {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			h := w.Header()
			h.Set("Content-Type", file.kind)
			h.Set("Cache-Control", "no-cache")
			h.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
			h.Set("Referrer-Policy", "no-referrer")
			_, _ = w.Write(content)
		})
	}
}
