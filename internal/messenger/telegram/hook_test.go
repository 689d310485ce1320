package telegram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestHook_secret refuses every update without the right secret, and stores nothing of it.
func TestHook_secret(t *testing.T) {
	right := WebhookSecret([]byte(botToken), projectName)
	for name, row := range map[string]struct {
		secrets []string
		want    int
	}{
		"right":                   {[]string{right}, http.StatusOK},
		"absent":                  {nil, http.StatusUnauthorized},
		"empty":                   {[]string{""}, http.StatusUnauthorized},
		"wrong":                   {[]string{strings.Repeat("a", len(right))}, http.StatusUnauthorized},
		"another project's":       {[]string{WebhookSecret([]byte(botToken), "shop/other")}, http.StatusUnauthorized},
		"another bot's":           {[]string{WebhookSecret([]byte("5022:x"), projectName)}, http.StatusUnauthorized},
		"the token itself":        {[]string{botToken}, http.StatusUnauthorized},
		"cut":                     {[]string{right[:len(right)-1]}, http.StatusUnauthorized},
		"longer":                  {[]string{right + "a"}, http.StatusUnauthorized},
		"other case":              {[]string{strings.ToUpper(right)}, http.StatusUnauthorized},
		"256 characters":          {[]string{strings.Repeat("a", 256)}, http.StatusUnauthorized},
		"257 characters":          {[]string{strings.Repeat("a", 257)}, http.StatusUnauthorized},
		"two headers, both right": {[]string{right, right}, http.StatusUnauthorized},
		"two headers, one right":  {[]string{right, "x"}, http.StatusUnauthorized},
		"two in one":              {[]string{right + "," + right}, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.initiate("golden").Request.ID
			w.later(30 * time.Second)
			w.accept(golden(t, "in/start"))
			answer := w.postTo(w.channel, golden(t, "in/contact"), row.secrets...)
			w.Expect(answer.Code).To(Equal(row.want))
			want := verification.Pending
			if row.want == http.StatusOK {
				want = verification.Verified
			}
			w.Expect(w.phase(id)).To(Equal(want))
		})
	}
}

func TestWebhookSecret_isOneThatTelegramTakes(t *testing.T) {
	NewWithT(t).Expect(WebhookSecret([]byte(botToken), projectName)).To(MatchRegexp(`^[A-Za-z0-9_-]{43}$`))
}

func TestHook_methodsAndModes(t *testing.T) {
	for name, row := range map[string]struct {
		method string
		change func(*settings.Settings)
		want   int
	}{
		"GET":     {http.MethodGet, func(*settings.Settings) {}, http.StatusMethodNotAllowed},
		"HEAD":    {http.MethodHead, func(*settings.Settings) {}, http.StatusMethodNotAllowed},
		"PUT":     {http.MethodPut, func(*settings.Settings) {}, http.StatusMethodNotAllowed},
		"polling": {http.MethodPost, func(s *settings.Settings) { s.Telegram.Polling = true }, http.StatusNotFound},
		"no bot":  {http.MethodPost, func(s *settings.Settings) { s.Telegram = nil }, http.StatusNotFound},
		// Its token is made up: who guesses it could speak for any user.
		"no simulator": {http.MethodPost, func(s *settings.Settings) { s.Telegram.Simulated = true }, http.StatusNotFound},
		"no token":     {http.MethodPost, func(s *settings.Settings) { s.Telegram.BotToken = settings.Secret{} }, http.StatusUnauthorized},
		"all is set":   {http.MethodPost, func(*settings.Settings) {}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			row.change(w.settings)
			r := httptest.NewRequestWithContext(t.Context(), row.method, HookPath, bytes.NewReader(golden(t, "in/small_talk")))
			r.Header.Set(secretHeader, WebhookSecret([]byte(botToken), projectName))
			recorder := httptest.NewRecorder()
			w.channel.Hook().ServeHTTP(recorder, r)
			w.Expect(recorder.Code).To(Equal(row.want))
			if row.want == http.StatusMethodNotAllowed {
				w.Expect(recorder.Header().Get("Allow")).To(Equal(http.MethodPost))
			}
		})
	}
}

