package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const gatewayToken, coded = "AAAAcanarytoken", "+4915112345678"

// gatewayCall is a call that a played Gateway got.
type gatewayCall struct {
	method string
	body   map[string]any
}

// playedGateway answers each method in turn by its answers, of which the last one stays. An answer that is no JSON is an error of the
// connection.
type playedGateway struct {
	*WithT

	answers map[string][]string
	calls   []gatewayCall
}

func (p *playedGateway) RoundTrip(r *http.Request) (*http.Response, error) {
	method := strings.TrimPrefix(r.URL.Path, "/")
	p.Expect(r.Header.Get("Authorization")).To(Equal("Bearer " + gatewayToken))
	p.Expect(r.URL.Scheme + "://" + r.URL.Host + r.URL.RawQuery).To(Equal(DefaultGatewayURL))
	call := gatewayCall{method: method}
	p.Expect(json.NewDecoder(r.Body).Decode(&call.body)).To(Succeed())
	p.calls = append(p.calls, call)
	answers := p.answers[method]
	p.Expect(answers).NotTo(BeEmpty(), method)
	if len(answers) > 1 {
		p.answers[method] = answers[1:]
	}
	status, answer := http.StatusOK, answers[0]
	if _, err := fmt.Sscanf(answer, "%d ", &status); err == nil {
		_, answer, _ = strings.Cut(answer, " ")
	}
	if !strings.HasPrefix(answer, "{") && status == http.StatusOK {
		if answer != "unreachable" {
			httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
		}
		return nil, errors.New(answer)
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// gatewayFixture is a gateway of a project, at a Gateway that is played.
type gatewayFixture struct {
	*playedGateway

	gateway  *Gateway
	settings *settings.Settings
	served   atomic.Pointer[settings.Settings] // to the gateway
	registry *prometheus.Registry
	logs     *gbytes.Buffer
	start    time.Time
}

func newGatewayFixture(t *testing.T, answers map[string][]string) *gatewayFixture {
	t.Helper()
	f := &gatewayFixture{
		playedGateway: &playedGateway{WithT: NewWithT(t), answers: answers}, registry: prometheus.NewRegistry(), logs: gbytes.NewBuffer(),
		start: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
	}
	f.settings = &settings.Settings{Project: "books/shop", Telegram: &settings.Telegram{
		BotToken: settings.NewSecret([]byte("123:canarybot")), Codes: &settings.GatewayCodes{
			Token: settings.NewSecret([]byte(gatewayToken)), SenderUsername: "ada_books", Countries: map[phone.Region]bool{"DE": true},
		},
	}}
	f.served.Store(f.settings)
	client, err := NewGatewayClient(ClientOptions{Transport: f.playedGateway})
	f.Expect(err).NotTo(HaveOccurred())
	f.gateway, err = NewGateway(GatewayOptions{
		Settings: f.served.Load, Client: client, Clock: clocktesting.NewFakePassiveClock(f.start),
		Log:        funcr.NewJSON(func(line string) { _, _ = fmt.Fprintln(f.logs, line) }, funcr.Options{Verbosity: 9}),
		Registerer: f.registry,
	})
	f.Expect(err).NotTo(HaveOccurred())
	return f
}

// newRequest returns a request that ends after ttl.
func (f *gatewayFixture) newRequest(ttl time.Duration) *verification.Request {
	number, err := phone.Parse(coded)
	f.Expect(err).NotTo(HaveOccurred())
	return &verification.Request{
		ID: "vrk3v7c2m5q6x4a2n7b3d5f6g7", Phone: number, Method: verification.Telegram, CreatedAt: f.start, ExpiresAt: f.start.Add(ttl),
		Terms: verification.Terms{Level: verification.LevelSession, Deliver: verification.DeliverCode}, Phase: verification.Pending,
	}
}

// sendCode sends the code of a request.
func (f *gatewayFixture) sendCode(r *verification.Request) verification.CodeResult {
	code, ok := f.settings.DeliveredCode(r, f.start)
	f.Expect(ok).To(BeTrue())
	return f.gateway.SendCode(context.Background(), f.settings, r, code)
}

// readMetrics returns the metrics of the gateway that are not zero.
func (f *gatewayFixture) readMetrics() map[string]float64 {
	families, err := f.registry.Gather()
	f.Expect(err).NotTo(HaveOccurred())
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if v := m.GetCounter().GetValue() + m.GetGauge().GetValue(); v != 0 {
				values[strings.TrimPrefix(family.GetName(), "phoneproof_gateway_")] = v
			}
		}
	}
	delete(values, "balance_timestamp_seconds")
	return values
}

