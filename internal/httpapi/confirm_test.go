package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// sessionWorld is a project whose requests clients confirm. Its codes are the same in every run, because the clock, the key and the
// Idempotency-Keys are.
type sessionWorld struct {
	*harness
	g      Gomega
	clock  *clocktesting.FakeClock
	number string
	events verification.EventKinds
	digits []string // that must not appear in logs and answers
}

// begun is a request of LevelSession with its codes.
type begun struct {
	id, text string
	digits   string
	back     string // the code of the return
}

func newSessionWorld(t *testing.T) *sessionWorld {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	events := verification.NewEventKinds(
		verification.EventSuccess, verification.EventExpired, verification.EventDeclined, verification.EventAttention)
	h := newHarness(t, func(s *setup) {
		s.options.Clock = clock
		s.settings.Webhook = &settings.Webhook{Events: events}
	})
	w := &sessionWorld{harness: h, g: NewWithT(t), clock: clock, number: h.newNumber(1), events: events}
	t.Cleanup(func() {
		for _, line := range w.parseLog() {
			delete(line, "time") // It and the id may have any six digits.
			delete(line, "xRequestId")
			w.expectNoDigits(fmt.Sprint(line))
		}
	})
	return w
}

func (w *sessionWorld) expectNoDigits(text string) {
	w.t.Helper()
	for _, digits := range w.digits {
		w.g.Expect(text).NotTo(ContainSubstring(digits))
	}
}

// do sends a request and checks that its answer has no digits of a code.
func (w *sessionWorld) do(r request) answer {
	w.t.Helper()
	a := w.harness.do(r)
	w.expectNoDigits(string(a.body))
	return a
}

// beginSession starts a request of LevelSession.
func (w *sessionWorld) beginSession(idempotencyKey string) begun {
	w.t.Helper()
	a := w.do(initRequest(keyInit, fmt.Sprintf(`{"phoneNumber":%q,"assurance":"SESSION"}`, w.number)).withHeader("Idempotency-Key", idempotencyKey))
	w.g.Expect(a.status).To(Equal(http.StatusOK))
	stored, err := w.store.Store.Read(w.t.Context(), a.stringField("requestId"))
	w.g.Expect(err).NotTo(HaveOccurred())
	codes, ok := w.settings.Load().SessionCodes(&stored, w.clock.Now())
	w.g.Expect(ok).To(BeTrue())
	b := begun{stored.ID, a.stringField("expectedText"), codes.Digits.Reveal(), codes.Return.Reveal()}
	w.canaries.add(b.back)
	w.digits = append(w.digits, b.digits)
	return b
}

// proveNumber sends the message of the user.
func (w *sessionWorld) proveNumber(b begun) {
	w.t.Helper()
	from, err := phone.FromE164(w.number)
	w.g.Expect(err).NotTo(HaveOccurred())
	receipt, err := w.service.Receive(w.t.Context(), verification.Message{
		Evidence: verification.Evidence{Method: verification.WhatsApp, Sender: from, SentAt: w.clock.Now()}, Text: b.text,
	}, w.events)
	w.g.Expect(err).NotTo(HaveOccurred())
	w.g.Expect(receipt.Outcome).To(Equal(verification.OutcomeProven))
}

// declineRequest has the prover answer "Not me".
func (w *sessionWorld) declineRequest(id string) {
	w.t.Helper()
	_, err := w.store.Store.Update(w.t.Context(), id, func(r *verification.Request, now time.Time) error {
		return r.DeclineProven(func(*verification.Request) bool { return true }, now, w.events)
	})
	w.g.Expect(err).NotTo(HaveOccurred())
}

// readStatus returns the answer of status, which costs the world no read.
func (w *sessionWorld) readStatus(id string) answer {
	w.t.Helper()
	return w.do(statusRequest(keyStatus, "id="+id))
}

// wrongDigits returns six digits that are none of b, different ones for each n below 1,000,000.
func (b begun) wrongDigits(n int) string {
	right, _ := strconv.Atoi(b.digits)
	return fmt.Sprintf("%06d", (right+1+n%999_999)%1_000_000)
}

func confirmRequestWith(key, body string) request {
	r := initRequest(key, body)
	r.target = pathConfirm
	return r
}

func confirmFor(id, code string) request {
	return confirmRequestWith(keyInit, fmt.Sprintf(`{"requestId":%q,"code":%q}`, id, code))
}

