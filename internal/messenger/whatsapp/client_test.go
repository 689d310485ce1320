package whatsapp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// agent is what every call over the wire says of the caller.
const agent = "phoneproof/dev (+https://github.com/phoneproof/phoneproof)"

// worlds is a client with a Graph API and a simulator, and an account in each.
type worlds struct {
	*WithT

	graph, simulator *graph
	client           *Client
	real, simulated  *settings.WhatsApp
}

func newWorlds(t *testing.T) *worlds {
	t.Helper()
	w := &worlds{WithT: NewWithT(t), graph: newGraph(t), simulator: newGraph(t)}
	var err error
	w.client, err = NewClient(ClientOptions{GraphURL: w.graph.URL, SimulatorURL: w.simulator.URL + "/graph/"})
	w.Expect(err).NotTo(HaveOccurred())
	account := func(token string, simulated bool) *settings.WhatsApp {
		return &settings.WhatsApp{PhoneNumberID: numberID, AccessToken: settings.NewSecret([]byte(token)), Simulated: simulated}
	}
	w.real, w.simulated = account(accessToken, false), account("sim_canarytoken", true)
	return w
}

func (w *worlds) number() Recipient {
	n, err := phone.ParseWhatsApp(user)
	w.Expect(err).NotTo(HaveOccurred())
	return ToNumber(n)
}

func numberOf(t testing.TB, digits string) phone.Number {
	t.Helper()
	n, err := phone.ParseWhatsApp(digits)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestClient_goldens(t *testing.T) {
	w := newWorlds(t)
	ctx := t.Context()
	const path = "/" + GraphVersion + "/" + numberID
	for name, c := range map[string]struct {
		answer string
		do     func() error
		method string
		uri    string
	}{
		"text_to_number": {"message", func() error { return w.client.SendText(ctx, w.real, w.number(), "Thank you.") }, "POST", path + "/messages"},
		"text_to_user_id": {"message_user_id", func() error {
			return w.client.SendText(ctx, w.real, ToUserID(hiddenUser), "Thank you.")
		}, "POST", path + "/messages"},
		"request_contact_info": {"message_user_id", func() error {
			return w.client.RequestContact(ctx, w.real, ToUserID(hiddenUser), "Please share your number.", "question:ID:BINDING:BOUND_AT")
		}, "POST", path + "/messages"},
		"reply_buttons": {"message", func() error {
			return w.client.AskWithButtons(ctx, w.real, w.number(), Question{
				Text: "Is this phone number yours?", Reference: "vrk3v7c2m5q6x4a2n7b3d5f6g7",
				Buttons: []Button{{ID: "change-button", Title: "Change"}, {ID: "cancel-button", Title: "Cancel"}},
			})
		}, "POST", path + "/messages"},
		"code_template": {"message", func() error {
			answered, err := w.client.sendTemplate(ctx, w.real, numberOf(t, user), codeTemplate{
				Name: "verify_code", Language: "pt_BR", Code: redact.New("04719263"), Reference: "code:vrk3v7c2m5q6x4a2n7b3d5f6g7:1795168800000000",
			})
			w.Expect(answered.Digits()).To(Equal(user))
			return err
		}, "POST", path + "/messages"},
		"set_callback": {"success", func() error {
			return w.client.SetCallback(ctx, w.real, "https://verify.example.com/hooks/whatsapp", "myvoiceismypassport?")
		}, "POST", path},
		"remove_callback": {"success", func() error { return w.client.RemoveCallback(ctx, w.real) }, "POST", path},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w.graph.answers(http.StatusOK, golden(t, "answers/"+c.answer))
			g.Expect(c.do()).To(Succeed())
			calls := w.graph.all()
			last := calls[len(calls)-1]
			g.Expect(last.Method).To(Equal(c.method))
			g.Expect(last.URI).To(Equal(c.uri))
			g.Expect(last.Authorization).To(Equal("Bearer " + accessToken))
			g.Expect(last.UserAgent).To(Equal(agent))
			g.Expect(last.Body).To(MatchJSON(golden(t, "out/"+name)))
		})
	}
}

