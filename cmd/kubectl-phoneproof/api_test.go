package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/httpapi"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// serveAPI serves the API of the project, as a pod does, and returns what it works on.
func (w *world) serveAPI() (*verification.Service, verification.Store) {
	w.t.Helper()
	usable := settings.NewSecret([]byte("a secret of the messenger's account"))
	current := &settings.Settings{
		Project: w.namespace + "/shop", ProjectID: "shop", DisplayName: "Shop", TTL: 10 * time.Minute, Retention: time.Hour,
		Keys: settings.NewKeys(settings.Key{
			Name: "backend", Hash: sha256.Sum256([]byte(apiKeyValue)),
			Scopes: settings.ScopeInit | settings.ScopeStatus | settings.ScopeRead | settings.ScopeRedeliver,
		}),
		Telegram: &settings.Telegram{BotUsername: "shop_bot", BotToken: usable},
		Webhook:  &settings.Webhook{URL: "https://shop.example.com/", Events: verification.NewEventKinds(verification.EventSuccess)},
	}
	store := memory.NewBackend(memory.Options{Clock: clock.RealClock{}}).Open(current.Project)
	service := verification.NewService(verification.NewCodeSpace(current.Project), store)
	api, err := httpapi.New(httpapi.Options{
		Settings: func() *settings.Settings { return current }, Service: service, Log: logr.Discard(), Registerer: prometheus.NewRegistry(),
		Invite: func(s *settings.Settings, _ *verification.Request, code verification.Code) httpapi.Invitation {
			return httpapi.Invitation{Link: telegram.Link(s.Telegram.BotUsername, code), ExpectedText: telegram.ExpectedText(code)}
		},
	})
	w.Expect(err).NotTo(HaveOccurred())
	w.listen(api)
	return service, store
}

func (w *world) listen(handler http.Handler) {
	server := httptest.NewServer(handler)
	w.t.Cleanup(server.Close)
	w.api = strings.TrimPrefix(server.URL, "http://")
}

// startMany starts verifications, and returns their ids, oldest first.
func startMany(w *world, service *verification.Service, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		claimed, err := phone.Parse(fmt.Sprintf("+491511%07d", 2_345_000+i))
		w.Expect(err).NotTo(HaveOccurred())
		initiated, err := service.Initiate(w.t.Context(), verification.Initiation{
			Phone: claimed, Method: verification.Telegram, TTL: 10 * time.Minute, KeyName: "backend",
			ClientData: verification.ClientData{Reference: fmt.Sprintf("order %d", i)},
		})
		w.Expect(err).NotTo(HaveOccurred())
		ids[i] = initiated.Request.ID
	}
	return ids
}

// giveUp verifies a request whose event could not be delivered.
func giveUp(w *world, store verification.Store, id string) {
	_, err := store.Update(w.t.Context(), id, func(r *verification.Request, now time.Time) error {
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, now, r.Phone
		r.Delivery = verification.Delivery{Attempts: 10, LastAttemptAt: now, LastStatusCode: 500, LastReason: "http_500", ExhaustedAt: now}
		return nil
	})
	w.Expect(err).NotTo(HaveOccurred())
}

