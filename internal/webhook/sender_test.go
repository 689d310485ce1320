package webhook

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestSend_whatTheReceiverSees(t *testing.T) {
	g := NewWithT(t)
	server, got := newReceiver(t, http.StatusAccepted)
	s := newSender(t, Options{Version: "1.2.3"})
	to := testDestination(server.URL + "/hooks/phone?shop=1#fragment")
	to.signed, to.current, to.previous = true, fakeSecret{current: rawSecret}, fakeSecret{current: base64Secret}

	result := sendEvent(t, s, to)
	g.Expect(result.Verdict).To(Equal(Verdict{Outcome: Delivered, StatusCode: 202}))
	g.Expect(result.Duration).To(BeNumerically(">", 0))
	r := <-got
	g.Expect(r.body).To(Equal(testEvent().body.Reveal()))
	g.Expect(r.header).To(HaveLen(7))
	for name, want := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "PhoneProof/1.2.3", "Webhook-Id": testEvent().ID(),
		"Content-Length": strconv.Itoa(len(testEvent().body.Reveal())),
	} {
		g.Expect(r.header.Values(name)).To(Equal([]string{want}))
	}
	wh, err := standardwebhooks.NewWebhook(base64Secret)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(wh.Verify(r.body, r.header)).To(Succeed())
	g.Expect(r.header.Get(headerSignature)).To(MatchRegexp(`^[0-9a-f]{64}$`))
}

func TestSend_sameBytesAndIDFreshTimestamp(t *testing.T) {
	g := NewWithT(t)
	server, got := newReceiver(t, http.StatusInternalServerError)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_795_000_000, 0))
	s := newSender(t, Options{Clock: clock})
	to := testDestination(server.URL)
	to.signed, to.current = true, fakeSecret{current: rawSecret}
	sendEvent(t, s, to)
	clock.SetTime(clock.Now().Add(time.Hour))
	sendEvent(t, s, to)
	first, second := <-got, <-got
	g.Expect(first.body).To(Equal(second.body))
	g.Expect(first.header["Webhook-Id"]).To(Equal(second.header["Webhook-Id"]))
	g.Expect(first.header["X-Webhook-Signature"]).To(Equal(second.header["X-Webhook-Signature"]))
	g.Expect(first.header.Get(headerStandardTimestamp)).To(Equal("1795000000"))
	g.Expect(second.header.Get(headerStandardTimestamp)).To(Equal("1795003600"))
	g.Expect(first.header["Webhook-Signature"]).NotTo(Equal(second.header["Webhook-Signature"]))
}

func TestSend_unsignedHasNoSignature(t *testing.T) {
	g := NewWithT(t)
	server, got := newReceiver(t, http.StatusOK)
	to := testDestination(server.URL)
	to.current, to.previous = fakeSecret{current: rawSecret}, fakeSecret{current: base64Secret}
	sendEvent(t, newSender(t, Options{}), to)
	r := <-got
	g.Expect(r.header).NotTo(Or(HaveKey("X-Webhook-Signature"), HaveKey("Webhook-Signature")))
	g.Expect(r.header).To(And(HaveKey("Webhook-Id"), HaveKey("Webhook-Timestamp")))
}

func TestNewEndpoint(t *testing.T) {
	g := NewWithT(t)
	g.Expect(NewEndpoint("shop", &settings.Webhook{}).Reveal().timeout).To(Equal(DefaultTimeout))
	g.Expect(NewEndpoint("shop", &settings.Webhook{Timeout: time.Second}).Reveal().timeout).To(Equal(time.Second))
}

// TestNewTestEndpoint: what signs real events, in any rotation, never signs those of test keys, and without a secret of their own they wait.
func TestNewTestEndpoint(t *testing.T) {
	g := NewWithT(t)
	w := &settings.Webhook{
		URL: "https://shop.example.com", TestURL: "https://staging.example.com", Signed: true,
		Secret: settings.NewSecret([]byte("live")), PreviousSecret: settings.NewSecret([]byte("live before")),
		TestSecret: settings.NewSecret([]byte("test")),
	}
	s := newSender(t, Options{})
	sign := func() (http.Header, error) { return s.buildHeaders(NewTestEndpoint("shop", w).Reveal(), testEvent()) }
	h, err := sign()
	g.Expect(err).NotTo(HaveOccurred())
	want := signedHeaders("test")
	g.Expect(h[headerSignature]).To(Equal(want[headerSignature]))
	g.Expect(strings.Fields(h.Get(headerStandardSignatures))).To(HaveLen(1))
	w.TestSecret = settings.Secret{}
	for _, w.Signed = range []bool{true, false} {
		_, err = sign()
		g.Expect(err).To(MatchError(ErrPaused))
	}
}

