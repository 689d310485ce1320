package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestInit_whatsApp(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, stoppedClock)
	a := h.do(initFor(keyAll, h.newNumber(1)))
	g.Expect(a.status).To(Equal(http.StatusOK))
	g.Expect(a.fields).To(HaveLen(5))
	g.Expect(verification.IsRequestID(a.stringField("requestId"))).To(BeTrue())
	g.Expect(a.stringField("waLink")).To(HavePrefix("https://wa.me/15550001111?text="))
	g.Expect(a.stringField("expectedText")).To(ContainSubstring("Example \"Shop\" <ü>\u2028"))
	g.Expect(a.stringField("expiresIn")).To(Equal("600s"))
	expires, err := time.Parse(time.RFC3339, a.stringField("expiresAt"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(expires).To(BeTemporally("~", time.Now().Add(10*time.Minute), time.Minute))
	g.Expect(a.header).NotTo(Or(HaveKey("Ratelimit"), HaveKey("Ratelimit-Policy"), HaveKey("Phoneproof-Simulated")))
}

func TestInit_telegram(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	a := h.do(initRequest(keyInit, fmt.Sprintf(`{"method":"TELEGRAM","phoneNumber":%q}`, h.newNumber(1))))
	g.Expect(a.status).To(Equal(http.StatusOK))
	g.Expect(a.fields).To(HaveLen(5))
	g.Expect(a.stringField("tgLink")).To(HavePrefix("https://t.me/example_shop_bot?start="))
	g.Expect(a.stringField("expectedText")).To(HavePrefix("/start "))
}

func TestInit_simulatedProjectHeader(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	h.changeSettings(func(s *settings.Settings) { s.Simulated = true })
	g.Expect(h.do(initFor(keyAll, h.newNumber(1))).joinedHeader("PhoneProof-Simulated")).To(Equal("true"))
	g.Expect(h.do(initFor("wrong", h.newNumber(1))).joinedHeader("PhoneProof-Simulated")).To(Equal("true"))
}

func TestInit_methods(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	h.changeSettings(func(s *settings.Settings) {
		s.Telegram = nil
		s.WhatsApp = &settings.WhatsApp{PhoneNumber: "+15550001111"}
	})
	a := h.do(initRequest(keyAll, fmt.Sprintf(`{"method":"TELEGRAM","phoneNumber":%q}`, h.newNumber(1))))
	expectRefusal(g, a, 400, verification.CodeMethodNotConfigured, "method")
	g.Expect(a.errorField("message")).To(Equal(`This project does not use TELEGRAM; send "method": "WHATSAPP".`))
	a = h.do(initFor(keyAll, h.newNumber(1)))
	expectRefusal(g, a, 503, verification.CodeChannelNotReady, "")
	g.Expect(a.joinedHeader("Retry-After")).To(Equal("30"))
	g.Expect(h.store.calls.Load()).To(BeZero())
}

// null for the method is the same as none, which means WHATSAPP even in a project that has only the other.
func TestInit_withoutMethod(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	without := []string{`{"phoneNumber":%q}`, `{"phoneNumber":%q,"method":null}`}
	for _, body := range without {
		g.Expect(h.do(initRequest(keyAll, fmt.Sprintf(body, h.newNumber(1)))).fields).To(HaveKey("waLink"))
	}
	h.changeSettings(func(s *settings.Settings) { s.WhatsApp = nil })
	for _, body := range append(without, `{"phoneNumber":%q,"method":"WHATSAPP"}`) {
		a := h.do(initRequest(keyAll, fmt.Sprintf(body, h.newNumber(1))))
		expectRefusal(g, a, 400, verification.CodeMethodNotConfigured, "method")
		g.Expect(a.errorField("message")).To(Equal(`This project does not use WHATSAPP; send "method": "TELEGRAM".`))
	}
	h.changeSettings(func(s *settings.Settings) { s.WhatsApp, s.Telegram = nil, nil })
	a := h.do(initFor(keyAll, h.newNumber(1)))
	expectRefusal(g, a, 400, verification.CodeMethodNotConfigured, "method")
	g.Expect(a.errorField("message")).To(ContainSubstring("have the account added"))
}

func TestInit_ownNumber(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	own := h.newNumber(1)
	h.changeSettings(func(s *settings.Settings) {
		whatsApp := *s.WhatsApp
		whatsApp.PhoneNumber = own
		s.WhatsApp = &whatsApp
	})
	for _, body := range []string{`{"phoneNumber":%q}`, `{"phoneNumber":%q,"method":"TELEGRAM"}`} {
		for _, number := range []string{own, "\u202a" + own[1:] + "\u202c"} {
			a := h.do(initRequest(keyAll, fmt.Sprintf(body, number)).withHeader("Idempotency-Key", "one"))
			expectRefusal(g, a, 400, verification.CodeOwnNumber, "phoneNumber")
		}
		g.Expect(h.do(initRequest(keyAll, fmt.Sprintf(body, h.newNumber(2)))).status).To(Equal(200), "another number")
	}
	h.changeSettings(func(s *settings.Settings) {
		whatsApp := *s.WhatsApp
		whatsApp.PhoneNumber = "+5511987654321"
		s.WhatsApp = &whatsApp
	})
	for _, form := range []string{"+5511987654321", "+551187654321"} {
		h.canaries.add(form[1:])
		expectRefusal(g, h.do(initFor(keyAll, form)), 400, verification.CodeOwnNumber, "phoneNumber")
	}
	g.Expect(h.do(initFor(keyAll, own)).status).To(Equal(200), "the former own number is one like any other")
	h.changeSettings(func(s *settings.Settings) { s.WhatsApp = nil })
	a := h.do(initRequest(keyAll, `{"phoneNumber":"+5511987654321","method":"TELEGRAM"}`))
	g.Expect(a.status).To(Equal(200), "a project without WhatsApp has no number")
}

func TestInit_suspendedProject(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	id := h.do(initFor(keyAll, h.newNumber(1))).stringField("requestId")
	h.changeSettings(func(s *settings.Settings) { s.Suspended = true })
	a := h.do(initFor(keyAll, h.newNumber(1)))
	expectRefusal(g, a, 503, codeSuspended, "")
	g.Expect(a.joinedHeader("Retry-After")).To(Equal("300"))
	g.Expect(h.do(statusRequest(keyAll, "id="+id)).status).To(Equal(200), "started verifications can still be read")
}

func TestInit_idempotencyKey(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, stoppedClock)
	first := h.do(initFor(keyAll, h.newNumber(1)).withHeader("Idempotency-Key", "order-1"))
	again := h.do(initFor(keyAll, " "+h.newNumber(1)+" ").withHeader("Idempotency-Key", "order-1"))
	g.Expect(first.status).To(Equal(200))
	for _, field := range []string{"requestId", "waLink", "expectedText", "expiresAt"} {
		g.Expect(again.stringField(field)).To(Equal(first.stringField(field)))
	}
	g.Expect(again.stringField("expiresIn")).To(Equal("600s"))
	other := h.do(initFor(keyInit, h.newNumber(1)).withHeader("Idempotency-Key", "order-1"))
	g.Expect(other.stringField("requestId")).NotTo(Equal(first.stringField("requestId")), "another API key is another client")
	reused := h.do(initFor(keyAll, h.newNumber(2)).withHeader("Idempotency-Key", "order-1"))
	expectRefusal(g, reused, 422, verification.CodeIdempotencyKeyReused, "Idempotency-Key")
	reused = h.do(initRequest(keyAll, fmt.Sprintf(`{"method":"TELEGRAM","phoneNumber":%q}`, h.newNumber(1))).withHeader("Idempotency-Key", "order-1"))
	expectRefusal(g, reused, 422, verification.CodeIdempotencyKeyReused, "Idempotency-Key")
}