func TestRequests_byTheAPI(t *testing.T) {
	w := newWorld(t, onPostgreSQL)
	w.createPod()
	service, store := w.serveAPI()
	ids := startMany(w, service, 450)
	giveUp(w, store, ids[7])

	w.Expect(w.mustFail("requests", "list", "shop")).To(And(
		ContainSubstring("needs an API key with the scope Read"), ContainSubstring("the project has backend")))
	w.Expect(w.mustFail("requests", "list", "shop", "--api-key=absent")).To(ContainSubstring("the project has no API key absent"))
	table := w.must("requests", "list", "shop", "--api-key=backend", "--limit=500")
	w.Expect(strings.Count(table, "+49*********")).To(Equal(450), "three pages, and no whole number")
	t.Setenv("PHONEPROOF_API_KEY", apiKeyValue)
	w.Expect(w.idsOf(w.must("requests", "list", "shop", "-o=json", "--limit=201"))).To(HaveLen(201))
	w.Expect(w.idsOf(w.must("requests", "list", "shop", "-o=json", "--status=verified"))).To(Equal([]string{ids[7]}))
	w.Expect(w.idsOf(w.must("requests", "list", "shop", "-o=json", "--reference=order 11", "--since=1h"))).To(Equal([]string{ids[11]}))

	w.Expect(w.must("requests", "get", "shop", ids[7])).To(And(
		MatchRegexp(`verification.success +500 +http_500`), ContainSubstring("EXHAUSTED, 10 attempts"), ContainSubstring("order 7")))
	w.Expect(w.mustFail("requests", "get", "shop", "vr1")).To(ContainSubstring("the API answered 404 request_not_found"))
	t.Setenv("PHONEPROOF_API_KEY", "another-key-than-that-of-the-project")
	w.Expect(w.mustFail("requests", "list", "shop")).To(And(ContainSubstring("401 unknown_api_key"), Not(ContainSubstring("another-key"))))
	w.Expect(w.mustFail("requests", "delete", "shop", "vr1")).To(ContainSubstring("keeps its requests in PostgreSQL"))
}

func TestRequests_watchByTheAPI(t *testing.T) {
	w := newWorld(t, onPostgreSQL)
	w.createPod()
	service, store := w.serveAPI()
	id := startMany(w, service, 2)[1]
	ended := make(chan string, 1)
	go func() {
		printed, _, err := w.runIn(t.Context(), "requests", "watch", "shop", id, "--api-key=backend")
		if err != nil {
			printed = err.Error()
		}
		ended <- printed
	}()
	w.Eventually(w.printed).Should(gbytes.Say("PENDING"))
	giveUp(w, store, id)
	w.Eventually(ended).Should(Receive(And(ContainSubstring("PENDING"), ContainSubstring("VERIFIED"), ContainSubstring("EXHAUSTED"))))
}

func TestRequests_watchByTheAPIEndsForAnAbsentRequest(t *testing.T) {
	w := newWorld(t, onPostgreSQL)
	w.createPod()
	service, store := w.serveAPI()
	ended := make(chan string, 1)
	w.watchRequest(ended, "vr1", "--api-key=backend")
	w.Expect(ended).To(Receive(Equal("request vr1: not found")))
	id := startMany(w, service, 201)[0] // the newest 200 are other ones
	go w.watchRequest(ended, id, "--api-key=backend")
	w.Eventually(w.printed).Should(gbytes.Say("PENDING"))
	stored, err := service.Status(t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(store.Delete(t.Context(), id, stored.Version)).To(Succeed())
	w.Eventually(ended).Should(Receive(And(ContainSubstring("PENDING"), HaveSuffix("request "+id+": deleted while it was watched"))))
}

// What the API limits is waited for.
func TestRequests_listWaitsForTheLimit(t *testing.T) {
	w := newWorld(t, onPostgreSQL)
	w.createPod()
	calls := 0
	w.listen(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			out.Header().Set("Retry-After", "1")
			out.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = out.Write([]byte(`{"requests":[]}`))
	}))
	w.Expect(w.idsOf(w.must("requests", "list", "shop", "-o=json", "--api-key=backend"))).To(BeEmpty())
	w.Expect(calls).To(Equal(2))
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
	service, _ := w.serveAPI()
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
	service, store := w.serveAPI()
	ids := startMany(w, service, 2)
	w.Expect(w.must("cancel", "shop", ids[0], "--api-key=backend")).To(HaveSuffix("canceled\n"))
	w.Expect(w.must("requests", "get", "shop", ids[0], "--api-key=backend")).To(And(ContainSubstring("EXPIRED"), ContainSubstring("CANCELED")))
	giveUp(w, store, ids[1])
	w.Expect(w.mustFail("cancel", "shop", ids[1], "--api-key=backend")).To(ContainSubstring("409 already_verified"))
}