// Either code verifies the request, the digits however the user typed them, and the answer is that of status.
func TestConfirm_verifiesByEitherCode(t *testing.T) {
	for name, code := range map[string]func(b begun) string{
		"digits":               func(b begun) string { return b.digits },
		"digits with a space":  func(b begun) string { return b.digits[:3] + " " + b.digits[3:] },
		"digits with a hyphen": func(b begun) string { return " " + b.digits[:3] + "-" + b.digits[3:] + "\u00a0" },
		"Arabic-Indic digits": func(b begun) string {
			return strings.Map(func(r rune) rune { return r - '0' + '٠' }, b.digits)
		},
		"the code of the return": func(b begun) string { return b.back },
	} {
		t.Run(name, func(t *testing.T) {
			w := newSessionWorld(t)
			b := w.beginSession("order-1")
			w.proveNumber(b)
			w.g.Expect(w.readStatus(b.id).fields).To(Equal(map[string]any{
				"status": "PENDING", "phoneNumber": w.number, "expiresAt": "2026-03-01T10:10:00.000Z", "hint": "AWAITING_CONFIRMATION",
			}), "proven is not verified")
			w.clock.Step(time.Minute)
			a := w.do(confirmFor(b.id, code(b)))
			w.g.Expect(a.status).To(Equal(http.StatusOK), "%s", a.body)
			w.g.Expect(a.fields).To(Equal(map[string]any{
				"status": "VERIFIED", "phoneNumber": w.number, "actualPhoneNumber": w.number, "expiresAt": "2026-03-01T10:10:00.000Z",
				"verifiedAt": "2026-03-01T10:01:00.000Z", "assurance": "session",
			}))
			w.g.Expect(w.readStatus(b.id).body).To(Equal(a.body))
			stored, err := w.store.Read(t.Context(), b.id)
			w.g.Expect(err).NotTo(HaveOccurred())
			w.g.Expect(stored.Event().Kind).To(Equal(verification.EventSuccess))
			w.g.Expect(stored.Delivery.NextAttemptAt).To(BeTemporally("==", w.clock.Now()), "the event is due")

			for _, again := range []string{code(b), b.digits, b.back, b.wrongDigits(1)} {
				expectRefusal(w.g, w.do(confirmFor(b.id, again)), 409, verification.CodeAlreadyConfirmed, "")
			}
			w.g.Expect(w.readStatus(b.id).body).To(Equal(a.body))
			w.g.Expect(w.awaitLogLines(w.g, 9)[2]).To(And(
				HaveKeyWithValue("route", pathConfirm), HaveKeyWithValue("keyName", "init"), HaveKeyWithValue("status", 200.0)))
			w.g.Expect(w.gatherMetrics()).To(ContainSubstring(`phoneproof_http_requests_total{method="POST",route="/api/verify/confirm",status="200"} 1` + "\n"))
		})
	}
}

// What was proven in the last two minutes may be confirmed for two minutes after its end, and status answers that end.
func TestConfirm_shortlyBeforeTheEnd(t *testing.T) {
	w := newSessionWorld(t)
	in, late := w.beginSession("order-1"), w.beginSession("order-2")
	w.clock.Step(9*time.Minute + 59*time.Second)
	w.proveNumber(in)
	w.proveNumber(late)
	w.g.Expect(w.readStatus(in.id).fields).To(HaveKeyWithValue("expiresAt", "2026-03-01T10:12:00.000Z"))
	retry := w.do(initRequest(keyInit, fmt.Sprintf(`{"phoneNumber":%q,"assurance":"SESSION"}`, w.number)).withHeader("Idempotency-Key", "order-1"))
	w.g.Expect(retry.fields).To(And(HaveKeyWithValue("expiresIn", "121s"), HaveKeyWithValue("expiresAt", "2026-03-01T10:12:00.000Z")))
	w.clock.Step(2 * time.Minute)
	a := w.do(confirmFor(in.id, in.digits))
	w.g.Expect(a.fields).To(And(HaveKeyWithValue("status", "VERIFIED"), HaveKeyWithValue("verifiedAt", "2026-03-01T10:11:59.000Z")))
	w.clock.Step(time.Second)
	expectRefusal(w.g, w.do(confirmFor(late.id, late.digits)), 409, verification.CodeRequestExpired, "")
	w.clock.Step(verification.ExpiryGrace)
	w.g.Expect(w.readStatus(late.id).fields).To(And(
		HaveKeyWithValue("status", "EXPIRED"), HaveKeyWithValue("expiresAt", "2026-03-01T10:12:00.000Z"),
		HaveKeyWithValue("hint", "AWAITING_CONFIRMATION"), Not(HaveKey("assurance"))))
}

