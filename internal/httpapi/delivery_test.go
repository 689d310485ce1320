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
)

// deliverFor returns a delivery. more are further fields.
func deliverFor(key, number, code, more string) request {
	r := initRequest(key, fmt.Sprintf(`{"phoneNumber":%q,"code":%q%s}`, number, code, more))
	r.target = pathDeliver
	return r
}

// TestDeliver sends a code once, however often and in whatever form it is asked for, and shows it to the scope Read alone.
func TestDeliver(t *testing.T) {
	w := newCodesWorld(t)
	w.digits = append(w.digits, "482915")
	first := w.do(deliverFor(keyCodes, w.number, "482915", `,"locale":"es-AR","subject":"user-1"`))
	w.g.Expect(first.status).To(Equal(http.StatusAccepted), "%s", first.body)
	id := first.stringField("deliveryId")
	w.g.Expect(first.fields).To(HaveLen(1))
	spaced := w.number[:3] + " " + w.number[3:]
	for name, retry := range map[string]request{
		"the same":               deliverFor(keyCodes, w.number, "482915", `,"locale":"es","subject":"user-1"`),
		"another form and words": deliverFor(keyCodes, spaced, "482915", `,"method":"WHATSAPP","locale":null`),
	} {
		again := w.do(retry)
		w.g.Expect([]any{again.status, again.stringField("deliveryId")}).To(Equal([]any{202, id}), name)
	}
	w.g.Expect(w.sender.ListGiven()).To(Equal([]string{"482915"}))
	stored, err := w.store.Store.Read(t.Context(), id)
	w.g.Expect(err).NotTo(HaveOccurred())
	w.g.Expect(w.sender.ListSent()).To(Equal([]verification.Request{stored}))
	w.g.Expect(stored.Terms).To(Equal(verification.Terms{Deliver: verification.DeliverGiven}))
	w.g.Expect(stored.Locale).To(Equal("es-AR"), "that of the template, which the page's texts may lack")

	w.recordResult(id, verification.CodeSent, "undeliverable")
	one := w.do(readRequest(keyRead, id))
	w.g.Expect(one.fields).To(Equal(map[string]any{
		"requestId": id, "kind": "DELIVERY", "status": "EXPIRED", "phoneNumber": w.number, "method": "WHATSAPP", "apiKey": "codes", "locale": "es-AR",
		"createdAt": "2026-03-01T10:00:00.000Z", "expiresAt": "2026-03-01T10:10:00.000Z", "codeDelivery": "SENT", "codeReason": "undeliverable",
	}))
	for query, listed := range map[string]int{"": 0, "status=EXPIRED": 0, "kind=DELIVERY": 1, "kind=DELIVERY&status=PENDING": 0} {
		w.g.Expect(w.do(listRequest(keyRead, query)).fields["requests"]).To(HaveLen(listed), query)
	}
	for kind, found := range map[string]int{"": 0, `,"kind":"DELIVERY"`: 1} {
		w.g.Expect(w.do(findRequest(keyRead, `{"phoneNumber":"`+w.number+`"`+kind+`}`)).fields["requests"]).To(HaveLen(found), "find %s", kind)
	}
	expectRefusal(w.g, w.do(listRequest(keyRead, "kind=delivery").markInvalid()), 400, codeInvalidParameter, "kind")
	for name, r := range map[string]request{
		"status": statusRequest(keyCodes, "id="+id), "confirm": confirmAs(keyCodes, id, "482915"),
		"cancel": changeRequest(keyCodes, pathCancel, id), "redeliver": changeRequest(keyRedeliver, pathRedeliver, id),
	} {
		a := w.do(r)
		w.g.Expect([]any{a.status, a.errorField("code")}).To(Equal([]any{404, "request_not_found"}), name)
	}

	expectRefusal(w.g, w.do(codeFor(keyCodes, w.number, withSubject)), 429, verification.CodeCodesLimited, "phoneNumber")
	limited := w.do(deliverFor(keyCodes, w.number, "482916", ""))
	expectRefusal(w.g, limited, 429, verification.CodeCodesLimited, "phoneNumber")
	w.g.Expect(limited.joinedHeader("Retry-After")).To(Equal("60"))

	keyed := deliverFor(keyCodes, w.newNumber(2), "4829", "").withHeader("Idempotency-Key", "order-1")
	second := w.do(keyed)
	w.g.Expect(second.status).To(Equal(202))
	w.g.Expect(w.do(keyed).fields).To(Equal(second.fields))
	other := deliverFor(keyCodes, w.newNumber(2), "4820", "").withHeader("Idempotency-Key", "order-1")
	expectRefusal(w.g, w.do(other), 422, verification.CodeIdempotencyKeyReused, "Idempotency-Key")
	expectRefusal(w.g, w.do(keyed.withHeader("Idempotency-Key", "").markInvalid()), 400, verification.CodeInvalidIdempotency, "Idempotency-Key")
	link := w.do(initFor(keyCodes, w.newNumber(3)).withHeader("Idempotency-Key", "order-1"))
	w.g.Expect(link.status).To(Equal(200), "a key of deliveries is none of verifications")
	w.changeSettings(func(s *settings.Settings) { s.Suspended = true })
	w.g.Expect(w.do(keyed).status).To(Equal(202))
	expectRefusal(w.g, w.do(deliverFor(keyCodes, w.newNumber(4), "4829", "")), 503, codeSuspended, "")
	w.g.Expect(w.sender.ListGiven()).To(Equal([]string{"482915", "4829"}))
}

