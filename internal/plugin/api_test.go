package plugin_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/httpapi"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/plugin/podapi"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// serveAPI serves the API of the project, as a pod does, and returns its domain.
func (w *world) serveAPI() *verification.Service {
	w.t.Helper()
	usable := settings.NewSecret([]byte("a secret of the messenger's account"))
	current := &settings.Settings{
		Project: w.namespace + "/shop", ProjectID: "shop", DisplayName: "Shop", TTL: 10 * time.Minute, Retention: time.Hour,
		Keys: settings.NewKeys(settings.Key{
			Name: "backend", Hash: sha256.Sum256([]byte(apiKeyValue)),
			Scopes: settings.ScopeInit | settings.ScopeStatus | settings.ScopeRead | settings.ScopeRedeliver,
		}),
		Telegram: &settings.Telegram{BotUsername: "shop_bot", BotToken: usable},
	}
	service := verification.NewService(verification.NewCodeSpace(current.Project),
		memory.NewBackend(memory.Options{Clock: clock.RealClock{}}).Open(current.Project))
	api, err := httpapi.New(httpapi.Options{
		Settings: func() *settings.Settings { return current }, Service: service, Log: logr.Discard(), Registerer: prometheus.NewRegistry(),
		Invite: func(s *settings.Settings, _ *verification.Request, code verification.Code) httpapi.Invitation {
			return httpapi.Invitation{Link: telegram.Link(s.Telegram.BotUsername, code), ExpectedText: telegram.ExpectedText(code)}
		},
	})
	w.Expect(err).NotTo(HaveOccurred())
	w.listen(api)
	return service
}

func (w *world) listen(handler http.Handler) {
	server := httptest.NewServer(handler)
	w.t.Cleanup(server.Close)
	w.api = strings.TrimPrefix(server.URL, "http://")
}

// recordedAPI answers with requests in the form of the API's contract.
type recordedAPI struct {
	requests []podapi.Request
	// calls are the methods, paths and queries of the calls so far.
	calls []string
}

// ServeHTTP answers a call with the right key.
func (a *recordedAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.calls = append(a.calls, r.Method+" "+r.URL.RequestURI())
	if r.Header.Get("Authorization") != "Bearer "+apiKeyValue {
		refuse(w, http.StatusUnauthorized, "unknown_api_key", "The API key is not known to this project.")
		return
	}
	switch {
	case r.URL.Path == "/api/verify/requests":
		a.list(w, r)
	case strings.HasPrefix(r.URL.Path, "/api/verify/requests/"):
		a.get(w, strings.TrimPrefix(r.URL.Path, "/api/verify/requests/"))
	case r.Method == http.MethodPost:
		var body struct {
			RequestID string `json:"requestId"`
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		a.get(w, body.RequestID)
	}
}

// list answers pages, whose cursor is a position.
func (a *recordedAPI) list(w http.ResponseWriter, r *http.Request) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	until := min(from+limit, len(a.requests))
	page := podapi.Page{Requests: a.requests[from:until]}
	if until < len(a.requests) {
		page.NextCursor = strconv.Itoa(until)
	}
	_ = json.NewEncoder(w).Encode(page)
}