func TestClient_reads(t *testing.T) {
	w := newWorlds(t)
	w.graph.answers(http.StatusOK, golden(t, "answers/phone_number"))
	number, err := w.client.PhoneNumber(t.Context(), w.real)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(number).To(Equal(PhoneNumber{
		ID: numberID, DisplayPhoneNumber: "+1 555-078-3881", VerifiedName: "Ada's Books", Status: "CONNECTED",
	}))
	w.graph.answers(http.StatusOK, golden(t, "answers/callbacks"))
	callbacks, err := w.client.Callbacks(t.Context(), w.real)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(callbacks).To(Equal(Callbacks{
		PhoneNumber: "https://my-phone-alternate-callback.com/webhook", BusinessAccount: "https://my-waba-alternate-callback.com/webhook",
		Application: "https://my-production-callback.com/webhook",
	}))
	calls := w.graph.all()
	w.Expect([]string{calls[0].UserAgent, calls[1].UserAgent}).To(HaveEach(agent))
	w.Expect(calls[0].URI).To(Equal("/" + GraphVersion + "/" + numberID + "?fields=id%2Cdisplay_phone_number%2Cverified_name%2Cstatus"))
	w.Expect(calls[1].URI).To(Equal("/" + GraphVersion + "/" + numberID + "?fields=webhook_configuration"))
}

// TestClient_worlds has credentials of each world, and what the settings say about them.
func TestClient_worlds(t *testing.T) {
	w := newWorlds(t)
	send := func(c *Client, account *settings.WhatsApp) error {
		return c.SendText(t.Context(), account, w.number(), "x")
	}
	w.Expect(send(w.client, w.real)).To(Succeed())
	w.Expect(w.graph.all()).To(HaveLen(1))
	w.Expect(w.simulator.all()).To(BeEmpty())
	w.Expect(send(w.client, w.simulated)).To(Succeed())
	w.Expect(w.graph.all()).To(HaveLen(1))
	w.Expect(w.simulator.all()).To(HaveLen(1))
	w.Expect(w.simulator.all()[0].URI).To(Equal("/graph/" + GraphVersion + "/" + numberID + "/messages"))

	alone, err := NewClient(ClientOptions{GraphURL: w.graph.URL})
	w.Expect(err).NotTo(HaveOccurred())
	lying, hidden, empty, odd := *w.real, *w.simulated, *w.real, *w.real
	lying.Simulated, hidden.Simulated = true, false
	empty.AccessToken = settings.Secret{}
	odd.PhoneNumberID = "1/../../me?x="
	for name, err := range map[string]error{
		"no simulator":                    send(alone, w.simulated),
		"a real token said to be the sim": send(w.client, &lying),
		"a sim token said to be real":     send(w.client, &hidden),
		"no token":                        send(w.client, &empty),
		"an id that is a path":            send(w.client, &odd),
		"no recipient":                    w.client.SendText(t.Context(), w.real, Recipient{}, "x"),
	} {
		w.Expect(err).To(HaveOccurred(), name)
		w.Expect(err.Error()).NotTo(ContainSubstring("canary"), name)
	}
	w.Expect(w.graph.all()).To(HaveLen(1))
	w.Expect(w.simulator.all()).To(HaveLen(1))
}

func TestNewClient(t *testing.T) {
	g := NewWithT(t)
	c, err := NewClient(ClientOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.platform.BaseURL([]byte(accessToken), false)).To(Equal("https://graph.facebook.com"))
	for _, bad := range []ClientOptions{
		{GraphURL: "http://graph.facebook.com"},
		{GraphURL: "graph.facebook.com"},
		{GraphURL: "https://"},
		{GraphURL: "https://canary@graph.facebook.com"},
		{GraphURL: "https://graph.facebook.com?x=canary"},
		{GraphURL: "ftp://graph.facebook.com"},
		{GraphURL: "https://graph.facebook.com/\x7f"},
		{SimulatorURL: "https://GRAPH.facebook.com/sim"},
		{SimulatorURL: "file:///canary"},
	} {
		_, err := NewClient(bad)
		g.Expect(err).To(HaveOccurred(), "%v", bad)
		g.Expect(err.Error()).NotTo(ContainSubstring("canary"))
	}
}