const taken = `{"ok":true,"result":{"request_id":"gw1","phone_number":"4915112345678","request_cost":0.01,"remaining_balance":4.99,
	"delivery_status":{"status":"sent","updated_at":1}}}`

func newCheckAnswer(refunded bool) string {
	return fmt.Sprintf(`{"ok":true,"result":{"request_id":"gw1","phone_number":"4915112345678","request_cost":0,"is_refunded":%t,
		"remaining_balance":5.25}}`, refunded)
}

// TestGateway_sendsAndChecksOnce after the code was refunded, or could be no more.
func TestGateway_sendsAndChecksOnce(t *testing.T) {
	for _, refunded := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newGatewayFixture(t, map[string][]string{"sendVerificationMessage": {taken}, "checkVerificationStatus": {newCheckAnswer(refunded)}})
			r := f.newRequest(5 * time.Minute)
			f.Expect(f.sendCode(r)).To(Equal(verification.CodeResult{State: verification.CodeSent}))
			code, _ := f.settings.DeliveredCode(r, f.start)
			f.Expect(f.calls).To(Equal([]gatewayCall{{"sendVerificationMessage", map[string]any{
				"phone_number": coded, "code": code.Reveal(), "sender_username": "ada_books", "payload": r.ID, "ttl": 300.0,
			}}}), "no callback_url")
			f.Expect(f.readMetrics()).To(Equal(map[string]float64{"cost_dollars_total": 0.01, "balance_dollars": 4.99}))
			<-time.After(5*time.Minute + checkDelay - 1)
			synctest.Wait()
			f.Expect(f.calls).To(HaveLen(1))
			<-time.After(time.Hour)
			synctest.Wait()
			f.gateway.CodeRedeemed(r)
			synctest.Wait()
			f.Expect(f.calls[1:]).To(Equal([]gatewayCall{{"checkVerificationStatus", map[string]any{"request_id": "gw1"}}}))
			want := map[string]float64{"cost_dollars_total": 0.01, "balance_dollars": 5.25}
			if refunded {
				want["refunded_dollars_total"] = 0.01
			}
			f.Expect(f.readMetrics()).To(Equal(want))
		})
	}
}

// TestGateway_checksAfterRedemption, with the code that was entered, and not again.
func TestGateway_checksAfterRedemption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGatewayFixture(t, map[string][]string{"sendVerificationMessage": {taken}, "checkVerificationStatus": {"away"}})
		r := f.newRequest(5 * time.Minute)
		f.sendCode(r)
		other, byWhatsApp := *r, *r
		other.ID, byWhatsApp.Method = "vr2", verification.WhatsApp
		for _, redeemed := range []*verification.Request{&other, &byWhatsApp, r, r} {
			f.gateway.CodeRedeemed(redeemed)
			synctest.Wait()
		}
		code, _ := f.settings.DeliveredCode(r, f.start)
		<-time.After(time.Hour)
		synctest.Wait()
		f.Expect(f.calls[1:]).To(Equal([]gatewayCall{{"checkVerificationStatus", map[string]any{"request_id": "gw1", "code": code.Reveal()}}}))
		f.Expect(f.readMetrics()).To(Equal(map[string]float64{"cost_dollars_total": 0.01, "balance_dollars": 4.99}), "nothing that is not known")
	})
}

// hangingChecks takes each code, and answers no check.
type hangingChecks struct{ checks atomic.Int64 }

func (h *hangingChecks) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, methodSendVerification) {
		defer h.checks.Add(-1)
		h.checks.Add(1)
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(taken)), Request: r}, nil
}

// TestGateway_fewChecksAtOnce, so that a Gateway that answers none has connections left for codes.
func TestGateway_fewChecksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, platform := newGatewayFixture(t, nil), &hangingChecks{}
		client, err := NewGatewayClient(ClientOptions{Transport: platform})
		f.Expect(err).NotTo(HaveOccurred())
		f.gateway.Client = client
		r := f.newRequest(time.Minute)
		for i := range 3 * maxChecks {
			r.ID = fmt.Sprint("vr", i)
			f.sendCode(r)
		}
		<-time.After(time.Minute + checkDelay)
		synctest.Wait()
		f.Expect(platform.checks.Load()).To(BeEquivalentTo(maxChecks))
		<-time.After(3 * callTimeout)
		synctest.Wait()
		f.Expect(platform.checks.Load()).To(BeZero(), "all were made")
		f.Expect(f.gateway.checked).To(BeZero())
	})
}