// While the limits of a number refuse other codes, an answer shows that a code is the one that was delivered: tries of codes are few.
func TestDeliver_isNoOracle(t *testing.T) {
	w := newCodesWorld(t)
	w.digits = append(w.digits, "482915")
	right := deliverFor(keyCodes, w.number, "482915", "")
	w.g.Expect(w.do(right).status).To(Equal(202))
	answers := map[string]bool{}
	for guess := range 10 {
		a := w.do(deliverFor(keyCodes, w.number, fmt.Sprintf("48291%d", guess), ""))
		answers[fmt.Sprint(a.status, a.errorField("code"), a.errorField("field"))] = true
		if guess < 4 {
			w.g.Expect(a.status).To(Equal(429), "it is another code")
		}
	}
	w.g.Expect(answers).To(HaveLen(1), "the right one is refused as the others are: %v", answers)
	w.g.Expect(w.do(deliverFor(keyCodes, w.newNumber(2), "482915", "")).status).To(Equal(202), "others get theirs")
	w.clock.Step(retryDelivery)
	w.g.Expect(w.do(right).status).To(Equal(202))
	w.g.Expect(w.do(right).status).To(Equal(429))
}

// Without the token to send codes with nothing is stored, sent or counted.
func TestDeliver_withoutToken(t *testing.T) {
	w := newCodesWorld(t)
	changeToken := func(token string) {
		w.changeSettings(func(s *settings.Settings) {
			account := *s.WhatsApp
			account.AccessToken = settings.NewSecret([]byte(token))
			s.WhatsApp = &account
		})
	}
	changeToken("")
	expectRefusal(w.g, w.do(codeFor(keyCodes, w.number, withSubject)), 503, verification.CodeChannelNotReady, "")
	expectRefusal(w.g, w.do(deliverFor(keyCodes, w.number, "4829", "")), 503, verification.CodeChannelNotReady, "")
	changeToken("EAAB")
	w.g.Expect(w.do(deliverFor(keyCodes, w.number, "4829", "")).status).To(Equal(202))
}

// Telegram takes 4 to 8 digits, whatever the API key may send, and is another delivery than WhatsApp with the same code.
func TestDeliver_byTelegram(t *testing.T) {
	w := newCodesWorld(t)
	w.changeSettings(func(s *settings.Settings) {
		account := *s.Telegram
		account.Codes = &settings.GatewayCodes{Token: settings.NewSecret([]byte("AAAA")), Countries: map[phone.Region]bool{"DE": true}}
		s.Telegram = &account
		s.Keys = keysOf(settings.Key{
			Name: "codes", Hash: sha256.Sum256([]byte(keyCodes)), Scopes: settings.ScopeDeliver, CodeLetters: true,
		})
	})
	const telegram = `,"method":"TELEGRAM"`
	for _, code := range []string{"123", "123456789", "1234567890", "ABCD", "1234A678"} {
		a := w.do(deliverFor(keyCodes, w.number, code, telegram).markInvalid())
		expectRefusal(w.g, a, 400, verification.CodeInvalidCode, "code")
	}
	page, err := w.store.Store.List(t.Context(), verification.ListQuery{Limit: 1, ListFilter: verification.ListFilter{Deliveries: true}})
	w.g.Expect(err).NotTo(HaveOccurred())
	w.g.Expect(page.Requests).To(BeEmpty(), "nothing is stored")
	first := w.do(deliverFor(keyCodes, w.number, "482915", ""))
	w.clock.Step(time.Minute)
	second := w.do(deliverFor(keyCodes, w.number, "482915", telegram))
	again := w.do(deliverFor(keyCodes, w.number, "482915", telegram))
	w.g.Expect([]int{first.status, second.status, again.status}).To(Equal([]int{202, 202, 202}), "%s", second.body)
	w.g.Expect(second.stringField("deliveryId")).NotTo(Equal(first.stringField("deliveryId")))
	w.g.Expect(again.fields).To(Equal(second.fields))
	w.g.Expect(w.sender.ListSent()).To(HaveExactElements(
		HaveField("Method", verification.WhatsApp), HaveField("Method", verification.Telegram)))
	w.g.Expect(w.sender.ListGiven()).To(Equal([]string{"482915", "482915"}))
}

