package httpapi

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/verification/codesender"
)

// keyCodes is a key that may have codes sent.
const keyCodes = "the-key-that-may-have-codes-sent-0123456"

// codeSlots is how many codes a test sends at most.
const codeSlots = 9

// codesWorld is a sessionWorld that sends codes to Germany and Mexico.
type codesWorld struct {
	*sessionWorld
	sender *codesender.Sender
	loop   func(id string)
}

func newCodesWorld(t *testing.T) *codesWorld {
	t.Helper()
	w := &codesWorld{sessionWorld: newSessionWorld(t), sender: codesender.New(codeSlots)}
	w.canaries.add(keyCodes, keyTest)
	w.service.Sender = w.sender
	w.changeSettings(func(s *settings.Settings) {
		both := settings.ScopeInit | settings.ScopeDeliver
		s.Keys = keysOf(
			settings.Key{Name: "codes", Hash: sha256.Sum256([]byte(keyCodes)), Scopes: both | settings.ScopeStatus},
			settings.Key{Name: "staging", Hash: sha256.Sum256([]byte(keyTest)), Scopes: both | settings.ScopeStatus, Test: true})
		account := *s.WhatsApp
		account.AccessToken = settings.NewSecret([]byte("EAAB"))
		account.Codes = &settings.Codes{Countries: map[phone.Region]bool{"DE": true, "MX": true, "GB": true}}
		s.WhatsApp = &account
	})
	w.loop = newLoop(t, w.harness, w.clock)
	t.Cleanup(func() {
		w.g.Expect(w.sender.CountFree()+len(w.sender.ListSent())).To(Equal(codeSlots), "each slot is used or freed")
	})
	return w
}

// codeFor returns an init with deliver. more are further fields.
func codeFor(key, number, more string) request {
	return initRequest(key, fmt.Sprintf(`{"phoneNumber":%q,"deliver":"CODE"%s}`, number, more))
}

const withSubject = `,"subject":"user-1"`

// beginCode starts a request and returns its id and the digits that are sent.
func (w *codesWorld) beginCode() (id, digits string) {
	w.t.Helper()
	a := w.do(codeFor(keyCodes, w.number, withSubject))
	w.g.Expect(a.status).To(Equal(http.StatusOK), "%s", a.body)
	stored, err := w.store.Store.Read(w.t.Context(), a.stringField("requestId"))
	w.g.Expect(err).NotTo(HaveOccurred())
	code, ok := w.settings.Load().DeliveredCode(&stored, w.clock.Now())
	w.g.Expect(ok).To(BeTrue())
	w.digits = append(w.digits, code.Reveal())
	return stored.ID, code.Reveal()
}

func (w *codesWorld) recordResult(id string, state verification.CodeState, reason string) {
	w.t.Helper()
	stored, err := w.store.Store.Read(w.t.Context(), id)
	w.g.Expect(err).NotTo(HaveOccurred())
	result := verification.CodeResult{State: state, Reason: reason}
	w.g.Expect(w.service.RecordCodeResult(w.t.Context(), id, stored.CreatedAt, result, w.events)).To(Succeed())
}