// A retry of a stored request is answered even while no new verification may start.
func TestInit_idempotencyKeyWhenNothingNewMayBegin(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	retry := initFor(keyAll, h.newNumber(1)).withHeader("Idempotency-Key", "order-1")
	first := h.do(retry)
	suspend := func(s *settings.Settings) { s.Suspended = true }
	notReady := func(s *settings.Settings) {
		s.Suspended, s.WhatsApp = false, &settings.WhatsApp{PhoneNumber: "+15550001111"}
	}
	for code, change := range map[verification.ErrorCode]func(*settings.Settings){
		codeSuspended: suspend, verification.CodeChannelNotReady: notReady,
	} {
		h.changeSettings(change)
		again := h.do(retry)
		g.Expect(again.status).To(Equal(200), string(code))
		g.Expect(again.stringField("requestId")).To(Equal(first.stringField("requestId")))
		g.Expect(again.stringField("expectedText")).To(Equal(first.stringField("expectedText")))
		expectRefusal(g, h.do(initFor(keyAll, h.newNumber(2)).withHeader("Idempotency-Key", "order-1")), 422, verification.CodeIdempotencyKeyReused, "Idempotency-Key")
		expectRefusal(g, h.do(initFor(keyAll, h.newNumber(1)).withHeader("Idempotency-Key", "order-2")), 503, code, "")
		expectRefusal(g, h.do(initFor(keyInit, h.newNumber(1)).withHeader("Idempotency-Key", "order-1")), 503, code, "")
		expectRefusal(g, h.do(initFor(keyAll, h.newNumber(1)).withHeader("Idempotency-Key", "").markInvalid()), 400, verification.CodeInvalidIdempotency, "Idempotency-Key")
		expectRefusal(g, h.do(initFor(keyAll, h.newNumber(1))), 503, code, "")
		h.settings.Store(liveSettings())
	}
	h.changeSettings(func(s *settings.Settings) { s.WhatsApp = nil })
	expectRefusal(g, h.do(retry), 400, verification.CodeMethodNotConfigured, "method")
}