// A request that no code can confirm is refused as what it is, whatever the code is, and nothing is counted.
func TestConfirm_refusesWhateverTheCodeIs(t *testing.T) {
	w := newSessionWorld(t)
	possession := w.do(initFor(keyInit, w.number)).stringField("requestId")
	early, declined, canceled := w.beginSession("early"), w.beginSession("declined"), w.beginSession("canceled")
	w.proveNumber(declined)
	w.declineRequest(declined.id)
	_, err := w.service.Cancel(t.Context(), canceled.id, w.events)
	w.g.Expect(err).NotTo(HaveOccurred())
	for range 2 * verification.MaxConfirmTries {
		for _, code := range []string{early.digits, early.back, early.wrongDigits(0), declined.digits, canceled.back} {
			expectRefusal(w.g, w.do(confirmFor(early.id, code)), 409, verification.CodeNotProven, "")
			expectRefusal(w.g, w.do(confirmFor(possession, code)), 409, verification.CodeNoConfirmation, "")
			expectRefusal(w.g, w.do(confirmFor(declined.id, code)), 409, verification.CodeRequestExpired, "")
			expectRefusal(w.g, w.do(confirmFor(canceled.id, code)), 409, verification.CodeRequestExpired, "")
		}
	}
	w.g.Expect(w.readStatus(declined.id).fields).To(And(HaveKeyWithValue("status", "EXPIRED"), HaveKeyWithValue("hint", "DECLINED")))
	w.g.Expect(w.readStatus(canceled.id).fields).To(And(HaveKeyWithValue("status", "EXPIRED"), HaveKeyWithValue("hint", "CANCELED")))
	w.proveNumber(early)
	w.g.Expect(w.do(confirmFor(early.id, early.digits)).status).To(Equal(200), "no early guess was counted")
	w.verifyRequest(possession, w.number, verification.AssuranceUsual)
	expectRefusal(w.g, w.do(confirmFor(possession, early.digits)), 409, verification.CodeNoConfirmation, "")
}

// What cannot be a code is no try.
func TestConfirm_fiveWrongCodesEndTheRequest(t *testing.T) {
	w := newSessionWorld(t)
	b := w.beginSession("order-1")
	w.proveNumber(b)
	for left := verification.MaxConfirmTries - 1; left > 0; left-- {
		a := w.do(confirmFor(b.id, b.wrongDigits(left)))
		expectRefusal(w.g, a, 422, verification.CodeWrongCode, "code")
		w.g.Expect(a.errorField("message")).To(Equal(fmt.Sprintf("The code is wrong. Tries that are left: %d.", left)))
		expectRefusal(w.g, w.do(confirmFor(b.id, b.digits[:5]).markInvalid()), 400, verification.CodeInvalidCode, "code")
	}
	a := w.do(confirmFor(b.id, b.wrongDigits(9)))
	expectRefusal(w.g, a, 422, verification.CodeWrongCode, "code")
	w.g.Expect(a.errorField("message")).To(ContainSubstring("it was the last try"))
	w.g.Expect(w.readStatus(b.id).fields).To(And(HaveKeyWithValue("status", "EXPIRED"), HaveKeyWithValue("hint", "WRONG_CODE")))
}