func (a *recordedAPI) get(w http.ResponseWriter, id string) {
	for _, request := range a.requests {
		if request.RequestID == id {
			_ = json.NewEncoder(w).Encode(request)
			return
		}
	}
	refuse(w, http.StatusNotFound, "request_not_found", "No such request is stored.")
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"code":%q,"message":%q}}`, code, message)
}

func manyRequests(n int) []podapi.Request {
	list := make([]podapi.Request, n)
	for i := range list {
		list[i] = podapi.Request{
			RequestID: fmt.Sprintf("vr%024d", i), Status: podapi.Verified, PhoneNumber: number, Method: "TELEGRAM",
			CreatedAt: time.Now().Add(-time.Duration(i) * time.Second),
			Delivery:  &podapi.Delivery{State: podapi.DeliveryExhausted, Attempts: 10},
			Attempts:  []podapi.Attempt{{At: time.Now(), Event: "verification.success", StatusCode: 500, Reason: "http_500"}},
		}
	}
	return list
}

func TestRequests_byTheAPI(t *testing.T) {
	w := newWorld(t, onPostgreSQL)
	w.createPod()
	api := &recordedAPI{requests: manyRequests(450)}
	w.listen(api)

	w.Expect(w.mustFail("requests", "list", "shop")).To(And(
		ContainSubstring("needs an API key with the scope Read"), ContainSubstring("the project has backend")))
	w.Expect(w.mustFail("requests", "list", "shop", "--api-key=absent")).To(ContainSubstring("the project has no API key absent"))
	printed := w.must("requests", "list", "shop", "--api-key=backend", "--limit=450", "--status=verified", "--since=1h", "--reference=a b")
	w.Expect(strings.Count(printed, masked)).To(Equal(450))
	w.Expect(api.calls).To(HaveLen(3))
	w.Expect(api.calls[0]).To(And(HavePrefix("GET /api/verify/requests?limit=200&reference=a+b&since="), HaveSuffix("&status=VERIFIED")))
	w.Expect(api.calls[2]).To(HavePrefix("GET /api/verify/requests?cursor=400&limit=50&"))

	t.Setenv("PHONEPROOF_API_KEY", apiKeyValue)
	w.Expect(w.must("requests", "get", "shop", "vr000000000000000000000007")).To(MatchRegexp(`verification.success +500 +http_500`))
	w.Expect(w.mustFail("requests", "get", "shop", "vr1")).To(ContainSubstring("the API answered 404 request_not_found: No such request is stored."))
	t.Setenv("PHONEPROOF_API_KEY", "another-key-than-that-of-the-project")
	w.Expect(w.mustFail("requests", "list", "shop")).To(And(ContainSubstring("401 unknown_api_key"), Not(ContainSubstring("another-key"))))
	w.Expect(w.mustFail("requests", "delete", "shop", "vr1")).To(ContainSubstring("keeps its requests in PostgreSQL"))
}

func TestRequests_byTheAPIWithoutAPod(t *testing.T) {
	w := newWorld(t, onPostgreSQL)
	w.Expect(w.mustFail("requests", "list", "shop", "--api-key=backend")).To(ContainSubstring("no pod of the project is ready"))
	w.createPod()
	w.Expect(w.mustFail("requests", "list", "shop", "--api-key=backend")).To(And(ContainSubstring("refuses connections"), Not(ContainSubstring(apiKeyValue))))
}

func TestVerify_byTheAPI(t *testing.T) {
	w := newWorld(t, onPostgreSQL)
	w.createPod()
	service := w.serveAPI()
	printed := w.must("verify", "shop", "+49 1511 2345678", "--api-key=backend", "--qr=always")
	w.Expect(printed).To(And(MatchRegexp(`request vr[a-z2-7]{24}\n`), ContainSubstring("https://t.me/shop_bot?start="), ContainSubstring("▀")))
	id := strings.Fields(printed)[1]
	stored, err := service.Status(t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(stored.Phone.E164()).To(Equal(number))

	w.Expect(w.must("verify", "shop", number, "--api-key=backend")).NotTo(ContainSubstring("▀"), "there is no terminal")
	w.Expect(w.mustFail("verify", "shop", "12")).To(ContainSubstring("read phone number"))
	w.Expect(w.mustFail("verify", "shop", number, "--method=sms")).To(ContainSubstring("use whatsapp or telegram"))
	w.Expect(w.mustFail("verify", "shop", number, "--method=whatsapp", "--api-key=backend")).To(ContainSubstring("method_not_configured"))
}

func TestCancel_byTheAPI(t *testing.T) {
	w := newWorld(t, onPostgreSQL)
	w.createPod()
	api := &recordedAPI{requests: manyRequests(1)}
	w.listen(api)
	w.Expect(w.must("cancel", "shop", api.requests[0].RequestID, "--api-key=backend")).To(HaveSuffix("canceled\n"))
	w.Expect(api.calls).To(Equal([]string{"POST /api/verify/cancel"}))
}