func TestInit_manyWithOneIdempotencyKeyMakeOneRequest(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	ids := make([]string, 200)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			a := answer{status: http.StatusServiceUnavailable}
			for tries := 0; tries < 20 && a.status == http.StatusServiceUnavailable; tries++ { // on a busy machine, a call of the store may time out
				a = h.do(initFor(keyAll, h.newNumber(1)).withHeader("Idempotency-Key", "same"))
			}
			ids[i] = a.stringField("requestId")
		})
	}
	all.Wait()
	g.Expect(verification.IsRequestID(ids[0])).To(BeTrue())
	g.Expect(ids).To(HaveEach(ids[0]))
	// The init that created the request may have timed out.
	g.Expect(h.gatherMetrics()).To(Or(
		And(ContainSubstring(`phoneproof_http_inits_total{result="created"} 1`+"\n"),
			ContainSubstring(`phoneproof_http_inits_total{result="replayed"} 199`+"\n")),
		And(Not(ContainSubstring(`phoneproof_http_inits_total{result="created"} 1`)),
			ContainSubstring(`phoneproof_http_inits_total{result="replayed"} 200`+"\n")),
	))
}

// Buffers are reused, so the phone number of one client must not stay in memory until the next request.
func TestInit_clearsTheBody(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	for i := range 50 { // The pool may sometimes return another buffer.
		buffer := new([maxBodyBytes + 1]byte)
		bodies.Put(buffer)
		for _, text := range []string{fmt.Sprintf(`{"phoneNumber":%q}`, h.newNumber(i)), h.newNumber(i)} {
			r := httptest.NewRequest(http.MethodPost, pathInit, strings.NewReader(text))
			r.Header.Set("Authorization", "Bearer "+keyAll)
			r.Header.Set("Content-Type", "application/json")
			h.api.ServeHTTP(httptest.NewRecorder(), r)
			g.Expect(bytes.Count(buffer[:], []byte{0})).To(Equal(len(buffer)))
		}
	}
}

func TestInit_floodOfOneKey(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, stoppedClock)
	h.changeSettings(func(s *settings.Settings) {
		s.Limits.PerKey = verification.Rate{Requests: 10, Period: time.Minute}
		s.Limits.PerPhoneNumber = verification.Rate{Requests: 5, Period: 90500 * time.Millisecond}
	})
	for i := range 10 {
		a := h.do(initFor(keyAll, h.newNumber(i)))
		g.Expect(a.status).To(Equal(200))
		g.Expect(a.joinedHeader("RateLimit-Policy")).To(Equal(`"key";q=10;w=60, "phoneNumber";q=5;w=91`))
		g.Expect(a.joinedHeader("RateLimit")).To(HavePrefix(fmt.Sprintf(`"key";r=%d;t=`, 9-i)))
	}
	a := h.do(initFor(keyAll, h.newNumber(10)))
	expectRefusal(g, a, 429, verification.CodeRateLimited, "")
	g.Expect(a.joinedHeader("Retry-After")).To(Equal("60"))
	g.Expect(a.joinedHeader("RateLimit")).To(Equal(`"key";r=0;t=` + a.joinedHeader("Retry-After")))
	g.Expect(h.do(initFor(keyInit, h.newNumber(11))).status).To(Equal(200), "another key is not affected")
}