func TestConfirm_badBodies(t *testing.T) {
	const id = `"requestId":"vraaaaaaaaaaaaaaaaaaaaaaaa"`
	of := func(body string) request { return confirmRequestWith(keyAll, body) }
	code := func(value string) request { return of(`{` + id + `,"code":` + value + `}`) }
	zipped := of(`{`+id+`,"code":"123456"}`).withHeader("Content-Encoding", "gzip")
	chunked := of("")
	chunked.stream = strings.NewReader(strings.Repeat(" ", maxBodyBytes+1))
	unknown := verification.CodeNotFound
	invalid := verification.CodeInvalidCode
	rows := []badRequest{
		{"unknown id", code(`"123456"`), 404, unknown, ""},
		{"unknown id, with the code of a return", code(`"q0N2mB7c4xkTz1V9aLrW8Q"`), 404, unknown, ""},
		{"unknown fields", of(`{` + id + `,"code":"123456","a":1,"a":[{}],"phoneNumber":"+4915123456789"}`), 404, unknown, ""},
		{"no id that can be", of(`{"requestId":"' OR 1=1 --","code":"123456"}`), 404, unknown, ""},
		{"empty id", of(`{"requestId":"","code":"123456"}`), 404, unknown, ""},
		{"id of a path", of(`{"requestId":"../secrets/a","code":"123456"}`), 404, unknown, ""},
		{"id with NUL", of(`{"requestId":"vraaaaaaaaaaaaaaaaaaaaaaaa\u0000","code":"123456"}`), 404, unknown, ""},
		{"id of 7,000 characters", of(`{"requestId":"` + strings.Repeat("a", 7000) + `","code":"123456"}`), 404, unknown, ""},
		{"nothing", of(``), 400, codeInvalidJSON, ""},
		{"no object", of(`["vraaaaaaaaaaaaaaaaaaaaaaaa","123456"]`), 400, codeInvalidJSON, ""},
		{"null alone", of(`null`), 400, codeInvalidJSON, ""},
		{"form", of(`requestId=vraaaaaaaaaaaaaaaaaaaaaaaa&code=123456`), 400, codeInvalidJSON, ""},
		{"trailing garbage", of(`{` + id + `,"code":"123456"}x`), 400, codeInvalidJSON, ""},
		{"two objects", of(`{` + id + `,"code":"123456"}{}`), 400, codeInvalidJSON, ""},
		{"byte order mark", of("\xef\xbb\xbf{" + id + `,"code":"123456"}`), 400, codeInvalidJSON, ""},
		{"invalid UTF-8", of("{" + id + ",\"code\":\"12345\xff\"}"), 400, codeInvalidJSON, ""},
		{"no fields", of(`{}`), 400, codeMissingField, "requestId"},
		{"no id", of(`{"code":"123456"}`), 400, codeMissingField, "requestId"},
		{"id in another case", of(`{"RequestId":"vraaaaaaaaaaaaaaaaaaaaaaaa","code":"123456"}`), 400, codeMissingField, "requestId"},
		{"id in place of requestId", of(`{"id":"vraaaaaaaaaaaaaaaaaaaaaaaa","code":"123456"}`), 400, codeMissingField, "requestId"},
		{"no code", of(`{` + id + `}`), 400, codeMissingField, "code"},
		{"code in another case", of(`{` + id + `,"Code":"123456"}`), 400, codeMissingField, "code"},
		{"in the query", func() request {
			r := of(`{}`)
			r.target += "?requestId=vraaaaaaaaaaaaaaaaaaaaaaaa&code=123456"
			return r
		}(), 400, codeInvalidParameter, ""},
		{"number for id", of(`{"requestId":1,"code":"123456"}`), 400, codeInvalidType, "requestId"},
		{"null for id", of(`{"requestId":null,"code":"123456"}`), 400, codeInvalidType, "requestId"},
		{"array for id", of(`{"requestId":["vraaaaaaaaaaaaaaaaaaaaaaaa"],"code":"123456"}`), 400, codeInvalidType, "requestId"},
		{"id twice", of(`{` + id + `,` + id + `,"code":"123456"}`), 400, codeInvalidJSON, "requestId"},
		{"id twice by escape", of(`{` + id + `,"\u0072equestId":"b","code":"123456"}`), 400, codeInvalidJSON, "requestId"},
		{"half a pair in id", of(`{"requestId":"\ud800","code":"123456"}`), 400, codeInvalidJSON, "requestId"},
		{"number for code", code(`123456`), 400, codeInvalidType, "code"},
		{"null for code", code(`null`), 400, codeInvalidType, "code"},
		{"boolean for code", code(`true`), 400, codeInvalidType, "code"},
		{"array for code", code(`["123456","123457"]`), 400, codeInvalidType, "code"},
		{"object for code", code(`{"digits":"123456"}`), 400, codeInvalidType, "code"},
		{"code twice", code(`"123456","code":"123457"`), 400, codeInvalidJSON, "code"},
		{"code twice by escape", code(`"123456","c\u006fde":"123457"`), 400, codeInvalidJSON, "code"},
		{"half a pair in code", code(`"12345\udc00"`), 400, codeInvalidJSON, "code"},
		{"empty code", code(`""`), 400, invalid, "code"},
		{"spaces alone", code(`"      "`), 400, invalid, "code"},
		{"five digits", code(`"12345"`), 400, invalid, "code"},
		{"seven digits", code(`"1234567"`), 400, invalid, "code"},
		{"several codes", code(`"123456 123457"`), 400, invalid, "code"},
		{"letters", code(`"12345a"`), 400, invalid, "code"},
		{"sign", code(`"+123456"`), 400, invalid, "code"},
		{"dot", code(`"123.456"`), 400, invalid, "code"},
		{"NUL", code(`"123456\u0000"`), 400, invalid, "code"},
		{"wildcard", code(`"%%%%%%"`), 400, invalid, "code"},
		{"21 characters", code(`"q0N2mB7c4xkTz1V9aLrW8"`), 400, invalid, "code"},
		{"23 characters", code(`"q0N2mB7c4xkTz1V9aLrW8QA"`), 400, invalid, "code"},
		{"bits that no code has", code(`"q0N2mB7c4xkTz1V9aLrW8R"`), 400, invalid, "code"},
		{"padding", code(`"q0N2mB7c4xkTz1V9aLrW8Q=="`), 400, invalid, "code"},
		{"the other base64", code(`"q0N2mB7c4xkTz1V9aLrW/Q"`), 400, invalid, "code"},
		{"line feed in the code of a return", code(`"q0N2mB7c4xkTz1V9aLrW8Q\n"`), 400, invalid, "code"},
		{"the code of the message", code(`"7KQ2-9XWM-4RTB-C0V8"`), 400, invalid, "code"},
		{"7,000 digits", code(`"` + strings.Repeat("1", 7000) + `"`), 400, invalid, "code"},
		{"too large", of(`{` + id + `,"code":"123456"}` + strings.Repeat(" ", maxBodyBytes)), 413, codeBodyTooLarge, ""},
		{"too large, in chunks", chunked, 413, codeBodyTooLarge, ""},
		{"compressed", zipped, 415, codeContentEncoding, "Content-Encoding"},
		{"as a form", code(`"123456"`).withHeader("Content-Type", "application/x-www-form-urlencoded"), 415, codeMediaType, "Content-Type"},
		{"of no type", code(`"123456"`).withHeader("Content-Type"), 415, codeMediaType, "Content-Type"},
		{"without the scope", confirmRequestWith(keyStatus, `{`+id+`,"code":"123456"}`), 403, codeInsufficientScope, ""},
		{"by an expired key", confirmRequestWith(keyExpired, `{`+id+`,"code":"123456"}`), 401, codeExpiredKey, ""},
		{"by no key", confirmRequestWith("unknown", `{`+id+`,"code":"123456"}`), 401, codeUnknownKey, ""},
	}
	expectEach(t, rows)
}