// A refused code is neither stored nor sent.
func TestDeliver_refusals(t *testing.T) {
	w := newCodesWorld(t)
	const german, test = "+4915123456789", `+12025550110`
	w.canaries.add(german[1:])
	for name, row := range map[string]struct {
		request request
		status  int
		code    verification.ErrorCode
		field   string
	}{
		"three digits":      {deliverFor(keyCodes, german, "123", ""), 400, verification.CodeInvalidCode, "code"},
		"eleven digits":     {deliverFor(keyCodes, german, "12345678901", ""), 400, verification.CodeInvalidCode, "code"},
		"letters":           {deliverFor(keyCodes, german, "ABC123", ""), 400, verification.CodeInvalidCode, "code"},
		"text":              {deliverFor(keyCodes, german, "Call me: 1234", ""), 400, verification.CodeInvalidCode, "code"},
		"a line feed":       {deliverFor(keyCodes, german, "1234\n", ""), 400, verification.CodeInvalidCode, "code"},
		"digits elsewhere":  {deliverFor(keyCodes, german, "١٢٣٤", ""), 400, verification.CodeInvalidCode, "code"},
		"no code":           {initAs(keyCodes, german, "user-1"), 400, codeMissingField, "code"},
		"a number":          {initRequest(keyCodes, `{"phoneNumber":"`+german+`","code":123456}`), 400, codeInvalidType, "code"},
		"null":              {initRequest(keyCodes, `{"phoneNumber":"`+german+`","code":null}`), 400, codeInvalidType, "code"},
		"twice":             {initRequest(keyCodes, `{"phoneNumber":"`+german+`","code":"1234","code":"5678"}`), 400, codeInvalidJSON, "code"},
		"no phone number":   {initRequest(keyCodes, `{"code":"1234"}`), 400, codeMissingField, "phoneNumber"},
		"Telegram":          {deliverFor(keyCodes, german, "1234", `,"method":"TELEGRAM"`), 400, verification.CodeCodesNotConfigured, ""},
		"another messenger": {deliverFor(keyCodes, german, "1234", `,"method":"SMS"`), 400, verification.CodeInvalidMethod, "method"},
		"without the scope": {deliverFor(keyInit, german, "1234", ""), 403, codeInsufficientScope, ""},
		"another country":   {deliverFor(keyCodes, "+12015550123", "1234", ""), 400, verification.CodeCountryRefused, "phoneNumber"},
		"a parameter":       {deliverFor(keyCodes, german, "1234", ""), 400, codeInvalidParameter, ""},
		"a test key":        {deliverFor(keyTest, german, "1234", ""), 400, verification.CodeNoTestNumber, "phoneNumber"},
		"a limited number":  {deliverFor(keyTest, numberOf(verification.TestCodesLimited), "1234", ""), 429, verification.CodeCodesLimited, ""},
	} {
		row.request.target = pathDeliver
		if name == "a parameter" {
			row.request.target += "?key=login"
		}
		expectRefusal(w.g, w.do(row.request.markInvalid()), row.status, row.code, row.field)
	}
	a := w.do(deliverFor(keyTest, test, "1234", ""))
	w.g.Expect(a.fields).To(And(HaveLen(2), HaveKeyWithValue("test", true)))
	w.g.Expect(a.status).To(Equal(202))
	w.changeSettings(func(s *settings.Settings) {
		s.Keys = keysOf(settings.Key{Name: "codes", Hash: sha256.Sum256([]byte(keyCodes)), Scopes: settings.ScopeDeliver, CodeLetters: true})
	})
	for code, status := range map[string]int{"QX7K2M": 202, "qx7k2m": 400, "QX7K2MQX7K2M": 400, "QX7-K2M": 400} {
		w.g.Expect(w.do(deliverFor(keyCodes, german, code, "").markInvalid()).status).To(Equal(status), code)
	}
	w.g.Expect(w.sender.ListGiven()).To(Equal([]string{"QX7K2M"}))
	w.clock.Step(time.Minute)
	w.sender.SetFree(0)
	expectRefusal(w.g, w.do(deliverFor(keyCodes, german, "1234", "")), 503, verification.CodeCodesBusy, "")
	w.sender.SetFree(codeSlots - 1)
	w.changeSettings(func(s *settings.Settings) {
		account := *s.WhatsApp
		account.Codes = nil
		s.WhatsApp = &account
	})
	expectRefusal(w.g, w.do(deliverFor(keyCodes, german, "1234", "")), 400, verification.CodeCodesNotConfigured, "")
	page, err := w.store.Store.List(t.Context(), verification.ListQuery{Limit: 9, ListFilter: verification.ListFilter{Deliveries: true}})
	w.g.Expect(err).NotTo(HaveOccurred())
	w.g.Expect(page.Requests).To(HaveLen(1), "the one with letters")
}