func TestInit_floodOfOneNumber(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, stoppedClock)
	h.changeSettings(func(s *settings.Settings) {
		s.Limits.PerPhoneNumber = verification.Rate{Requests: 5, Period: 10 * time.Minute}
	})
	for i := range 5 {
		a := h.do(initFor([]string{keyAll, keyInit}[i%2], h.newNumber(1)))
		g.Expect(a.status).To(Equal(200))
		g.Expect(a.header).NotTo(HaveKey("Ratelimit"), "the key has no limit")
	}
	a := h.do(initFor(keyInit, h.newNumber(1)))
	expectRefusal(g, a, 429, verification.CodeRateLimited, "phoneNumber")
	g.Expect(a.joinedHeader("Retry-After")).To(Equal("600"))
	g.Expect(a.joinedHeader("RateLimit")).To(HavePrefix(`"phoneNumber";r=0;t=`))
	g.Expect(h.do(initFor(keyInit, h.newNumber(2))).status).To(Equal(200))
}

func TestInit_floodOfOnePrefix(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, stoppedClock)
	h.changeSettings(func(s *settings.Settings) {
		s.Limits.PerPrefix = verification.PrefixRate{Rate: verification.Rate{Requests: 5, Period: 10 * time.Minute}, Digits: 5}
	})
	for i := range 5 {
		g.Expect(h.do(initFor(keyInit, h.newNumber(i))).status).To(Equal(200))
	}
	a := h.do(initFor(keyInit, h.newNumber(6)))
	expectRefusal(g, a, 429, verification.CodeRateLimited, "phoneNumber")
	g.Expect(a.errorField("message")).To(ContainSubstring("begin like this one"))
	g.Expect(a.joinedHeader("Retry-After")).To(Equal("600"))
	g.Expect(a.joinedHeader("RateLimit")).To(Equal(`"prefix";r=0;t=600`))
	g.Expect(a.joinedHeader("RateLimit-Policy")).To(Equal(`"prefix";q=5;w=600`))
	g.Expect(h.gatherMetrics()).To(ContainSubstring(`phoneproof_http_rate_limited_total{limit="prefix"} 1` + "\n"))
	g.Expect(h.do(initFor(keyInit, "+447911123456")).status).To(Equal(200), "another range")
	g.Expect(h.do(initFor(keyAll, h.newNumber(6))).status).To(Equal(200), "another key")
}

// initAs returns an init request for a subject.
func initAs(key, number, subject string) request {
	return initRequest(key, fmt.Sprintf(`{"phoneNumber":%q,"subject":%q}`, number, subject))
}

func TestInit_floodOfOneSubject(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, stoppedClock)
	h.changeSettings(func(s *settings.Settings) { s.Limits.PerSubject = verification.Rate{Requests: 2, Period: time.Hour} })
	h.canaries.add("203.0.113.7")
	first := initAs(keyAll, h.newNumber(0), "203.0.113.7").withHeader("Idempotency-Key", "one")
	g.Expect(h.do(first).status).To(Equal(200))
	g.Expect(h.do(initAs(keyAll, h.newNumber(1), "203.0.113.7")).status).To(Equal(200))
	a := h.do(initAs(keyAll, h.newNumber(2), "203.0.113.7"))
	expectRefusal(g, a, 429, verification.CodeRateLimited, "subject")
	g.Expect(a.joinedHeader("Retry-After")).To(Equal("3600"))
	g.Expect(a.joinedHeader("RateLimit")).To(Equal(`"subject";r=0;t=3600`))
	g.Expect(a.joinedHeader("RateLimit-Policy")).To(Equal(`"subject";q=2;w=3600`))
	g.Expect(h.gatherMetrics()).To(ContainSubstring(`phoneproof_http_rate_limited_total{limit="subject"} 1` + "\n"))

	g.Expect(h.do(initAs(keyAll, h.newNumber(2), "203.0.113.8")).status).To(Equal(200), "another subject")
	g.Expect(h.do(initAs(keyInit, h.newNumber(3), "203.0.113.7")).status).To(Equal(200), "another key's subject of the same name")
	g.Expect(h.do(first).status).To(Equal(200), "a retry does not count")
	g.Expect(h.do(initAs(keyAll, h.newNumber(0), "203.0.113.9").withHeader("Idempotency-Key", "one")).status).
		To(Equal(200), "the user of a retry may have another address")
	expectRefusal(g, h.do(initFor(keyAll, h.newNumber(4))), 400, codeMissingField, "subject")
	null := initRequest(keyAll, fmt.Sprintf(`{"phoneNumber":%q,"subject":null}`, h.newNumber(4)))
	expectRefusal(g, h.do(null), 400, codeMissingField, "subject")
}