// Confirm takes its try from the reads of its key, and one that is refused so counts nothing.
func TestConfirm_countsAsARead(t *testing.T) {
	w := newSessionWorld(t)
	b := w.beginSession("order-1")
	w.proveNumber(b)
	w.changeSettings(func(s *settings.Settings) { s.Limits.PerKey = verification.Rate{Requests: 1, Period: time.Hour} })
	const most = int(minStatusRate * statusBurstTime / time.Second)
	for i := range most - 1 {
		if i%2 == 0 {
			w.g.Expect(w.do(statusRequest(keyAll, "id=x")).status).To(Equal(404))
			continue
		}
		expectRefusal(w.g, w.do(confirmRequestWith(keyAll, `{"requestId":"x","code":"123456"}`)), 404, verification.CodeNotFound, "")
	}
	wrong := confirmRequestWith(keyAll, fmt.Sprintf(`{"requestId":%q,"code":%q}`, b.id, b.wrongDigits(1)))
	expectRefusal(w.g, w.do(wrong), 422, verification.CodeWrongCode, "code")
	calls := w.store.calls.Load()
	for range verification.MaxConfirmTries {
		a := w.do(wrong)
		expectRefusal(w.g, a, 429, verification.CodeRateLimited, "")
		w.g.Expect(a.joinedHeader("Retry-After")).To(Equal("1"))
		w.g.Expect(a.header).NotTo(HaveKey("Ratelimit"), "it is not a limit on inits")
	}
	expectRefusal(w.g, w.do(statusRequest(keyAll, "id=x")), 429, verification.CodeRateLimited, "")
	w.g.Expect(w.store.calls.Load()).To(Equal(calls), "the store must not be called")
	w.g.Expect(w.do(confirmFor(b.id, b.digits)).status).To(Equal(200), "another key is not affected, and one try was counted")
}

