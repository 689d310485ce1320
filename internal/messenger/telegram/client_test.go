package telegram

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/texts"
)

func account(token string) *settings.Telegram {
	return &settings.Telegram{
		BotUsername: "example_shop_bot", BotToken: settings.NewSecret([]byte(token)), Simulated: strings.HasPrefix(token, "sim_"),
	}
}

// serveAPI serves what a test answers on loopback.
func serveAPI(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := NewClient(ClientOptions{BaseURL: server.URL + "/"})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

func TestClient_goldens(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	api, client := w.api, w.channel.client
	replies := map[string]string{
		"getMe": "get_me", "getWebhookInfo": "get_webhook_info", "setWebhook": "ok_true", "deleteWebhook": "ok_true",
		"getUpdates": "get_updates", "sendMessage": "send_message",
	}
	api.failing(func(method string, _ []byte) string { return replies[method] })
	ctx, bot := t.Context(), w.settings.Telegram

	me, err := client.GetMe(ctx, bot)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(me).To(Equal(Bot{ID: 5021, IsBot: true, Username: "example_shop_bot"}))
	info, err := client.GetWebhookInfo(ctx, bot)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.URL).To(Equal("https://verify.example.com/hooks/telegram"))
	g.Expect(info.PendingUpdateCount).To(Equal(3))
	g.Expect(info.LastErrorAt()).To(Equal(time.Unix(1795255000, 0)))
	g.Expect(info.LastErrorMessage).To(ContainSubstring("503"))
	g.Expect(info.OnlyMessages()).To(BeTrue())
	g.Expect(WebhookInfo{}.OnlyMessages()).To(BeFalse())
	g.Expect(WebhookInfo{}.LastErrorAt().IsZero()).To(BeTrue())
	g.Expect(client.SetWebhook(ctx, bot, "https://verify.example.com/hooks/telegram", "SECRET")).To(Succeed())
	g.Expect(client.DeleteWebhook(ctx, bot)).To(Succeed())
	updates, err := client.GetUpdates(ctx, bot, 88140002, 100, 30*time.Second)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(updates).To(HaveLen(2))
	_, err = client.GetUpdates(ctx, bot, 0, 100, 30*time.Second)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(client.SendMessage(ctx, bot, user, texts.Fill(textVerified, "Example Shop"), Keyboard{Remove: true})).To(Succeed())

	for method, files := range map[string][]string{
		"getMe": {"getMe"}, "getWebhookInfo": {"getWebhookInfo"}, "setWebhook": {"setWebhook"}, "deleteWebhook": {"deleteWebhook"},
		"getUpdates": {"getUpdates", "getUpdates_first"}, "sendMessage": {"sendMessage_verified"},
	} {
		for i, file := range files {
			g.Expect(api.got(method)[i]).To(MatchJSON(golden(t, "out/"+file)))
		}
	}
	for _, c := range api.calls {
		g.Expect(c.host).To(Equal("api.telegram.org"))
		g.Expect(c.token).To(Equal(botToken))
	}
}

func TestClient_errorsOfTelegram(t *testing.T) {
	for name, want := range map[string]struct {
		kind  error
		retry time.Duration
	}{
		"error_400": {ErrRefused, 0}, "error_403": {ErrRefused, 0}, "error_401": {ErrCredentials, 0}, "error_404": {ErrCredentials, 0},
		"error_421": {ErrCredentials, 0}, "error_409_poller": {ErrConflict, 0}, "error_409_webhook": {ErrConflict, 0},
		"error_429": {ErrRateLimited, 7 * time.Second}, "error_500": {ErrUnavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t)
			w.api.failing(always("getMe", name))
			_, err := w.channel.client.GetMe(t.Context(), w.settings.Telegram)
			g.Expect(err).To(MatchError(want.kind))
			g.Expect(requestedWait(err)).To(Equal(want.retry))
			known, ok := errors.AsType[*Error](err)
			g.Expect(ok).To(BeTrue())
			g.Expect(known.Description).NotTo(BeEmpty())
			g.Expect(err.Error()).NotTo(ContainSubstring(known.Description))
		})
	}
}