// What ZITADEL sends for a login, in the form of internal/notification/types/user_phone.go and otp.go. Its signature follows
// ComputeSignatureHeader of pkg/actions/signing.go, at zitadel/zitadel commit 0e7a14e58c8c4773f7941d7a968bcf7ba8fd6490.
const (
	zitadelKey  = "zitadel-signing-key-0123456789abcdef"
	zitadelBody = `{"contextInfo":{"eventType":"session.otp.sms.challenged","provider":{"id":"285181292935381355","description":"PhoneProof"},` +
		`"recipientPhoneNumber":"+4915123456789"},"templateData":{"title":"Verify OTP","preHeader":"Verify OTP","subject":"Verify OTP",` +
		`"greeting":"Hello Ada,","text":"482915 is your one-time-password for login.example.com."},"args":{"changeDate":` +
		`"2026-02-28T08:20:28.123Z","displayName":"Ada Lovelace","domain":"login.example.com","expiry":300000000000,"lastPhone":` +
		`"+4915123456789","loginNames":["ada@example.com"],"oTP":"482915","origin":"https://login.example.com","sessionID":` +
		`"312181658273644555","userID":"285181292935381999","verifiedPhone":"+4915123456789"}}`
	zitadelSignature = "caaae4abb454f5de2ecb113f83f6ccfb10e1ca5949e37772f060ec92119bccea"
)

// What Supabase sends for a user who changes the number, in the form of SendSMSInput of internal/hooks/v0hooks. Its headers follow
// internal/hooks/hookshttp, at supabase/auth commit bc32168e13fdc928c98b449fc76bc3fdb9a293c5.
const (
	supabaseSecret = "v1,whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	supabaseBody   = `{"metadata":{"uuid":"8b0d3f1e-6f7c-4f6a-9a57-0c8d8c1a7f10","time":"2026-03-01T10:00:00.000Z","name":"send-sms",` +
		`"ip_address":"203.0.113.7"},"user":{"id":"6481a5c1-3d37-4a56-9f6a-bee08c554965","aud":"authenticated","role":"authenticated",` +
		`"email":"","phone":"4915198765432","new_phone":"4915123456789","app_metadata":{"provider":"phone"},"user_metadata":{},` +
		`"identities":[],"created_at":"2026-01-07T00:00:00Z","updated_at":"2026-03-01T09:59:59Z","is_anonymous":false},` +
		`"sms":{"otp":"561166","phone":"4915123456789"}}`
	supabaseSignature = "v1,XyjCSLUvvvkZGvjnYGHrK7x4MhY/3GPGd4omsOQmIfI="
	supabaseID        = "0f6c1f8e-2c6b-4f43-8ad6-6d8a8a3f0b11"
	// signedTime is 2026-03-01T10:00:00Z.
	signedTime = "1772359200"
)