// A refused code is neither stored nor sent, and a link goes on.
func TestInit_deliverRefusals(t *testing.T) {
	w := newCodesWorld(t)
	const german, american = "+4915123456789", "+12015550123"
	w.canaries.add(german[1:], american[1:])
	for name, row := range map[string]struct {
		request request
		status  int
		code    verification.ErrorCode
		field   string
	}{
		"small letters":           {initRequest(keyCodes, `{"phoneNumber":"`+german+`","deliver":"code","subject":"a"}`), 400, verification.CodeInvalidDeliver, "deliver"},
		"empty":                   {initRequest(keyCodes, `{"phoneNumber":"`+german+`","deliver":"","subject":"a"}`), 400, verification.CodeInvalidDeliver, "deliver"},
		"array":                   {initRequest(keyCodes, `{"phoneNumber":"`+german+`","deliver":["CODE"],"subject":"a"}`), 400, codeInvalidType, "deliver"},
		"twice":                   {initRequest(keyCodes, `{"phoneNumber":"`+german+`","deliver":null,"deliver":"CODE","subject":"a"}`), 400, codeInvalidJSON, "deliver"},
		"Telegram":                {codeFor(keyCodes, german, `,"method":"TELEGRAM","subject":"a"`), 400, verification.CodeCodesNotConfigured, ""},
		"POSSESSION":              {codeFor(keyCodes, german, `,"assurance":"POSSESSION","subject":"a"`), 400, verification.CodeInvalidAssurance, "assurance"},
		"without the scope":       {codeFor(keyInit, german, withSubject), 403, codeInsufficientScope, "deliver"},
		"without a subject":       {codeFor(keyCodes, german, ""), 400, codeMissingField, "subject"},
		"null for the subject":    {codeFor(keyCodes, german, `,"subject":null`), 400, codeMissingField, "subject"},
		"another country":         {codeFor(keyCodes, american, withSubject), 400, verification.CodeCountryRefused, "phoneNumber"},
		"same code, Jersey":       {codeFor(keyCodes, "+447797712345", withSubject), 400, verification.CodeCountryRefused, "phoneNumber"},
		"VoIP":                    {codeFor(keyCodes, "+445612345678", withSubject), 400, verification.CodeCountryRefused, "phoneNumber"},
		"shared cost":             {codeFor(keyCodes, "+491801123456", withSubject), 400, verification.CodeCountryRefused, "phoneNumber"},
		"of no country":           {codeFor(keyCodes, "+870773111632", withSubject), 400, verification.CodeCountryRefused, "phoneNumber"},
		"a test key, no subject":  {codeFor(keyTest, numberOf(verification.TestVerifiedAtOnce), ""), 400, codeMissingField, "subject"},
		"a test key, real number": {codeFor(keyTest, german, withSubject), 400, verification.CodeNoTestNumber, "phoneNumber"},
	} {
		for _, r := range []request{row.request, row.request.withHeader("Idempotency-Key", name)} {
			a := w.do(r.markInvalid())
			w.g.Expect(a.status).To(Equal(row.status), "%s: %s", name, a.body)
			expectRefusal(w.g, a, row.status, row.code, row.field)
		}
	}
	challenge := w.do(codeFor(keyInit, german, "")).joinedHeader("WWW-Authenticate")
	w.g.Expect(challenge).To(Equal(`Bearer realm="phoneproof", error="insufficient_scope", scope="Deliver"`), "the scope comes before what the project has")
	page, err := w.store.Store.List(t.Context(), verification.ListQuery{Limit: 1})
	w.g.Expect(err).NotTo(HaveOccurred())
	w.g.Expect(page.Requests).To(BeEmpty())
	w.g.Expect(w.sender.ListSent()).To(BeEmpty())
	for _, rest := range []string{`,"deliver":null`, `,"DELIVER":1`, `,"Deliver":"CODE"`} {
		a := w.do(initRequest(keyInit, `{"phoneNumber":"`+american+`"`+rest+`}`))
		w.g.Expect(a.fields).To(HaveLen(5), "a link, as it always was: %s", a.body)
	}
	w.changeSettings(func(s *settings.Settings) {
		account := *s.WhatsApp
		account.Codes = nil
		s.WhatsApp = &account
	})
	for _, key := range []string{keyCodes, keyTest} {
		a := w.do(codeFor(key, numberOf(verification.TestVerifiedAtOnce), ""))
		expectRefusal(w.g, a, 400, verification.CodeCodesNotConfigured, "")
	}
}

// The request is of level SESSION, one code is sent for it, and all its answers have codeLength.
func TestInit_deliver(t *testing.T) {
	for _, number := range []string{"+4915123456789", "+5215512345678", "+525512345678"} {
		for _, assurance := range []string{"", `,"assurance":"SESSION"`} {
			w := newCodesWorld(t)
			w.canaries.add(number[1:])
			a := w.do(codeFor(keyCodes, number, withSubject+assurance))
			w.g.Expect(a.fields).To(And(HaveLen(6), HaveKeyWithValue("codeLength", 8.0), HaveKey("waLink"), HaveKey("expectedText")), "%s", a.body)
			id := a.stringField("requestId")
			w.g.Expect(w.sender.ListSent()).To(HaveExactElements(HaveField("ID", id)))
			stored, err := w.store.Store.Read(t.Context(), id)
			w.g.Expect(err).NotTo(HaveOccurred())
			w.g.Expect(stored.Terms).To(Equal(verification.Terms{Level: verification.LevelSession, Deliver: verification.DeliverCode}))
			w.g.Expect(stored.Phone.E164()).To(Equal(number))
		}
	}
}