func TestClient_oddAnswers(t *testing.T) {
	for name, row := range map[string]struct {
		answer http.HandlerFunc
		kind   error
	}{
		"a proxy's page": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<html>")
		}, ErrUnavailable},
		"a 404 of another site": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<html>")
		}, ErrUnavailable},
		"empty":          {func(http.ResponseWriter, *http.Request) {}, ErrUnavailable},
		"another result": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"ok":true,"result":[]}`) }, ErrUnavailable},
		"no result":      {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"ok":true}`) }, ErrUnavailable},
		"JSON of another site": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"message":"no such route"}`)
		}, ErrUnavailable},
		"retry for ever": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"ok":false,"error_code":429,"parameters":{"retry_after":999999999999}}`)
		}, ErrRateLimited},
		"retry in the past": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"ok":false,"error_code":429,"parameters":{"retry_after":-1}}`)
		}, ErrRateLimited},
		"too large": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"ok":true,"result":"`+strings.Repeat("a", maxAnswerBytes)+`"}`)
		}, ErrTooLarge},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"ok":`)
		}, ErrUnavailable},
		"hang-up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := serveAPI(t, row.answer).GetMe(t.Context(), account(botToken))
			g.Expect(err).To(MatchError(row.kind))
			g.Expect(requestedWait(err)).To(And(BeNumerically(">=", 0), BeNumerically("<=", maxRetryAfter)))
			g.Expect(fmt.Sprintf("%v %+v", err, err)).NotTo(ContainSubstring("canary"))
		})
	}
}

// TestClient_userAgent reads what goes over the wire with each method.
func TestClient_userAgent(t *testing.T) {
	g := NewWithT(t)
	agents := map[string]string{}
	client := serveAPI(t, func(w http.ResponseWriter, r *http.Request) {
		agents[path.Base(r.URL.Path)] = r.UserAgent()
		fmt.Fprint(w, `{"ok":false,"error_code":400}`)
	})
	ctx, bot := t.Context(), account(botToken)
	_, meErr := client.GetMe(ctx, bot)
	_, infoErr := client.GetWebhookInfo(ctx, bot)
	_, updatesErr := client.GetUpdates(ctx, bot, 0, 1, time.Second)
	for _, err := range []error{
		meErr, infoErr, updatesErr, client.SetWebhook(ctx, bot, "https://verify.example.com", "SECRET"), client.DeleteWebhook(ctx, bot),
		client.SendMessage(ctx, bot, user, "x", Keyboard{}),
	} {
		g.Expect(err).To(MatchError(ErrRefused), "the call was made")
	}
	g.Expect(agents).To(HaveLen(6))
	g.Expect(agents).To(HaveEach("phoneproof/dev (+https://github.com/phoneproof/phoneproof)"))
}

// TestClient_measuresCalls counts what calls met.
func TestClient_measuresCalls(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	metrics, err := messenger.NewCallMetrics(registry)
	g.Expect(err).NotTo(HaveOccurred())
	var answer string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
	t.Cleanup(server.Close)
	client, err := NewClient(ClientOptions{BaseURL: server.URL, Metrics: metrics})
	g.Expect(err).NotTo(HaveOccurred())
	for _, answer = range []string{
		`{"ok":true,"result":{}}`, `{"ok":false,"error_code":500}`, `{"ok":false,"error_code":429}`, `{"ok":false,"error_code":401}`,
		`{"ok":false,"error_code":400}`, `<html>`,
	} {
		_, _ = client.GetMe(t.Context(), account(botToken))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = client.GetMe(ended, account(botToken))
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, _ = client.GetMe(late, account(botToken))
	_, _ = client.GetMe(t.Context(), account("")) // no call is made
	server.Close()
	_, _ = client.GetMe(t.Context(), account(botToken))
	var want strings.Builder
	fmt.Fprintln(&want, "# HELP phoneproof_platform_call_errors_total Calls of the Graph API, the Bot API and Telegram's Gateway that failed, by what they met: refused is also a code to a number without Telegram. Calls that ended with their caller are not counted.")
	fmt.Fprintln(&want, "# TYPE phoneproof_platform_call_errors_total counter")
	for _, class := range []string{"credentials", "failing", "rate_limited", "refused", "timeout", "unreachable", "unreadable"} {
		fmt.Fprintf(&want, "phoneproof_platform_call_errors_total{class=%q,method=\"TELEGRAM\",operation=\"getMe\"} 1\n", class)
	}
	g.Expect(testutil.GatherAndCompare(registry, strings.NewReader(want.String()), "phoneproof_platform_call_errors_total")).To(Succeed())
	g.Expect(testutil.GatherAndCount(registry, "phoneproof_platform_call_duration_seconds")).To(Equal(len(methods)))
}

// TestClient_handshakeTimeout: a TLS handshake that takes too long is a timeout, and no other failure to connect.
func TestClient_handshakeTimeout(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	client, err := NewClient(ClientOptions{
		BaseURL: "https://" + listener.Addr().String(), Transport: &http.Transport{TLSHandshakeTimeout: time.Millisecond},
	})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.GetMe(t.Context(), account(botToken))
	g.Expect(err).To(And(MatchError(ErrUnavailable), MatchError(ContainSubstring("TLS handshake timeout"))))
	failure, _ := errors.AsType[*Error](err)
	g.Expect(failure.Class).To(Equal(messenger.CallTimeout))
}

// TestClient_tokenStaysInside tries the errors in which net/http repeats the URL.
func TestClient_tokenStaysInside(t *testing.T) {
	redirected := 0
	client := serveAPI(t, func(w http.ResponseWriter, r *http.Request) {
		if redirected++; redirected > 1 {
			t.Error("a redirect was followed")
		}
		http.Redirect(w, r, "/elsewhere"+r.URL.Path, http.StatusTemporaryRedirect)
	})
	dead, err := NewClient(ClientOptions{BaseURL: "http://127.0.0.1:1"})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	nowhere, err := NewClient(ClientOptions{BaseURL: "http://no-such-host.invalid"})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	chatty, err := NewClient(ClientOptions{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("cannot get %s", r.URL)
	})})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, row := range map[string]struct {
		client *Client
		end    bool
	}{
		"redirect": {client, false}, "dead": {dead, false}, "no such host": {nowhere, false}, "chatty transport": {chatty, false}, "cancelled": {dead, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if row.end {
				cancel()
			}
			_, err := row.client.GetMe(ctx, account(botToken))
			g.Expect(err).To(MatchError(ErrUnavailable))
			for e := err; e != nil; e = errors.Unwrap(e) {
				g.Expect(fmt.Sprintf("%v %+v %#v", e, e, e)).NotTo(ContainSubstring("canary"))
			}
			g.Expect(errors.Is(err, context.Canceled)).To(Equal(row.end))
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestClient_simulatorAndTelegramNeverMix(t *testing.T) {
	g := NewWithT(t)
	api := &fakeAPI{}
	both, err := NewClient(ClientOptions{Transport: api, SimulatorURL: "http://127.0.0.1:8081/telegram"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(both.DeleteWebhook(t.Context(), account("5021:real"))).To(Succeed())
	g.Expect(api.calls[0].host).To(Equal("api.telegram.org"))
	g.Expect(both.DeleteWebhook(t.Context(), account("sim_5021:x"))).To(Succeed())
	g.Expect(api.calls[1].host).To(Equal("127.0.0.1:8081"))

	one, err := NewClient(ClientOptions{Transport: api})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(one.DeleteWebhook(t.Context(), account("sim_5021:x"))).To(MatchError(messenger.ErrNoSimulator))
	g.Expect(one.DeleteWebhook(t.Context(), account(""))).To(MatchError(ErrNoToken))
	lying := account("sim_5021:x")
	lying.Simulated = false
	g.Expect(both.DeleteWebhook(t.Context(), lying)).To(MatchError(messenger.ErrNoSimulator))
	lying = account("5021:real")
	lying.Simulated = true
	g.Expect(both.DeleteWebhook(t.Context(), lying)).To(MatchError(messenger.ErrNoSimulator))
	for _, odd := range []string{"5021:a/b", "5021:a?b", "5021:a b", "5021:a%2f", "5021:ä", "..", "5021:a\n"} {
		g.Expect(both.DeleteWebhook(t.Context(), account(odd))).To(MatchError(ErrCredentials), "%q", odd)
	}
	g.Expect(api.calls).To(HaveLen(2), "nothing else went anywhere")
}

func TestNewClient_refusesOddURLs(t *testing.T) {
	for _, odd := range []string{"api.telegram.org", "ftp://x", "https://", "https://u:p@x", "https://x?y", "https://x#y", "://", "http://x\x00"} {
		_, err := NewClient(ClientOptions{BaseURL: odd})
		NewWithT(t).Expect(err).To(HaveOccurred(), "%q", odd)
		_, err = NewClient(ClientOptions{SimulatorURL: odd})
		NewWithT(t).Expect(err).To(HaveOccurred(), "%q", odd)
	}
}

func TestNewClient_refusesOneHostForBoth(t *testing.T) {
	for _, o := range []ClientOptions{
		{SimulatorURL: "https://API.telegram.org/sim"},
		{BaseURL: "http://bots.example.com:8081/x", SimulatorURL: "http://bots.example.com:8081"},
	} {
		_, err := NewClient(o)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("same host")))
	}
}

func TestClient_endsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c, err := NewClient(ClientOptions{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})})
		g.Expect(err).NotTo(HaveOccurred())
		for _, call := range []struct {
			do   func() error
			want time.Duration
		}{
			{func() error { return c.DeleteWebhook(t.Context(), account(botToken)) }, callTimeout},
			{func() error { _, err := c.GetUpdates(t.Context(), account(botToken), 0, 1, 30*time.Second); return err }, 30*time.Second + pollSlack},
		} {
			start := time.Now()
			err := call.do()
			g.Expect(err).To(And(MatchError(ErrUnavailable), MatchError(context.DeadlineExceeded)))
			g.Expect(time.Since(start)).To(Equal(call.want))
		}
	})
}