// signedRequests returns the call of each server.
func signedRequests() map[string]request {
	signed := func(format, body string) request {
		return request{
			method: http.MethodPost, target: pathDeliver + "?format=" + format + "&key=" + format, body: body, invalid: true,
			header: http.Header{"Content-Type": {"application/json"}},
		}
	}
	return map[string]request{
		"zitadel": signed("zitadel", zitadelBody).withHeader("ZITADEL-Signature", "t="+signedTime+",v1="+zitadelSignature),
		"supabase": signed("supabase", supabaseBody).withHeader("webhook-id", supabaseID).withHeader("webhook-timestamp", signedTime).
			withHeader("webhook-signature", supabaseSignature),
	}
}

func newSignedWorld(t *testing.T) *codesWorld {
	t.Helper()
	w := newCodesWorld(t)
	w.canaries.add(zitadelKey, supabaseSecret, "4915123456789", "4915198765432")
	w.digits = append(w.digits, "482915", "561166")
	w.changeSettings(func(s *settings.Settings) {
		s.Keys = signingKeys(map[string]string{"zitadel": zitadelKey, "supabase": supabaseSecret, "other": strings.Repeat("another secret ", 3)})
		account := *s.Telegram
		account.Codes = &settings.GatewayCodes{Token: settings.NewSecret([]byte("AAAA")), Countries: map[phone.Region]bool{"DE": true}}
		s.Telegram = &account
	})
	return w
}

// TestDeliver_signed takes the calls of identity servers, also while their secret is replaced, and repeated under other ids.
func TestDeliver_signed(t *testing.T) {
	for format, want := range map[string]struct{ code, locale, method, other, header, more string }{
		"zitadel":  {"482915", "es", "WHATSAPP", "TELEGRAM", "Zitadel-Signature", "t=" + signedTime + ",v1=" + strings.Repeat("0", 64) + ",v1=" + zitadelSignature},
		"supabase": {"561166", "pt", "TELEGRAM", "WHATSAPP", "Webhook-Signature", "v1," + strings.Repeat("A", 43) + "=, " + supabaseSignature},
	} {
		w := newSignedWorld(t)
		r := signedRequests()[format]
		r.target += "&method=" + want.method + "&locale=" + want.locale
		w.clock.Step(-signatureAge)
		first := w.do(r)
		w.g.Expect(first.status).To(Equal(http.StatusAccepted), "%s: %s", format, first.body)
		const minute = 61 * time.Second // after which the number may have another code
		w.clock.Step(minute)
		w.g.Expect(w.do(r.withHeader("Idempotency-Key", "a", "b")).fields).To(Equal(first.fields), "a header that no server signs")
		replayed := r
		replayed.target = strings.Replace(r.target, want.method, want.other, 1)
		w.g.Expect(w.do(replayed).fields).To(Equal(first.fields), "a messenger that no server signs")
		w.clock.Step(2*signatureAge - minute)
		w.g.Expect(w.do(r.withHeader(want.header, want.more)).fields).To(Equal(first.fields), "two secrets, and a clock that is ahead")
		w.g.Expect(w.sender.ListGiven()).To(Equal([]string{want.code}))
		w.g.Expect(w.sender.ListSent()).To(HaveExactElements(And(
			HaveField("KeyName", format), HaveField("Locale", want.locale), HaveField("Method", BeEquivalentTo(want.method)), WithTransform(func(r verification.Request) string { return r.Phone.E164() }, Equal("+4915123456789")))))
	}
}

