package httpapi

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	requestloop "github.com/phoneproof/phoneproof/controllers/request"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// keyTest is a key with mode Test, and keyReader a live one with all scopes.
const (
	keyTest   = "the-key-for-tests-of-clients-0123456789"
	keyReader = "the-live-key-with-all-scopes-0123456789"
)

// readerKey returns keyReader in either mode.
func readerKey(test bool) settings.Key {
	all := settings.ScopeInit | settings.ScopeStatus | settings.ScopeRead | settings.ScopeRedeliver
	return settings.Key{Name: "reader", Hash: sha256.Sum256([]byte(keyReader)), Scopes: all, Test: test}
}

// newTestHarness serves a project with a test key, and returns what runs its loop once for a request.
func newTestHarness(t *testing.T) (*harness, *clocktesting.FakeClock, func(id string)) {
	t.Helper()
	fake := clocktesting.NewFakeClock(time.Now().Truncate(time.Second))
	h := newHarness(t, func(s *setup) {
		s.options.Clock = fake
		reader := readerKey(false)
		s.settings.Keys = keysOf(settings.Key{Name: "staging", Hash: sha256.Sum256([]byte(keyTest)), Scopes: reader.Scopes, Test: true}, reader)
	})
	h.canaries.add(keyTest, keyReader)
	for _, e := range verification.TestNumbers() {
		h.canaries.add(e.Number.Digits())
	}
	return h, fake, newLoop(t, h, fake)
}