// Telegram sends what spec.telegram.codes allows, with digits under the bot's token and the tries of every code.
func TestInit_deliverByTelegram(t *testing.T) {
	w := newCodesWorld(t)
	w.changeSettings(func(s *settings.Settings) {
		account := *s.Telegram
		account.BotToken = settings.NewSecret([]byte("the token of the bot"))
		account.Codes = &settings.GatewayCodes{Token: settings.NewSecret([]byte("AAAA")), Countries: map[phone.Region]bool{"DE": true}}
		s.Telegram = &account
	})
	const telegram = `,"method":"TELEGRAM"`
	a := w.do(codeFor(keyCodes, "+5215512345678", telegram+withSubject))
	expectRefusal(w.g, a, 400, verification.CodeCountryRefused, "phoneNumber")
	a = w.do(codeFor(keyCodes, w.number, telegram+withSubject))
	w.g.Expect(a.fields).To(And(HaveLen(6), HaveKeyWithValue("codeLength", 8.0), HaveKey("tgLink")), "%s", a.body)
	id := a.stringField("requestId")
	w.g.Expect(w.sender.ListSent()).To(HaveExactElements(And(HaveField("ID", id), HaveField("Method", verification.Telegram))))
	stored, err := w.store.Store.Read(t.Context(), id)
	w.g.Expect(err).NotTo(HaveOccurred())
	space := verification.NewCodeSpace(w.settings.Load().Project)
	underApp := space.DeliveredCode(w.settings.Load().WhatsApp.AppSecret.Current(), &stored)
	underBot := space.DeliveredCode(w.settings.Load().Telegram.BotToken.Current(), &stored)
	w.digits = append(w.digits, underApp.Reveal(), underBot.Reveal())
	expectRefusal(w.g, w.do(confirmAs(keyCodes, id, underApp.Reveal())), 422, verification.CodeWrongCode, "code")
	a = w.do(confirmAs(keyCodes, id, underBot.Reveal()))
	w.g.Expect(a.fields).To(And(HaveKeyWithValue("status", "VERIFIED"), HaveKeyWithValue("via", "CODE")), "%s", a.body)
}

// A retry gets the answer of its first try, whatever became of the project, and sends nothing. Another deliver is another call.
func TestInit_deliverAgain(t *testing.T) {
	w := newCodesWorld(t)
	retry := codeFor(keyCodes, w.number, withSubject).withHeader("Idempotency-Key", "order-1")
	first := w.do(retry)
	w.g.Expect(first.status).To(Equal(http.StatusOK))
	for name, change := range map[string]func(*settings.WhatsApp){
		"nothing":     func(*settings.WhatsApp) {},
		"no codes":    func(a *settings.WhatsApp) { a.Codes = nil },
		"no country":  func(a *settings.WhatsApp) { a.Codes = &settings.Codes{} },
		"all is busy": func(*settings.WhatsApp) { w.sender.SetFree(0) },
	} {
		before := w.settings.Load()
		w.changeSettings(func(s *settings.Settings) {
			account := *s.WhatsApp
			change(&account)
			s.WhatsApp = &account
		})
		again := w.do(retry)
		w.g.Expect(again.fields).To(Equal(first.fields), name)
		w.settings.Store(before)
		w.sender.SetFree(codeSlots - 1)
	}
	w.g.Expect(w.sender.ListSent()).To(HaveLen(1))
	link := initAs(keyCodes, w.number, "user-1").withHeader("Idempotency-Key", "order-1")
	expectRefusal(w.g, w.do(link), 422, verification.CodeIdempotencyKeyReused, "Idempotency-Key")
	asSession := initRequest(keyCodes, fmt.Sprintf(`{"phoneNumber":%q,"assurance":"SESSION"%s}`, w.number, withSubject))
	expectRefusal(w.g, w.do(asSession.withHeader("Idempotency-Key", "order-1")), 422, verification.CodeIdempotencyKeyReused, "Idempotency-Key")
	w.g.Expect(w.do(link.withHeader("Idempotency-Key", "order-2")).status).To(Equal(200))
	expectRefusal(w.g, w.do(retry.withHeader("Idempotency-Key", "order-2")), 422, verification.CodeIdempotencyKeyReused, "Idempotency-Key")
	w.g.Expect(w.sender.ListSent()).To(HaveLen(1))
}