// TestHook_tokenReplaced: Telegram goes on with the old secret until the new webhook is set, and
// who sent the code before shares the contact after.
func TestHook_tokenReplaced(t *testing.T) {
	w := newWorld(t)
	dir, clk := t.TempDir(), clocktesting.NewFakeClock(w.now())
	live := settings.NewLive(dir, clk, logr.Discard())
	replace := func(token, displayName string) string {
		w.Expect(os.MkdirAll(dir+"/shop", 0o700)).To(Succeed())
		for key, value := range map[string]string{"bot": token, "key": "a-key-of-32-characters-at-least-0123"} {
			w.Expect(os.WriteFile(dir+"/shop/"+key, []byte(value), 0o600)).To(Succeed())
		}
		clk.SetTime(w.now())
		w.Expect(live.SetProject(&verifyv1.VerificationProject{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "acme"},
			Spec: verifyv1.VerificationProjectSpec{
				DisplayName: displayName, BaseURL: "https://verify.example.com",
				APIKeys:  []verifyv1.APIKey{{Name: "backend", SecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "key"}}},
				Telegram: &verifyv1.Telegram{BotUsername: "example_shop_bot", BotTokenSecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "bot"}},
			},
		})).To(Succeed()) // another name has it read the files
		w.Expect(live.Problems()).To(BeEmpty())
		return WebhookSecret([]byte(token), projectName)
	}
	client, err := NewClient(ClientOptions{Transport: w.api})
	w.Expect(err).NotTo(HaveOccurred())
	c, err := New(Options{Settings: live.Current, Service: w.service, Client: client, Clock: w.clock})
	w.Expect(err).NotTo(HaveOccurred())

	id := w.initiate("golden").Request.ID
	old := replace("5021:"+strings.Repeat("A", 35), "one")
	w.Expect(w.postTo(c, w.update(1, user, "/start "+goldenCode), old).Code).To(Equal(http.StatusOK))
	w.later(time.Minute)
	renewed := replace("5021:"+strings.Repeat("B", 35), "two")
	w.Expect(renewed).NotTo(Equal(old))
	w.Expect(w.postTo(c, w.update(2, user, "hello"), old).Code).To(Equal(http.StatusOK))
	w.Expect(w.postTo(c, w.contactUpdate(3, user, claimed), renewed).Code).To(Equal(http.StatusOK))
	w.Expect(w.phase(id)).To(Equal(verification.Verified))
	w.later(settings.Overlap)
	w.Expect(w.postTo(c, w.update(4, user, "hello"), old).Code).To(Equal(http.StatusUnauthorized))
	w.Expect(w.postTo(c, w.update(5, user, "hello"), renewed).Code).To(Equal(http.StatusOK))
}

// TestHook_body shows that nothing of a request without the secret is read, and no more than the limit of one
// with it.
func TestHook_body(t *testing.T) {
	w := newWorld(t)
	secret := WebhookSecret([]byte(botToken), projectName)
	server := httptest.NewServer(w.channel.Hook())
	defer server.Close()
	post := func(body io.Reader, secret string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
		w.Expect(err).NotTo(HaveOccurred())
		r.Header.Set(secretHeader, secret)
		response, err := http.DefaultClient.Do(r)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(response.Body.Close()).To(Succeed())
		return response.StatusCode
	}
	endless := &counting{}
	w.Expect(post(io.LimitReader(endless, 64<<20), "wrong")).To(Equal(http.StatusUnauthorized))
	w.Expect(endless.n.load()).To(BeNumerically("<", 16<<20))
	w.Expect(post(io.LimitReader(endless, 64<<20), secret)).To(Equal(http.StatusOK), "redelivery would not make it smaller")
	full := w.update(1, user, strings.Repeat("a", maxUpdateBytes))
	w.Expect(post(bytes.NewReader(full[:maxUpdateBytes]), secret)).To(Equal(http.StatusOK))
	w.Expect(w.outcomes()).To(Equal(map[messenger.Outcome]float64{messenger.OutcomeMalformed: 1}), "the larger ones were not looked at")
}

type counting struct{ n counter }

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) load() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *counting) Read(p []byte) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.n.n += len(p)
	return len(p), nil
}

func TestHook_badJSONIsAcknowledged(t *testing.T) {
	for _, body := range []string{
		"", "null", "[]", "1", `"x"`, "{", "{}", `{"update_id":1`, `{"update_id":1}x`, `{"update_id":1,"message":[]}`, `{"update_id":1,"message":null}`,
		`{"update_id":1,"message":{"from":"x"}}`, `{"update_id":1,"message":{"text":1}}`, `{"UPDATE_ID":1,"MESSAGE":{}}`,
		"\xef\xbb\xbf{}", strings.Repeat("[", 100_000), `{"update_id":1,"message":{"text":"\ud800"}}`, "\x00", "\xff\xfe",
	} {
		w := newWorld(t)
		w.Expect(w.post([]byte(body)).Code).To(Equal(http.StatusOK), "%.40q", body)
		w.flush()
		w.Expect(w.api.calls).To(BeEmpty())
	}
}