func TestSend_answers(t *testing.T) {
	for status, want := range map[int]Verdict{
		200: {Outcome: Delivered}, 204: {Outcome: Delivered},
		304: {Outcome: Retry, Reason: "http_304"}, 401: {Outcome: Retry, Reason: "http_401"},
		410: {Outcome: Gone, Reason: "http_410"}, 500: {Outcome: Retry, Reason: "http_500"},
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			server, _ := newReceiver(t, status)
			want.StatusCode = status
			NewWithT(t).Expect(sendEvent(t, newSender(t, Options{}), testDestination(server.URL)).Verdict).To(Equal(want))
		})
	}
}

func TestSend_passesRetryAfterOn(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	result := sendEvent(t, newSender(t, Options{}), testDestination(server.URL))
	g.Expect(result.RetryAfter).To(Equal(24 * time.Hour))
	now := time.Unix(1_795_000_000, 0)
	g.Expect(result.Attempt(4, 7, now, fixedJitter(0))).To(Equal(verification.Attempt{
		Number: 4, Epoch: 7, At: now, StatusCode: 429, Reason: "http_429", Next: now.Add(4 * time.Hour), ExtraFrom: now.Add(24 * time.Hour),
	}), "clamped to twice the schedule")
}

func TestResult_asAttempt(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(1_795_000_000, 0)
	delivered := Result{Verdict: Verdict{Outcome: Delivered, StatusCode: 200}}
	g.Expect(delivered.Attempt(1, 0, now, fixedJitter(0))).
		To(Equal(verification.Attempt{Number: 1, At: now, StatusCode: 200, Delivered: true}))
	gone := Result{Verdict: Verdict{Outcome: Gone, StatusCode: 410, Reason: "http_410", RetryAfter: time.Hour}}
	g.Expect(gone.Attempt(1, 0, now, fixedJitter(0)).Next).To(BeZero())
	failed := Result{Verdict: Verdict{Outcome: Retry, Reason: ReasonTimeout}}
	g.Expect(failed.Attempt(MaxAttempts-1, 0, now, fixedJitter(0)).Next).To(Equal(now.Add(24 * time.Hour)))
	g.Expect(failed.Attempt(MaxAttempts, 0, now, fixedJitter(0)).Next).To(BeZero())
}

// TestResult_asExtraAttempt: the schedule goes on as it was, but never before a Retry-After.
func TestResult_asExtraAttempt(t *testing.T) {
	now := time.Unix(1_795_000_000, 0)
	last, next := now.Add(-time.Hour), now.Add(4*time.Minute)
	waiting := verification.Delivery{Attempts: 2, LastAttemptAt: last, NextAttemptAt: next}
	for name, tc := range map[string]struct {
		outcome    Outcome
		retryAfter time.Duration
		next       time.Time
		extraFrom  time.Time
	}{
		"delivered":                        {Delivered, 0, time.Time{}, now.Add(time.Hour)},
		"gone":                             {Gone, 0, next, now.Add(time.Hour)},
		"failed":                           {Retry, 0, next, now.Add(time.Hour)},
		"failed with a wait until before":  {Retry, 3 * time.Minute, next, now.Add(time.Hour)},
		"failed with a wait beyond that":   {Retry, 5 * time.Minute, now.Add(5 * time.Minute), now.Add(time.Hour)},
		"failed with a wait of many hours": {Retry, 24 * time.Hour, now.Add(10 * time.Minute), now.Add(24 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			result := Result{Verdict: Verdict{Outcome: tc.outcome, RetryAfter: tc.retryAfter}}
			NewWithT(t).Expect(result.ExtraAttempt(waiting, 7, now)).To(Equal(verification.Attempt{
				Number: 3, Epoch: 7, After: last, At: now, Delivered: tc.outcome == Delivered, Next: tc.next, ExtraFrom: tc.extraFrom,
			}))
		})
	}
}