// TestGateway_forgetsChecksOverItsBound: those that have begun count, too.
func TestGateway_forgetsChecksOverItsBound(t *testing.T) {
	f := newGatewayFixture(t, map[string][]string{"sendVerificationMessage": {taken}})
	f.gateway.checked = maxOpenCodes
	f.sendCode(f.newRequest(time.Minute))
	f.Expect(f.gateway.open).To(BeEmpty())
}

// TestGateway_checksNothingOfAnotherAccount after a change of the token.
func TestGateway_checksNothingOfAnotherAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGatewayFixture(t, map[string][]string{"sendVerificationMessage": {taken}})
		f.sendCode(f.newRequest(time.Minute))
		for range maxChecks {
			f.gateway.checks <- struct{}{}
		}
		<-time.After(time.Hour)
		f.served.Store(&settings.Settings{Telegram: &settings.Telegram{Codes: &settings.GatewayCodes{Token: settings.NewSecret([]byte("another"))}}})
		for range maxChecks {
			<-f.gateway.checks
		}
		synctest.Wait()
		f.Expect(f.calls).To(HaveLen(1), "also if the check had to wait for others")
		f.gateway.recordBalance(accountOf(&settings.GatewayCodes{}), gatewayStatus{Balance: new(float64(7))})
		f.Expect(f.readMetrics()).To(HaveKeyWithValue("balance_dollars", 4.99))
	})
}

// TestGateway_ttl is the rest of the request's time, within the Gateway's bounds.
func TestGateway_ttl(t *testing.T) {
	for ttl, want := range map[time.Duration]float64{0: 30, time.Second: 30, 90500 * time.Millisecond: 90, 15 * time.Minute: 900, 2 * time.Hour: 3600} {
		f := newGatewayFixture(t, map[string][]string{"sendVerificationMessage": {`{"ok":false,"error":"X"}`}})
		f.sendCode(f.newRequest(ttl))
		f.Expect(f.calls[0].body["ttl"]).To(Equal(want), ttl.String())
	}
}

// TestGateway_results has NOT_SENT for the token alone, and a state of the account for what is true of all codes.
func TestGateway_results(t *testing.T) {
	failed := func(word string) string { return fmt.Sprintf(`{"ok":false,"error":%q}`, word) }
	sent, notSent, unknown := verification.CodeSent, verification.CodeNotSent, verification.CodeState("")
	for answer, want := range map[string]struct {
		state   verification.CodeState
		reason  string
		account string
	}{
		taken: {sent, "", GatewayAccepts},
		strings.Replace(taken, "4915112345678", "4915112345679", 1): {sent, "other_number", GatewayAccepts},
		strings.Replace(taken, "4915112345678", "", 1):              {sent, "", GatewayAccepts},
		failed("ACCESS_TOKEN_INVALID"):                              {notSent, "token", GatewayToken},
		"401 " + failed("ACCESS_TOKEN_REQUIRED"):                    {notSent, "token", GatewayToken},
		failed("BALANCE_NOT_ENOUGH"):                                {sent, "balance", GatewayBalance},
		failed("SENDER_NOT_OWNED"):                                  {sent, "sender", GatewaySender},
		failed("SENDER_NOT_VERIFIED"):                               {sent, "sender", GatewaySender},
		failed("SENDER_USERNAME_INVALID"):                           {sent, "sender", GatewaySender},
		failed("PHONE_NUMBER_NOT_FOUND"):                            {sent, "undeliverable", ""},
		failed("PHONE_NUMBER_INVALID"):                              {sent, "undeliverable", ""},
		failed("FLOOD_WAIT_30"):                                     {sent, "flood_wait", ""},
		failed("SOMETHING_NEW"):                                     {sent, "other", ""},
		"500 " + failed("INTERNAL"):                                 {sent, "other", ""},
		"502 <html>":                                                {unknown, "no_answer", ""},
		"401 <html>":                                                {unknown, "no_answer", ""},
		`{"ok":true,"result":{}}`:                                   {unknown, "no_answer", ""},
		"connection reset":                                          {unknown, "no_answer", ""},
		"unreachable":                                               {notSent, "unreachable", ""},
	} {
		t.Run(answer, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newGatewayFixture(t, map[string][]string{"sendVerificationMessage": {answer}, "checkVerificationStatus": {newCheckAnswer(false)}})
				f.Expect(f.sendCode(f.newRequest(time.Minute))).To(Equal(verification.CodeResult{State: want.state, Reason: want.reason}))
				f.Expect(f.calls).To(HaveLen(1), "never repeated")
				f.Expect(f.gateway.State(f.settings.Telegram.Codes)).To(Equal(want.account))
				if want.reason != "" && want.reason != verification.CodeReasonOtherNumber {
					f.Expect(append(f.gateway.CodeReasons(), messenger.CodeUnreachable, messenger.CodeNoAnswer)).To(ContainElement(want.reason))
				}
				<-time.After(time.Hour)
			})
		})
	}
}