func TestClient_errors(t *testing.T) {
	w := newWorlds(t)
	for name, c := range map[string]struct {
		status int
		answer []byte
		want   messenger.CallFailure
	}{
		"expired token":  {401, golden(t, "answers/error_190"), messenger.CallCredentials},
		"pair limit":     {400, golden(t, "answers/error_131056"), messenger.CallRateLimited},
		"app limit":      {400, []byte(`{"error":{"code":4}}`), messenger.CallRateLimited},
		"429, no body":   {429, nil, messenger.CallRateLimited},
		"permission":     {403, []byte(`{"error":{"code":200}}`), messenger.CallCredentials},
		"temporary":      {500, []byte(`{"error":{"code":2}}`), messenger.CallPlatformError},
		"gateway page":   {502, []byte(`<html>canary</html>`), messenger.CallPlatformError},
		"parameter":      {400, []byte(`{"error":{"code":100,"message":"canary 16505551234"}}`), messenger.CallRefused},
		"not in window":  {400, []byte(`{"error":{"code":131047}}`), messenger.CallRefused},
		"not found":      {404, nil, messenger.CallRefused},
		"redirect":       {302, nil, messenger.CallRefused},
		"not modified":   {304, nil, messenger.CallRefused},
		"odd error":      {400, []byte(`{"error":"canary"}`), messenger.CallRefused},
		"odd codes":      {400, []byte(`{"error":{"code":"canary"}}`), messenger.CallRefused},
		"endless answer": {500, bytes.Repeat([]byte("canary"), 1<<18), messenger.CallPlatformError},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w.graph.answers(c.status, c.answer)
			err := w.client.SendText(t.Context(), w.real, w.number(), "x")
			var e *Error
			g.Expect(errors.As(err, &e)).To(BeTrue())
			g.Expect(e.Class).To(Equal(c.want))
			g.Expect(e.Status).To(Equal(c.status))
			g.Expect(e.Temporary()).To(Equal(c.want == messenger.CallRateLimited || c.want == messenger.CallPlatformError))
			g.Expect(fmt.Sprintf("%v %+v %#v", err, err, *e)).NotTo(MatchRegexp("canary|" + user))
		})
	}
	w.graph.answers(http.StatusOK, []byte("<html>"))
	_, err := w.client.PhoneNumber(t.Context(), w.real)
	w.Expect(err).To(MatchError(ContainSubstring("unreadable")))
	w.graph.answers(http.StatusOK, []byte(`{"success":false}`))
	w.Expect(w.client.SetCallback(t.Context(), w.real, "https://x.example", "t")).To(MatchError(ContainSubstring("refused")))
	for _, url := range []string{"", "https://x.example/" + strings.Repeat("x", 200)} {
		w.Expect(w.client.SetCallback(t.Context(), w.real, url, "t")).NotTo(Succeed())
	}
	w.Expect(w.client.SetCallback(t.Context(), w.real, "https://x.example", "")).NotTo(Succeed())
}

// TestClient_measuresCalls counts what calls met, by operation.
func TestClient_measuresCalls(t *testing.T) {
	w := newWorlds(t)
	registry := prometheus.NewRegistry()
	metrics, err := messenger.NewCallMetrics(registry)
	w.Expect(err).NotTo(HaveOccurred())
	client, err := NewClient(ClientOptions{GraphURL: w.graph.URL, Metrics: metrics})
	w.Expect(err).NotTo(HaveOccurred())
	count := func(operation string, class messenger.CallFailure) (failed float64, observed uint64) {
		families, err := registry.Gather()
		w.Expect(err).NotTo(HaveOccurred())
		for _, family := range families {
			for _, m := range family.GetMetric() {
				labels := map[string]string{}
				for _, label := range m.GetLabel() {
					labels[label.GetName()] = label.GetValue()
				}
				w.Expect(labels).To(HaveKeyWithValue("method", "WHATSAPP"))
				if labels["operation"] == operation && labels["class"] == string(class) {
					failed += m.GetCounter().GetValue()
				}
				if labels["operation"] == operation {
					observed += m.GetHistogram().GetSampleCount()
				}
			}
		}
		return failed, observed
	}
	do := map[string]func() error{
		sendMessage:    func() error { return client.SendText(t.Context(), w.real, w.number(), "x") },
		readNumber:     func() error { _, err := client.PhoneNumber(t.Context(), w.real); return err },
		readCallback:   func() error { _, err := client.Callbacks(t.Context(), w.real); return err },
		setCallback:    func() error { return client.SetCallback(t.Context(), w.real, "https://x.example", "t") },
		removeCallback: func() error { return client.RemoveCallback(t.Context(), w.real) },
		readToken:      func() error { _, err := client.InspectToken(t.Context(), w.real); return err },
		readNumbers:    func() error { _, err := client.OwnsNumber(t.Context(), w.real, businessID); return err },
		readSubscription: func() error {
			_, err := client.SubscribedApps(t.Context(), w.real, businessID)
			return err
		},
		subscribeApp: func() error { return client.SubscribeApp(t.Context(), w.real, businessID) },
		sendCode: func() error {
			_, err := client.sendTemplate(t.Context(), w.real, numberOf(t, user), codeTemplate{})
			return err
		},
		readTemplates: func() error { _, err := client.ReadTemplate(t.Context(), w.real, businessID, "x"); return err },
	}
	w.Expect(do).To(HaveLen(len(operations)))
	for operation, call := range do {
		w.graph.answers(http.StatusOK, []byte(`{"success":true,"messages":[{"id":"wamid.1"}]}`))
		w.Expect(call()).To(Succeed())
		w.graph.answers(http.StatusInternalServerError, nil)
		w.Expect(call()).NotTo(Succeed())
		failed, observed := count(operation, messenger.CallPlatformError)
		w.Expect(failed).To(BeEquivalentTo(1))
		w.Expect(observed).To(BeEquivalentTo(2))
	}
	for class, row := range map[messenger.CallFailure]struct {
		status int
		answer string
	}{
		messenger.CallRateLimited: {429, ""}, messenger.CallCredentials: {401, ""}, messenger.CallRefused: {400, ""}, messenger.CallUnreadable: {200, "<html>"},
	} {
		w.graph.answers(row.status, []byte(row.answer))
		w.Expect(do[readNumber]()).NotTo(Succeed())
		failed, _ := count(readNumber, class)
		w.Expect(failed).To(BeEquivalentTo(1), "%s", class)
	}
	w.graph.answers(http.StatusOK, []byte(`{"success":false}`))
	for _, operation := range []string{setCallback, removeCallback, subscribeApp} {
		w.Expect(do[operation]()).NotTo(Succeed())
		failed, _ := count(operation, messenger.CallRefused)
		w.Expect(failed).To(BeEquivalentTo(1), "%s without success", operation)
	}
	w.graph.Close()
	w.Expect(do[readNumber]()).NotTo(Succeed())
	failed, _ := count(readNumber, messenger.CallUnreachable)
	w.Expect(failed).To(BeEquivalentTo(1))
}