func TestConfirm_suspendedProject(t *testing.T) {
	w := newSessionWorld(t)
	b := w.beginSession("order-1")
	w.proveNumber(b)
	w.changeSettings(func(s *settings.Settings) { s.Suspended = true })
	w.g.Expect(w.do(confirmFor(b.id, b.digits)).status).To(Equal(200), "started verifications can still end")
}

// Without the secret of the messenger that proved the number no code can be checked, and a right one is not counted as wrong.
func TestConfirm_secretIsGone(t *testing.T) {
	w := newSessionWorld(t)
	b := w.beginSession("order-1")
	w.proveNumber(b)
	for name, change := range map[string]func(*settings.Settings){
		"unusable":   func(s *settings.Settings) { s.WhatsApp = &settings.WhatsApp{PhoneNumber: "+15550001111"} },
		"no account": func(s *settings.Settings) { s.WhatsApp = nil },
	} {
		w.changeSettings(change)
		for range verification.MaxConfirmTries {
			a := w.do(confirmFor(b.id, b.digits))
			expectRefusal(w.g, a, 503, verification.CodeChannelNotReady, "")
			w.g.Expect(a.joinedHeader("Retry-After")).To(Equal("30"), name)
		}
	}
	w.changeSettings(func(s *settings.Settings) { s.WhatsApp = liveSettings().WhatsApp })
	w.g.Expect(w.do(confirmFor(b.id, b.digits)).status).To(Equal(200))
}

func TestConfirm_storeTimeout(t *testing.T) {
	inBubble(t, func(b *bubble) {
		hang := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		b.store.before.Store(&hang)
		r := httptest.NewRequestWithContext(b.t.Context(), http.MethodPost, pathConfirm, strings.NewReader(`{"requestId":"vraaaaaaaaaaaaaaaaaaaaaaaa","code":"123456"}`))
		r.Header.Set("Authorization", "Bearer "+keyInit)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		b.api.ServeHTTP(w, r)
		b.g.Expect(time.Since(b.start)).To(Equal(storeTimeout))
		b.g.Expect(w.Code).To(Equal(http.StatusServiceUnavailable))
		b.g.Expect(w.Body.String()).To(ContainSubstring(string(verification.CodeStoreUnavailable)))
	})
}

// Buffers are reused, so a code must not stay in memory until the next request.
func TestConfirm_clearsTheBody(t *testing.T) {
	w := newSessionWorld(t)
	for range 50 { // The pool may sometimes return another buffer.
		buffer := new([maxBodyBytes + 1]byte)
		bodies.Put(buffer)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, pathConfirm, strings.NewReader(`{"requestId":"vraaaaaaaaaaaaaaaaaaaaaaaa","code":"123456"}`))
		r.Header.Set("Authorization", "Bearer "+keyInit)
		r.Header.Set("Content-Type", "application/json")
		w.api.ServeHTTP(httptest.NewRecorder(), r)
		w.g.Expect(bytes.Count(buffer[:], []byte{0})).To(Equal(len(buffer)))
	}
}

// A client that waits for the status learns of the confirmation at once.
func TestConfirm_endsALongPoll(t *testing.T) {
	w := newSessionWorld(t)
	b := w.beginSession("order-1")
	w.proveNumber(b)
	ended := make(chan answer, 1)
	go func() { ended <- w.do(statusRequest(keyStatus, "wait=30s&id="+b.id)) }()
	w.g.Eventually(w.gatherMetrics).Should(ContainSubstring("phoneproof_http_long_polls 1\n"))
	w.g.Expect(w.do(confirmFor(b.id, b.digits)).status).To(Equal(200))
	var polled answer
	w.g.Eventually(ended).Should(Receive(&polled)) // its clock stands still
	w.g.Expect(polled.fields).To(And(HaveKeyWithValue("status", "VERIFIED"), HaveKeyWithValue("assurance", "session")))
}