// TestGateway_callsNothing without a token, and with a simulated one if there is no simulator.
func TestGateway_callsNothing(t *testing.T) {
	for reason, codes := range map[string]settings.GatewayCodes{
		"token":          {},
		"not_configured": {Token: settings.NewSecret([]byte("sim_gateway")), Simulated: true},
	} {
		f := newGatewayFixture(t, nil)
		f.settings.Telegram.Codes = &codes
		f.Expect(f.sendCode(f.newRequest(time.Minute))).To(Equal(verification.CodeResult{State: verification.CodeNotSent, Reason: reason}))
	}
}

// TestGateway_state is that of the present account, as the balance is.
func TestGateway_state(t *testing.T) {
	f := newGatewayFixture(t, map[string][]string{"sendVerificationMessage": {
		taken, `{"ok":false,"error":"BALANCE_NOT_ENOUGH"}`, `{"ok":false,"error":"BALANCE_NOT_ENOUGH"}`, `{"ok":false,"error":"PHONE_NUMBER_NOT_FOUND"}`,
		`{"ok":false,"error":"SENDER_NOT_OWNED"}`,
	}})
	r := f.newRequest(time.Hour)
	for _, want := range []string{GatewayAccepts, GatewayBalance, GatewayBalance, GatewayBalance, GatewaySender} {
		f.sendCode(r)
		f.Expect(f.gateway.State(f.settings.Telegram.Codes)).To(Equal(want))
	}
	f.Expect(f.readMetrics()).To(HaveKey("balance_dollars"))
	for _, change := range []func(*settings.GatewayCodes){
		func(c *settings.GatewayCodes) { c.SenderUsername = "" }, func(c *settings.GatewayCodes) { c.Token = settings.NewSecret([]byte("new")) },
	} {
		changed := *f.settings.Telegram.Codes
		change(&changed)
		f.Expect(f.gateway.State(&changed)).To(BeEmpty())
	}
	f.settings.Telegram.Codes.SenderUsername = "another"
	f.sendCode(r)
	f.Expect(f.readMetrics()).NotTo(HaveKey("balance_dollars"))
}

// TestGateway_leaksNothing of numbers, codes, tokens and what the Gateway says.
func TestGateway_leaksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, answers := range []map[string][]string{
			{"sendVerificationMessage": {taken}, "checkVerificationStatus": {`{"ok":false,"error":"canary ` + coded + `"}`}},
			{"sendVerificationMessage": {taken}, "checkVerificationStatus": {"canary " + coded}},
			{"sendVerificationMessage": {"canary " + coded}},
			{"sendVerificationMessage": {`{"ok":false,"error":"canary ` + coded + `"}`}},
		} {
			f := newGatewayFixture(t, maps.Clone(answers))
			r := f.newRequest(time.Minute)
			result := f.sendCode(r)
			_, err := f.gateway.Client.callMethod(t.Context(), f.settings.Telegram.Codes, methodSendVerification, struct{}{})
			<-time.After(time.Hour)
			synctest.Wait()
			families, gatherErr := f.registry.Gather()
			f.Expect(gatherErr).NotTo(HaveOccurred())
			code, _ := f.settings.DeliveredCode(r, f.start)
			f.Expect(fmt.Sprint(result, err, families, string(f.logs.Contents()))).NotTo(
				MatchRegexp(`(?i)canary|` + coded[1:] + `|` + code.Reveal() + `|gatewayapi`))
		}
	})
}