// newLoop returns what runs the loop of requests once for one of them.
func newLoop(t *testing.T, h *harness, clk clock.PassiveClock) func(id string) {
	t.Helper()
	loop := requestloop.New(requestloop.Options{Store: h.store, Settings: h.settings.Load, Clock: clk})
	return func(id string) {
		t.Helper()
		_, err := loop.Reconcile(t.Context(), requestloop.Item{ID: id})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
}

// TestTestKey_ofEachOutcome walks through each test number as a client does, over HTTP, with the real store and the loop.
func TestTestKey_ofEachOutcome(t *testing.T) {
	g := NewWithT(t)
	h, fake, loop := newTestHarness(t)
	for outcome, want := range map[verification.TestOutcome]struct{ status, hint, end string }{
		verification.TestVerifiedAtOnce: {"VERIFIED", "", "VERIFIED"},
		verification.TestVerifiedLater:  {"PENDING", "", "VERIFIED"},
		verification.TestExpired:        {"PENDING", "", "EXPIRED"},
		verification.TestNumberHidden:   {"PENDING", "NUMBER_HIDDEN", "EXPIRED"},
		verification.TestOtherNumber:    {"PENDING", "OTHER_NUMBER", "EXPIRED"},
		verification.TestDeclined:       {"EXPIRED", "DECLINED", "EXPIRED"},
	} {
		number := numberOf(outcome)
		begun := h.do(initFor(keyTest, number))
		g.Expect(begun.fields).To(And(HaveKeyWithValue("test", true), HaveKey("waLink"), HaveKey("expectedText")), "the form of a live answer")
		id := begun.stringField("requestId")
		loop(id)
		now := h.do(statusRequest(keyTest, "id="+id))
		g.Expect(now.fields).To(And(HaveKeyWithValue("status", want.status), HaveKeyWithValue("test", true)), string(outcome))
		g.Expect(fmt.Sprint(now.fields["hint"])).To(Equal(map[bool]string{true: "<nil>", false: want.hint}[want.hint == ""]), string(outcome))
		fake.Step(verification.TestShortLife)
		loop(id)
		end := h.do(statusRequest(keyTest, "id="+id))
		g.Expect(end.fields).To(HaveKeyWithValue("status", want.end), string(outcome))
		if want.end == "VERIFIED" {
			g.Expect(end.fields).To(And(HaveKeyWithValue("actualPhoneNumber", number), HaveKey("verifiedAt")))
		}
	}
	g.Expect(h.gatherMetrics()).To(ContainSubstring(`phoneproof_http_inits_total{result="test"} 6`))
	g.Expect(h.gatherMetrics()).NotTo(ContainSubstring(`phoneproof_http_inits_total{result="created"}`), "they are no verifications")
}

func confirmAs(key, id, code string) request {
	return confirmRequestWith(key, fmt.Sprintf(`{"requestId":%q,"code":%q}`, id, code))
}

func numberOf(outcome verification.TestOutcome) string {
	for _, e := range verification.TestNumbers() {
		if e.Outcome == outcome {
			return e.Number.E164()
		}
	}
	panic("no number for " + outcome)
}

// TestTestKey_isolation (attack B9): neither mode learns of the other's requests, by status, long poll or confirm.
func TestTestKey_isolation(t *testing.T) {
	g := NewWithT(t)
	h, _, loop := newTestHarness(t)
	test := h.do(initRequest(keyTest, fmt.Sprintf(`{"phoneNumber":%q,"assurance":"SESSION"}`, numberOf(verification.TestVerifiedAtOnce)))).stringField("requestId")
	loop(test)
	live := h.do(initFor(keyAll, h.newNumber(1))).stringField("requestId")
	unknown := h.do(statusRequest(keyAll, "id=vraaaaaaaaaaaaaaaaaaaaaaaa"))
	g.Expect(unknown.status).To(Equal(404))
	for key, id := range map[string]string{keyAll: test, keyStatus: test, keyTest: live} {
		for _, query := range []string{"", "&wait=20s"} {
			a := h.do(statusRequest(key, "id="+id+query))
			g.Expect(a.status).To(Equal(404))
			g.Expect(string(a.body)).To(Equal(string(unknown.body)), "as an id that does not exist")
		}
	}
	for key, id := range map[string]string{keyAll: test, keyTest: live} {
		a := h.do(confirmAs(key, id, verification.TestDigits))
		g.Expect(a.status).To(Equal(404))
		g.Expect(string(a.body)).To(Equal(string(unknown.body)))
	}
	g.Expect(h.do(statusRequest(keyTest, "id="+test)).fields).To(HaveKeyWithValue("hint", "AWAITING_CONFIRMATION"))
	g.Expect(h.do(confirmAs(keyTest, test, "111111")).status).To(Equal(422), "wrong digits count as on a live request")
	confirmed := h.do(confirmAs(keyTest, test, verification.TestDigits))
	g.Expect(confirmed.fields).To(And(HaveKeyWithValue("status", "VERIFIED"), HaveKeyWithValue("test", true), HaveKeyWithValue("assurance", "session")))
}

// TestTestKey_isolationOfOperators (attack B9): lists, reads, cancellations and redeliveries keep to the mode of their key.
func TestTestKey_isolationOfOperators(t *testing.T) {
	g := NewWithT(t)
	h, _, loop := newTestHarness(t)
	h.changeSettings(func(s *settings.Settings) {
		s.Webhook = &settings.Webhook{URL: "https://shop.example/hook", Events: verification.NewEventKinds(verification.EventSuccess)}
	})
	test := h.do(initFor(keyTest, numberOf(verification.TestVerifiedAtOnce))).stringField("requestId")
	pending := h.do(initFor(keyTest, numberOf(verification.TestExpired))).stringField("requestId")
	loop(test)
	live := h.do(initFor(keyAll, h.newNumber(1))).stringField("requestId")
	read := func(key, path string) answer {
		return h.do(request{method: "GET", target: path, header: statusRequest(key, "").header})
	}
	post := func(key, path, id string) answer {
		r := initRequest(key, fmt.Sprintf(`{"requestId":%q}`, id))
		r.target = path
		return h.do(r)
	}
	for key, ids := range map[string][]string{keyReader: {live}, keyTest: {pending, test}} {
		var listed []string
		for _, r := range read(key, "/api/verify/requests").fields["requests"].([]any) {
			fields := r.(map[string]any)
			listed = append(listed, fields["requestId"].(string))
			_, isTest := fields["test"]
			g.Expect(isTest).To(Equal(key == keyTest))
		}
		g.Expect(listed).To(ConsistOf(ids))
	}
	for key, id := range map[string]string{keyReader: pending, keyTest: live} {
		for what, a := range map[string]answer{
			"read": read(key, "/api/verify/requests/"+id), "cancel": post(key, "/api/verify/cancel", id), "redeliver": post(key, "/api/verify/redeliver", id),
		} {
			g.Expect(a.status).To(Equal(404), what)
			g.Expect(a.errorField("code")).To(Equal("request_not_found"), what)
		}
	}
	g.Expect(read(keyTest, "/api/verify/requests/"+test).fields).To(And(HaveKeyWithValue("test", true), HaveKeyWithValue("method", "WHATSAPP")))
	g.Expect(post(keyTest, "/api/verify/redeliver", test).errorField("code")).To(Equal("no_event"), "the live receiver never stands in")
	g.Expect(post(keyTest, "/api/verify/cancel", pending).fields).To(And(HaveKeyWithValue("hint", "CANCELED"), HaveKeyWithValue("test", true)))
}

// TestTestKey_takesTestNumbersAlone: a test key verifies no real number, and a live key takes what it took before.
func TestTestKey_takesTestNumbersAlone(t *testing.T) {
	g := NewWithT(t)
	h, _, _ := newTestHarness(t)
	refused := h.do(initFor(keyTest, h.newNumber(1)))
	g.Expect(refused.status).To(Equal(400))
	g.Expect(string(refused.body)).To(And(ContainSubstring(`"not_a_test_number"`), ContainSubstring(`"field":"phoneNumber"`)))
	live := h.do(initFor(keyAll, numberOf(verification.TestVerifiedAtOnce)))
	g.Expect(live.status).To(Equal(200))
	g.Expect(live.fields).NotTo(HaveKey("test"))
	status := h.do(statusRequest(keyAll, "id="+live.stringField("requestId")))
	g.Expect(status.fields).To(And(HaveKeyWithValue("status", "PENDING"), Not(HaveKey("test"))))
}

// TestTestKey_quota: a test key has a rate of its own, and needs no messenger that works.
func TestTestKey_quota(t *testing.T) {
	g := NewWithT(t)
	h, _, _ := newTestHarness(t)
	h.changeSettings(func(s *settings.Settings) {
		s.Limits = verification.Limits{PerKey: verification.Rate{Requests: 1, Period: time.Hour}, MaxStored: 1}
		s.WhatsApp = &settings.WhatsApp{PhoneNumber: "+15550001111"}
	})
	number := numberOf(verification.TestVerifiedAtOnce)
	for range 60 {
		g.Expect(h.do(initFor(keyTest, number)).status).To(Equal(200))
	}
	g.Expect(h.do(initFor(keyTest, number)).errorField("code")).To(Equal("rate_limited"))
	h.changeSettings(func(s *settings.Settings) { s.WhatsApp = liveSettings().WhatsApp })
	g.Expect(h.do(initFor(keyAll, number)).status).To(Equal(200), "none of it counts for live keys")
	g.Expect(h.gatherMetrics()).NotTo(ContainSubstring(`phoneproof_http_rate_limited_total{`))
}