// TestHook_notAcknowledgedBeforeItIsStored is a store that is away: redelivery of the same update then succeeds.
func TestHook_notAcknowledgedBeforeItIsStored(t *testing.T) {
	w := newWorld(t)
	id := w.initiate("golden").Request.ID
	start, contact := w.update(1, user, "/start "+goldenCode), w.contactUpdate(2, user, claimed)
	for _, update := range [][]byte{start, contact} {
		w.backend.Fail(errors.New("canary of the store"))
		for range 2 * messenger.MaxPerSender { // redelivery must not use up what the sender may send
			answer := w.post(update)
			w.Expect(answer.Code).To(Equal(http.StatusServiceUnavailable))
			w.Expect(answer.Header().Get("Retry-After")).To(Equal("5"))
			w.Expect(answer.Body.String()).NotTo(ContainSubstring("canary"))
		}
		w.backend.Fail(nil)
		w.Expect(w.post(update).Code).To(Equal(http.StatusOK))
	}
	w.Expect(w.phase(id)).To(Equal(verification.Verified))
	w.Expect(w.api.got("sendMessage")).To(HaveLen(1))
}

// TestHook_promptIsPartOfIt has the update delivered again where the prompt cannot be sent, and not where it never can.
func TestHook_promptIsPartOfIt(t *testing.T) {
	for name, row := range map[string]struct {
		want  int
		retry string
	}{
		"error_500": {http.StatusServiceUnavailable, "5"}, "error_429": {http.StatusServiceUnavailable, "7"},
		"error_401": {http.StatusServiceUnavailable, "5"}, "error_403": {http.StatusOK, ""}, "error_400": {http.StatusOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.initiate("golden").Request.ID
			w.api.failing(always("sendMessage", name))
			answer := w.post(w.update(1, user, "/start "+goldenCode))
			w.Expect(answer.Code).To(Equal(row.want))
			w.Expect(answer.Header().Get("Retry-After")).To(Equal(row.retry))
			w.api.failing(nil)
			w.Expect(w.accept(w.update(1, user, "/start "+goldenCode))).To(Equal(messenger.OutcomeNeedContact), "delivered again")
			w.Expect(w.accept(w.contactUpdate(2, user, claimed))).To(Equal(messenger.OutcomeVerified))
			w.Expect(w.phase(id)).To(Equal(verification.Verified))
		})
	}
}

// TestHook_clientGoesAway is Telegram hanging up: nothing is claimed to be stored.
func TestHook_clientGoesAway(t *testing.T) {
	w := newWorld(t)
	w.initiate("golden")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, HookPath, bytes.NewReader(w.update(1, user, "/start "+goldenCode)))
	r.Header.Set(secretHeader, WebhookSecret([]byte(botToken), projectName))
	recorder := httptest.NewRecorder()
	w.channel.Hook().ServeHTTP(recorder, r)
	w.Expect(recorder.Code).To(Equal(http.StatusServiceUnavailable))
	r = httptest.NewRequestWithContext(t.Context(), http.MethodPost, HookPath, io.MultiReader(strings.NewReader("{"), brokenReader{}))
	r.Header.Set(secretHeader, WebhookSecret([]byte(botToken), projectName))
	recorder = httptest.NewRecorder()
	w.channel.Hook().ServeHTTP(recorder, r)
	w.Expect(recorder.Code).To(Equal(http.StatusBadRequest))
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, fmt.Errorf("reset: %w", io.ErrUnexpectedEOF) }

// refusing is a store that refuses every change for its content.
type refusing struct{ verification.Store }

func (refusing) Update(
	context.Context, string, func(*verification.Request, time.Time) error,
) (verification.Request, error) {
	return verification.Request{}, fmt.Errorf("canary: %w", verification.ErrContent)
}

// TestHook_whatCanNeverBeStored does not come again.
func TestHook_whatCanNeverBeStored(t *testing.T) {
	w := newWorld(t)
	w.channel.service = verification.NewService(verification.NewCodeSpace(projectName), refusing{w.backend.Open(projectName)})
	w.initiate("golden")
	w.Expect(w.accept(w.update(1, user, "/start "+goldenCode))).To(Equal(messenger.OutcomeContentRefused))
	w.flush()
	w.Expect(w.api.all()).To(BeEmpty())
}