// The limits of codes refuse with a name of their own, and links go on.
func TestInit_codesLimitedAndBusy(t *testing.T) {
	w := newCodesWorld(t)
	w.changeSettings(func(s *settings.Settings) {
		s.Limits.Codes.PerDay = verification.Rate{Requests: 2, Period: 24 * time.Hour}
	})
	w.beginCode()
	a := w.do(codeFor(keyCodes, w.number, withSubject))
	expectRefusal(w.g, a, 429, verification.CodeCodesLimited, "phoneNumber")
	w.g.Expect(a.joinedHeader("Retry-After")).To(Equal("60"))
	w.g.Expect(a.joinedHeader("RateLimit")).To(Equal(`"codesPhoneNumber";r=0;t=60`))
	w.clock.Step(time.Minute)
	w.beginCode()
	a = w.do(codeFor(keyCodes, w.newNumber(2), withSubject))
	expectRefusal(w.g, a, 429, verification.CodeCodesLimited, "")
	w.g.Expect(a.joinedHeader("RateLimit")).To(Equal(`"codes";r=0;t=86340`))
	w.g.Expect(a.header).NotTo(HaveKey("Ratelimit-Policy"), "the project has no limits on init")
	w.g.Expect(w.do(initFor(keyCodes, w.newNumber(2))).status).To(Equal(200), "a link")
	w.g.Expect(w.gatherMetrics()).To(And(
		ContainSubstring(`phoneproof_http_rate_limited_total{limit="codes"} 1`+"\n"),
		ContainSubstring(`phoneproof_http_rate_limited_total{limit="codesPhoneNumber"} 1`+"\n"),
		ContainSubstring(`phoneproof_http_inits_total{result="codes_limited"} 2`+"\n")))

	w.sender.SetFree(0)
	a = w.do(codeFor(keyCodes, w.newNumber(3), withSubject))
	expectRefusal(w.g, a, 503, verification.CodeCodesBusy, "")
	w.g.Expect(a.joinedHeader("Retry-After")).To(Equal("2"))
	w.g.Expect(w.sender.ListSent()).To(HaveLen(2))
	w.sender.SetFree(codeSlots - 2)
}

// The delivered digits verify the request, and its answers show by what. Links show nothing of it.
func TestConfirm_deliveredDigits(t *testing.T) {
	w := newCodesWorld(t)
	id, digits := w.beginCode()
	w.recordResult(id, verification.CodeSent, "undeliverable")
	w.g.Expect(w.readStatus(id).fields).NotTo(HaveKey("codeDelivery"), "when a messenger answered may depend on the number")
	w.clock.Step(verification.CodeSendTime)
	sent := w.readStatus(id)
	w.g.Expect(sent.fields).To(Equal(map[string]any{
		"status": "PENDING", "phoneNumber": w.number, "expiresAt": "2026-03-01T10:10:00.000Z", "codeDelivery": "SENT",
	}))
	expectRefusal(w.g, w.do(confirmFor(id, digits[:7])), 400, verification.CodeInvalidCode, "code")
	expectRefusal(w.g, w.do(confirmFor(id, digits[:6])), 409, verification.CodeNotProven, "")
	wrong := w.do(confirmFor(id, digits[1:]+digits[:1]))
	expectRefusal(w.g, wrong, 422, verification.CodeWrongCode, "code")
	w.g.Expect(wrong.errorField("message")).To(HaveSuffix("left: 2."), "neither of the two before was a try")
	w.clock.Step(time.Minute - verification.CodeSendTime)
	a := w.do(confirmFor(id, digits[:4]+" "+digits[4:]))
	w.g.Expect(a.fields).To(Equal(map[string]any{
		"status": "VERIFIED", "phoneNumber": w.number, "actualPhoneNumber": w.number, "expiresAt": "2026-03-01T10:10:00.000Z",
		"verifiedAt": "2026-03-01T10:01:00.000Z", "assurance": "session", "via": "CODE", "codeDelivery": "SENT",
	}))
	w.g.Expect(w.readStatus(id).body).To(Equal(a.body))

	one := w.do(readRequest(keyRead, id))
	w.g.Expect(one.fields).To(And(HaveKeyWithValue("via", "CODE"), HaveKeyWithValue("codeDelivery", "SENT"), HaveKeyWithValue("codeReason", "undeliverable")))
	listed := w.do(listRequest(keyRead, ""))
	w.g.Expect(string(listed.body)).To(And(ContainSubstring(`"via":"CODE"`), ContainSubstring(`"codeDelivery":"SENT"`), Not(ContainSubstring("undeliverable"))))
	again := w.do(changeRequest(keyRedeliver, pathRedeliver, id))
	w.g.Expect(again.status).To(Equal(http.StatusAccepted))
	w.g.Expect(again.fields).NotTo(HaveKey("codeReason"), "the key has no scope Read")
}