// TestClient_retryAfter: seconds are honoured within bounds, everything else is not.
func TestClient_retryAfter(t *testing.T) {
	w := newWorlds(t)
	for header, want := range map[string]time.Duration{
		"": 0, "30": 30 * time.Second, "86400": maxRetryAfter, "-1": 0, "0": 0, "soon": 0, "Fri, 31 Dec 2099 23:59:59 GMT": 0,
	} {
		w.graph.answers(http.StatusTooManyRequests, nil)
		w.graph.header = http.Header{"Retry-After": {header}}
		var e *Error
		w.Expect(errors.As(w.client.SendText(t.Context(), w.real, w.number(), "x"), &e)).To(BeTrue())
		w.Expect(e.RetryAfter).To(Equal(want), header)
	}
}

// TestClient_redirects has the Graph API send us elsewhere: the token does not go there.
func TestClient_redirects(t *testing.T) {
	w := newWorlds(t)
	elsewhere := newGraph(t)
	w.graph.header = http.Header{"Location": {elsewhere.URL}}
	w.graph.answers(http.StatusTemporaryRedirect, nil)
	w.Expect(w.client.SendText(t.Context(), w.real, w.number(), "x")).NotTo(Succeed())
	w.Expect(elsewhere.all()).To(BeEmpty())
}

// TestClient_unreachable has no answer: the error does not hold the URL.
func TestClient_unreachable(t *testing.T) {
	w := newWorlds(t)
	client, err := NewClient(ClientOptions{GraphURL: "http://127.0.0.1:1/canarypath"})
	w.Expect(err).NotTo(HaveOccurred())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for ctx, cause := range map[context.Context]error{t.Context(): nil, ended: context.Canceled} {
		err := client.SendText(ctx, w.real, w.number(), "x")
		var e *Error
		w.Expect(errors.As(err, &e)).To(BeTrue())
		w.Expect(e.Class).To(Equal(messenger.CallUnreachable))
		w.Expect(e.Temporary()).To(BeTrue())
		w.Expect(err.Error()).To(Equal("WhatsApp Graph API: unreachable"))
		w.Expect(fmt.Sprintf("%+v %#v", err, err)).NotTo(ContainSubstring("canary"))
		if cause != nil {
			w.Expect(err).To(MatchError(cause))
		}
	}
}

func TestClient_timeout(t *testing.T) {
	g := NewWithT(t)
	client, err := NewClient(ClientOptions{Transport: hanging{}})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	w := newWorlds(t)
	g.Expect(client.SendText(ctx, w.real, w.number(), "x")).To(MatchError(context.DeadlineExceeded))
}

// hanging is a transport that does not answer.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}
