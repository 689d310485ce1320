package simulator

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestWrapAPI_answersFaults once each, in place of the API, for the operation that was named, and never for the page's own calls.
func TestWrapAPI_answersFaults(t *testing.T) {
	w := startSimulator(t, Options{ResetLimits: func() {}})
	api := w.sim.WrapAPI(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }))
	call := func(path string, own bool) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}"))
		if own {
			r.Header.Set(ownCall, "true")
		}
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, r)
		return answer
	}
	for _, fault := range []string{
		`{"platform": "api", "method": "init", "status": 429, "retryAfter": 7}`, `{"platform": "api", "method": "requests", "status": 503}`,
		`{"platform": "api", "status": 500}`, `{"platform": "api", "status": 502}`,
	} {
		w.call(http.StatusNoContent, http.MethodPost, "/sim/faults", fault)
	}
	for _, c := range []struct {
		path              string
		own               bool
		status            int
		retryAfter, holds string
	}{
		{"/api/verify/init", true, 200, "", "served"},
		{"/v/ticket", false, 200, "", "served"},
		{"/phones/api/verify/init", false, 429, "7", `"code":"rate_limited"`},
		{"/api/verify/requests/vr1", false, 503, "1", `"code":"store_unavailable"`},
		{"/api/verify/init", false, 500, "", `"code":"internal"`},
		{"/api/verify/status", false, 502, "", "Bad Gateway"},
		{"/api/verify/status", false, 200, "", "served"},
	} {
		answer := call(c.path, c.own)
		w.Expect(answer.Code).To(Equal(c.status), c.path)
		w.Expect(answer.Header().Get("Retry-After")).To(Equal(c.retryAfter), c.path)
		w.Expect(answer.Body.String()).To(ContainSubstring(c.holds), c.path)
	}
}

// TestSimulator_withoutAnAPI has no limits to reset and no faults of one: beside a server there is nothing that could break it.
func TestSimulator_withoutAnAPI(t *testing.T) {
	w := startSimulator(t, Options{})
	w.call(http.StatusBadRequest, http.MethodPost, "/sim/faults", `{"platform": "api", "status": 503}`)
	w.call(http.StatusNotFound, http.MethodDelete, "/sim/limits", "")
	w.Expect(w.call(http.StatusOK, http.MethodGet, "/sim/requests", "")["requests"]).To(BeEmpty())
}

// TestWrapAPI_listsWhatWasBegun once, but none without a link.
func TestWrapAPI_listsWhatWasBegun(t *testing.T) {
	w := startSimulator(t, Options{ResetLimits: func() {}})
	for _, answer := range []string{
		`{"requestId":"vr1","waLink":"https://wa.me/1?text=a"}`, `{"requestId":"vr1","waLink":"https://wa.me/1?text=a"}`,
		`{"requestId":"vr2","test":true}`, `{"error":{"code":"rate_limited"}}`, "no JSON",
		`{"requestId":"vr3","tgLink":"https://t.me/a_bot?start=b","pageURL":"http://127.0.0.1/v/c"}`,
	} {
		api := w.sim.WrapAPI(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		recorder := httptest.NewRecorder()
		api.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/api/verify/init", nil))
		w.Expect(recorder.Body.String()).To(Equal(answer))
	}
	w.Expect(w.call(http.StatusOK, http.MethodGet, "/sim/requests", "")["requests"]).To(HaveExactElements(
		Equal(map[string]any{"requestId": "vr1", "waLink": "https://wa.me/1?text=a"}),
		Equal(map[string]any{"requestId": "vr3", "tgLink": "https://t.me/a_bot?start=b", "pageURL": "http://127.0.0.1/v/c"})))
	w.call(http.StatusNoContent, http.MethodPost, "/sim/reset", "{}")
	w.Expect(w.call(http.StatusOK, http.MethodGet, "/sim/requests", "")["requests"]).To(BeEmpty())
}