// TestDeliver_signedOtherwise refuses whatever one of them did not sign.
func TestDeliver_signedOtherwise(t *testing.T) {
	const zitadel, id, at, signature = "Zitadel-Signature", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"
	body := func(from, to string) func(*request) {
		return func(r *request) { r.body = strings.Replace(r.body, from, to, 1) }
	}
	target := func(from, to string) func(*request) {
		return func(r *request) { r.target = strings.Replace(r.target, from, to, 1) }
	}
	header := func(name string, values ...string) func(*request) {
		return func(r *request) { *r = r.withHeader(name, values...) }
	}
	changes := map[string]map[string]func(*request){
		"zitadel": {
			"another number":       body("+49151", "+49152"),
			"another code":         body(`"oTP":"482915"`, `"oTP":"482916"`),
			"a blank more":         body("}}", "}} "),
			"another time":         header(zitadel, "t=1772359201,v1="+zitadelSignature),
			"another form of time": header(zitadel, "t=+"+signedTime+",v1="+zitadelSignature),
			"another signature":    header(zitadel, "t="+signedTime+",v1=d"+zitadelSignature[1:]),
			"a shorter signature":  header(zitadel, "t="+signedTime+",v1="+zitadelSignature[:62]),
			"another version":      header(zitadel, "t="+signedTime+",v0="+zitadelSignature),
			"two headers":          header(zitadel, "t="+signedTime+",v1="+zitadelSignature, "t="+signedTime+",v1="+zitadelSignature),
			"no header":            header(zitadel),
			"another entry":        target("key=zitadel", "key=other"),
			"the other format":     target("format=zitadel", "format=supabase"),
		},
		"supabase": {
			"another number":      body(`"phone":"4915123456789"`, `"phone":"4915123456780"`),
			"another code":        body(`"otp":"561166"`, `"otp":"561167"`),
			"another id":          header(id, "1f6c1f8e-2c6b-4f43-8ad6-6d8a8a3f0b11"),
			"another time":        header(at, "1772359201"),
			"another signature":   header(signature, "v1,Y"+supabaseSignature[4:]),
			"a shorter signature": header(signature, supabaseSignature[:len(supabaseSignature)-4]),
			"another version":     header(signature, "v1a"+supabaseSignature[2:]),
			"two headers":         header(signature, supabaseSignature, supabaseSignature),
			"no id":               header(id),
			"no time":             header(at),
			"another entry":       target("key=supabase", "key=other"),
			"the other format":    target("format=supabase", "format=zitadel"),
		},
	}
	for format, all := range changes {
		w := newSignedWorld(t)
		for name, change := range all {
			r := signedRequests()[format]
			change(&r)
			a := w.do(r)
			w.g.Expect([]any{a.status, a.errorField("code")}).To(Equal([]any{401, "invalid_signature"}), "%s: %s", format, name)
		}
		w.g.Expect(all).To(HaveLen(12))
		large := signedRequests()[format]
		large.body = strings.Repeat(" ", maxSignedBytes+1)
		expectRefusal(w.g, w.do(large), 413, codeBodyTooLarge, "")
		for _, step := range []time.Duration{signatureAge + time.Second, -2 * (signatureAge + time.Second)} {
			w.clock.Step(step)
			w.g.Expect(w.do(signedRequests()[format]).errorField("code")).To(Equal("invalid_signature"), "%s: too old, too early", format)
		}
		bearer := signedRequests()[format]
		bearer.target = pathDeliver
		for _, secret := range []string{zitadelKey, supabaseSecret} {
			w.g.Expect(w.do(bearer.withHeader("Authorization", "Bearer "+secret)).status).To(Equal(401), "a signing secret is no API key")
		}
		for _, query := range []string{"?format=other&key=a", "?format=" + format + "&key=a&key=a", "?format=" + format + "&code=1234"} {
			wrong := signedRequests()[format]
			wrong.target = pathDeliver + query
			expectRefusal(w.g, w.do(wrong), 400, codeInvalidParameter, "format")
		}
		w.g.Expect(w.sender.ListSent()).To(BeEmpty())
	}
}

// TestDeliver_refusedSigned has each server read a refusal in its way.
func TestDeliver_refusedSigned(t *testing.T) {
	w := newSignedWorld(t)
	w.changeSettings(func(s *settings.Settings) {
		account := *s.WhatsApp
		account.Codes = &settings.Codes{}
		s.WhatsApp = &account
	})
	expectRefusal(w.g, w.do(signedRequests()["zitadel"]), 400, verification.CodeCountryRefused, "phoneNumber")
	a := w.do(signedRequests()["supabase"])
	w.g.Expect(a.status).To(Equal(http.StatusOK))
	w.g.Expect(a.joinedHeader("Content-Type")).To(Equal("application/json"))
	w.g.Expect(a.fields).To(Equal(map[string]any{"error": map[string]any{"http_code": 400.0, "message": errCountryRefused.Message}}))
	w.changeSettings(func(s *settings.Settings) { s.Suspended = true })
	again := w.do(signedRequests()["supabase"])
	expectRefusal(w.g, again, 503, codeSuspended, "")
	w.g.Expect(again.joinedHeader("Retry-After")).To(Equal("300"), "without it Supabase does not repeat")
}