// TestSend_followsTheScheduleUntilTheReceiverRecovers sends to a receiver that fails for half an hour.
func TestSend_followsTheScheduleUntilTheReceiverRecovers(t *testing.T) {
	g := NewWithT(t)
	start := time.Unix(1_795_000_000, 0)
	clock := clocktesting.NewFakePassiveClock(start)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if clock.Since(start) < 30*time.Minute {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	s := newSender(t, Options{Clock: clock})
	r := verifiedRequest()
	r.Delivery.NextAttemptAt = start
	var at []time.Duration
	for r.Delivery.Wanted() {
		clock.SetTime(r.Delivery.NextAttemptAt)
		at = append(at, clock.Since(start))
		a := sendEvent(t, s, testDestination(server.URL)).Attempt(r.Delivery.Attempts+1, 0, clock.Now(), rand.Float64)
		a.Event = r.Event()
		g.Expect(r.RecordAttempt(a)).To(Succeed())
	}
	g.Expect(at).To(HaveLen(4))
	for i, want := range []time.Duration{0, 5 * time.Second, 305 * time.Second, 35*time.Minute + 5*time.Second} {
		g.Expect(at[i]).To(And(BeNumerically(">=", want), BeNumerically("<=", want+want/5)))
	}
	g.Expect(r.Delivery.DeliveredAt).NotTo(BeZero())
}

// TestSend_aHangingReceiverDelaysNoOther sends to a healthy receiver while another one never answers.
func TestSend_aHangingReceiverDelaysNoOther(t *testing.T) {
	g := NewWithT(t)
	var hanging atomic.Int64
	url := serveRaw(t, func(conn *net.TCPConn) {
		hanging.Add(1)
		_, _ = conn.Read(make([]byte, 1))
	})
	well, _ := newReceiver(t, http.StatusOK)
	s := newSender(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 3*MaxInFlight)
	for range cap(done) {
		go func() {
			_, err := s.Send(ctx, newEndpoint(testDestination(url)), testEvent())
			done <- err
		}()
	}
	var busy *BusyError
	for range cap(done) - SlowStart {
		g.Expect(errors.As(<-done, &busy)).To(BeTrue(), "rejected at once")
	}
	g.Eventually(hanging.Load).WithTimeout(30 * time.Second).Should(BeEquivalentTo(SlowStart))
	g.Expect(s.Free(newEndpoint(testDestination(url)))).To(BeZero())
	g.Expect(s.Free(newEndpoint(testDestination(well.URL)))).To(Equal(SlowStart))
	for range 100 {
		g.Expect(sendEvent(t, s, testDestination(well.URL)).Outcome).To(Equal(Delivered))
	}
	cancel()
	for range SlowStart {
		g.Expect(<-done).To(MatchError(context.Canceled))
	}
}

func TestSend_reusesConnections(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, strings.NewReader(strings.Repeat("x", maxBody-1)))
	}))
	var connections atomic.Int64
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	s := newSender(t, Options{})
	for range 20 {
		g.Expect(sendEvent(t, s, testDestination(server.URL)).Outcome).To(Equal(Delivered))
	}
	// A slow test machine may lose connections: a body that takes a second closes its own.
	g.Expect(connections.Load()).To(BeNumerically("<", 5))
}

func TestParseURL(t *testing.T) {
	for _, bad := range []string{
		"", "shop.example", "//shop.example/x", "ftp://shop.example", "javascript:alert(1)", "file:///etc/passwd", "gopher://x",
		"http:", "http://", "https:///path", "http:shop.example", "http://user@shop.example", "https://user:pass@shop.example",
		"http://:80", "http://shop.example:", "http://shop.example:0", "http://shop.example:65536", "http://shop.example:x",
		"http://[fe80::1%25eth0]/", "http://[::1", "http://a b/", "http://shop.example/\x00", "http://a%00b/", "http://a%25b/",
		"https://shop.example/" + strings.Repeat("x", maxURL),
	} {
		t.Run(bad[:min(len(bad), 40)], func(t *testing.T) {
			_, err := parseURL(bad)
			NewWithT(t).Expect(err).To(Equal(errBadURL))
		})
	}
	for good, receiver := range map[string]string{
		"https://shop.example":            "shop.example:443",
		"https://SHOP.example/a/b?c=d#e":  "shop.example:443",
		"http://shop.example:8080/":       "shop.example:8080",
		"http://10.0.0.1":                 "10.0.0.1:80",
		"https://[fd00::1]:8443/":         "[fd00::1]:8443",
		"https://shop.example.":           "shop.example.:443",
		"https://bücher.example/":         "bücher.example:443",
		"http://2130706433/":              "2130706433:80",
		"https://shop.example/%00?x=%0d1": "shop.example:443",
	} {
		t.Run(good, func(t *testing.T) {
			u, err := parseURL(good)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(receiverOf(u)).To(Equal(receiver))
		})
	}
}

func TestSend_badConfigurationIsAnAttempt(t *testing.T) {
	g := NewWithT(t)
	s := newSender(t, Options{})
	g.Expect(sendEvent(t, s, testDestination("https://user:pass@shop.example")).Verdict).
		To(Equal(Verdict{Outcome: Retry, Reason: ReasonBadURL}))
	to := testDestination("https://shop.example")
	to.caBundle = []byte("-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n")
	g.Expect(sendEvent(t, s, to).Verdict).To(Equal(Verdict{Outcome: Retry, Reason: ReasonBadCABundle}))
	g.Expect(s.Free(newEndpoint(testDestination("bad url")))).To(Equal(SlowStart))
}