// A retry without a subject is answered if its first try was stored before the project limited subjects.
func TestInit_retryOfBeforeSubjectsWereLimited(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	retry := initFor(keyAll, h.newNumber(1)).withHeader("Idempotency-Key", "order-1")
	first := h.do(retry)
	g.Expect(first.status).To(Equal(200))
	h.changeSettings(func(s *settings.Settings) { s.Limits.PerSubject = verification.Rate{Requests: 1, Period: time.Hour} })
	for range 3 {
		again := h.do(retry)
		g.Expect(again.status).To(Equal(200), again.errorField("message"))
		g.Expect(again.stringField("requestId")).To(Equal(first.stringField("requestId")))
		g.Expect(again.stringField("expectedText")).To(Equal(first.stringField("expectedText")))
	}
	for name, other := range map[string]request{
		"another Idempotency-Key": initFor(keyAll, h.newNumber(1)).withHeader("Idempotency-Key", "order-2"),
		"another API key":         initFor(keyInit, h.newNumber(1)).withHeader("Idempotency-Key", "order-1"),
		"no Idempotency-Key":      initFor(keyAll, h.newNumber(1)),
	} {
		refused := h.do(other)
		g.Expect([]any{refused.status, refused.errorField("code")}).To(Equal([]any{400, string(codeMissingField)}), name)
	}
}

func TestInit_subject(t *testing.T) {
	of := func(subject string) request { return initAs(keyAll, "+4915123456789", subject) }
	expectEach(t, []badRequest{
		{"none", initFor(keyAll, "+4915123456789"), 200, "", ""},
		{"without a limit per subject", of("user-1"), 200, "", ""},
		{"as long as allowed", of(strings.Repeat("ü", maxSubject)), 200, "", ""},
		{"one longer", of(strings.Repeat("ü", maxSubject+1)), 400, verification.CodeInvalidSubject, "subject"},
		{"empty", of(""), 400, verification.CodeInvalidSubject, "subject"},
		{"not a string", requestWithBody(`{"phoneNumber":"+4915123456789","subject":{"ip":"203.0.113.7"}}`), 400, codeInvalidType, "subject"},
		{"null, which means none", requestWithBody(`{"phoneNumber":"+4915123456789","subject":null}`), 200, "", ""},
		{"null that is cut", requestWithBody(`{"phoneNumber":"+4915123456789","subject":nul}`), 400, codeInvalidJSON, ""},
		{"null and another", requestWithBody(`{"phoneNumber":"+4915123456789","subject":null,"subject":"b"}`), 400, codeInvalidJSON, "subject"},
		{"null after another", requestWithBody(`{"phoneNumber":"+4915123456789","subject":"a","subject":null}`), 400, codeInvalidJSON, "subject"},
		{"twice", requestWithBody(`{"phoneNumber":"+4915123456789","subject":"a","subject":"b"}`), 400, codeInvalidJSON, "subject"},
	})
}

func TestInit_fullStore(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	h.changeSettings(func(s *settings.Settings) { s.Limits.MaxStored = 1 })
	g.Expect(h.do(initFor(keyInit, h.newNumber(1))).status).To(Equal(200))
	a := h.do(initFor(keyInit, h.newNumber(2)))
	expectRefusal(g, a, 429, verification.CodeTooManyStored, "")
	g.Expect(a.joinedHeader("Retry-After")).NotTo(BeEmpty())
}

// expectRefusal checks the status, the code and the field of a refusal.
func expectRefusal(g Gomega, a answer, status int, code verification.ErrorCode, field string) {
	g.Expect([]any{a.status, a.errorField("code"), a.errorField("field")}).
		To(Equal([]any{status, string(code), field}), "message: %s", a.errorField("message"))
	g.Expect(strings.HasSuffix(a.errorField("message"), ".")).To(BeTrue())
}