// Who has WhatsApp does not show: only what does not depend on the number is NOT_SENT, and UNKNOWN comes with the time alone.
func TestStatus_codeDelivery(t *testing.T) {
	w := newCodesWorld(t)
	id, _ := w.beginCode()
	w.g.Expect(w.readStatus(id).fields).NotTo(HaveKey("codeDelivery"))
	w.clock.Step(verification.CodeUnknownAfter - time.Millisecond)
	w.g.Expect(w.readStatus(id).fields).NotTo(HaveKey("codeDelivery"))
	w.clock.Step(time.Millisecond)
	w.g.Expect(w.readStatus(id).fields).To(And(HaveKeyWithValue("codeDelivery", "UNKNOWN"), Not(HaveKey("hint"))))
	w.recordResult(id, verification.CodeSent, "undeliverable")
	w.g.Expect(w.readStatus(id).fields).To(And(HaveKeyWithValue("codeDelivery", "SENT"), Not(HaveKey("hint"))))
	w.recordResult(id, verification.CodeNotSent, "payment")
	w.g.Expect(w.readStatus(id).fields).To(And(HaveKeyWithValue("codeDelivery", "SENT"), Not(HaveKey("hint"))))

	w.clock.Step(time.Minute)
	id, _ = w.beginCode()
	w.recordResult(id, verification.CodeNotSent, "payment")
	w.g.Expect(w.readStatus(id).fields).To(And(HaveKeyWithValue("codeDelivery", "NOT_SENT"), HaveKeyWithValue("hint", "CODE_NOT_SENT")))
	canceled := w.do(changeRequest(keyCodes, pathCancel, id))
	w.g.Expect(canceled.fields).To(And(HaveKeyWithValue("hint", "CANCELED"), HaveKeyWithValue("codeDelivery", "NOT_SENT"), Not(HaveKey("via"))))
}

// TestTestKey_codes walks through the outcomes of codes, as a client does. Nothing is sent.
func TestTestKey_codes(t *testing.T) {
	w := newCodesWorld(t)
	for outcome, want := range map[verification.TestOutcome]struct{ delivery, hint string }{
		verification.TestExpired:     {"SENT", ""},
		verification.TestCodeNotSent: {"NOT_SENT", "CODE_NOT_SENT"},
		verification.TestCodeUnknown: {"UNKNOWN", ""},
	} {
		a := w.do(codeFor(keyTest, numberOf(outcome), withSubject))
		w.g.Expect(a.fields).To(And(HaveKeyWithValue("test", true), HaveKeyWithValue("codeLength", 8.0)), "%s", a.body)
		id := a.stringField("requestId")
		w.loop(id)
		status := w.do(statusRequest(keyTest, "id="+id))
		w.g.Expect(status.fields).To(HaveKeyWithValue("codeDelivery", want.delivery), string(outcome))
		w.g.Expect(status.stringField("hint")).To(Equal(want.hint), string(outcome))
		zeros := confirmAs(keyTest, id, verification.TestDelivered)
		if outcome == verification.TestCodeNotSent {
			for range verification.MaxDeliveredTries {
				expectRefusal(w.g, w.do(zeros), 422, verification.CodeWrongCode, "code")
			}
			expectRefusal(w.g, w.do(zeros), 409, verification.CodeRequestExpired, "")
			continue
		}
		expectRefusal(w.g, w.do(confirmAs(keyTest, id, strings.Repeat("1", 8))), 422, verification.CodeWrongCode, "code")
		w.g.Expect(w.do(zeros).fields).To(And(
			HaveKeyWithValue("status", "VERIFIED"), HaveKeyWithValue("via", "CODE"), HaveKeyWithValue("test", true)), string(outcome))
	}
	limited := numberOf(verification.TestCodesLimited)
	expectRefusal(w.g, w.do(codeFor(keyTest, limited, withSubject)), 429, verification.CodeCodesLimited, "")
	w.g.Expect(w.do(initFor(keyTest, limited)).status).To(Equal(200))
	w.g.Expect(w.sender.ListSent()).To(BeEmpty())
}
