package simulator

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/phoneproof/phoneproof/internal/phone"
)

func TestDefaultUsers_haveNumbersThatCanBeVerified(t *testing.T) {
	g := NewWithT(t)
	for _, p := range DefaultUsers() {
		n, err := phone.Parse(p.Phone)
		g.Expect(err).NotTo(HaveOccurred(), p.Name)
		g.Expect(p.validate()).To(Succeed())
		wa, err := phone.ParseWhatsApp(p.WhatsAppID)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(phone.Same(n, wa)).To(BeTrue(), "what WhatsApp calls %s is the same line", p.Phone)
	}
}

func TestWhatsAppID_isWhatWhatsAppMakesOfANumber(t *testing.T) {
	for number, want := range map[string]string{
		"+4915112345678": "4915112345678",
		"+525512345678":  "5215512345678",
		"+5215512345678": "5215512345678",
		"+5531987654321": "553187654321",  // from area code 31 on without the ninth digit
		"+5511987654321": "5511987654321", // in the south-east with it
		"+553133334444":  "553133334444",  // a landline never had one
	} {
		NewWithT(t).Expect(whatsAppID(number)).To(Equal(want), number)
	}
}

func TestParseLink(t *testing.T) {
	for link, want := range map[string]target{
		"https://wa.me/4915112345670?text=a%20b%2Bc+d": {"whatsapp", "4915112345670", "a b+c+d"},
		"https://wa.me/4915112345670":                  {"whatsapp", "4915112345670", ""},
		"https://t.me/Shop_Bot?start=A-1_z":            {"telegram", "shop_bot", "/start A-1_z"},
	} {
		got, f := parseLink(link)
		NewWithT(t).Expect(f).NotTo(HaveOccurred(), link)
		NewWithT(t).Expect(got).To(Equal(want))
	}
	for _, link := range []string{
		"", "wa.me/4915112345670", "http://wa.me/4915112345670", "https://wa.me/+4915112345670", "https://wa.me/0151", "https://wa.me/49?text=%zz",
		"https://evil.example/wa.me/4915112345670", "https://wa.me.evil.example/4915112345670", "https://user@wa.me/4915112345670", "https://wa.me:8443/4915112345670",
		"https://t.me/shop_bot", "https://t.me/shop_bot?start=", "https://t.me/shop_bot?start=a%20b", "https://t.me/a/b?start=x",
		"https://t.me/shop_bot?start=" + strings.Repeat("x", 65), "https://t.me/?start=x",
	} {
		_, f := parseLink(link)
		NewWithT(t).Expect(f).To(HaveOccurred(), link)
	}
}

func TestUsers_comeAndGo(t *testing.T) {
	w := startSimulator(t, Options{Users: []Person{}})
	w.Expect(w.call(http.StatusOK, http.MethodGet, "/sim/users", "")["users"]).To(BeEmpty())
	u := w.call(http.StatusCreated, http.MethodPost, "/sim/users", `{"name": "Bia", "phone": "+5531987654321", "telegramPhone": "+88800012345"}`)
	w.Expect(u).To(And(HaveKeyWithValue("id", "1"), HaveKeyWithValue("whatsAppID", "553187654321"), HaveKeyWithValue("telegramPhone", "+88800012345")))
	w.Expect(w.call(http.StatusConflict, http.MethodPost, "/sim/users", `{"phone": "+5531987654321"}`)["error"]).To(HaveKeyWithValue("code", "number_taken"))
	w.Expect(w.call(http.StatusOK, http.MethodGet, "/sim/users/+5531987654321/chats", "")["chats"]).To(BeEmpty())
	w.call(http.StatusNoContent, http.MethodDelete, "/sim/users/1", "")
	w.call(http.StatusNotFound, http.MethodGet, "/sim/users/1/chats", "")
	w.call(http.StatusCreated, http.MethodPost, "/sim/users", `{"phone": "+5531987654321"}`)
	w.call(http.StatusNoContent, http.MethodPost, "/sim/reset", "")
	w.Expect(w.call(http.StatusOK, http.MethodGet, "/sim/users", "")["users"]).To(BeEmpty())
}

func TestUsers_areBounded(t *testing.T) {
	w := startSimulator(t, Options{Users: []Person{}})
	w.sim.mu.Lock()
	for i := range maxUsers {
		_, f := w.sim.phones.addUser(Person{Phone: fmt.Sprintf("+49151%08d", i)})
		w.Expect(f).NotTo(HaveOccurred())
	}
	w.sim.mu.Unlock()
	refused := w.call(http.StatusTooManyRequests, http.MethodPost, "/sim/users", `{"phone": "+4917600000000"}`)
	w.Expect(refused["error"]).To(HaveKeyWithValue("message",
		"the simulator holds 1000 users, and no more; POST /sim/reset forgets everything, and DELETE /sim/users/{user} one of them"))
	w.call(http.StatusNoContent, http.MethodDelete, "/sim/users/1", "")
	w.call(http.StatusCreated, http.MethodPost, "/sim/users", `{"phone": "+4917600000000"}`)
	w.Expect(w.sim.events).To(HaveLen(maxEvents))
}

func TestAPI_refusesWhatItDoesNotUnderstand(t *testing.T) {
	w, _ := registered(t)
	for name, test := range map[string]struct {
		method, path, body string
		status             int
		code               string
	}{
		"no number":              {http.MethodPost, "/sim/users", `{"name": "X"}`, 400, "bad_request"},
		"a national number":      {http.MethodPost, "/sim/users", `{"phone": "015112345678"}`, 400, "bad_request"},
		"a misspelt field":       {http.MethodPost, "/sim/users", `{"number": "+4915112345678"}`, 400, "bad_request"},
		"hiding with no name":    {http.MethodPost, "/sim/users", `{"phone": "+4917612345678", "hidesNumber": true}`, 400, "bad_request"},
		"no such user":           {http.MethodPost, "/sim/users/99/send", `{"link": "` + waLink + `"}`, 404, "unknown_user"},
		"no chat":                {http.MethodPost, "/sim/users/2/send", `{"text": "Hi"}`, 404, "unknown_chat"},
		"no such chat":           {http.MethodPost, "/sim/users/3/send", `{"chat": "x", "text": "Hi"}`, 404, "unknown_chat"},
		"another site":           {http.MethodPost, "/sim/users/3/open", `{"link": "https://example.com/"}`, 400, "bad_request"},
		"an unknown number":      {http.MethodPost, "/sim/users/3/open", `{"link": "https://wa.me/4915112345671"}`, 404, "unknown_account"},
		"a long wait, misspelt":  {http.MethodPost, "/sim/users/3/share-contact", `{"wait": "long"}`, 400, "bad_request"},
		"a fault that is none":   {http.MethodPost, "/sim/faults", `{"platform": "whatsapp", "status": 200}`, 400, "bad_request"},
		"a fault of no platform": {http.MethodPost, "/sim/faults", `{"platform": "signal", "status": 500}`, 400, "bad_request"},
		"a real credential":      {http.MethodPost, "/sim/revoke", `{"credential": "EAAG"}`, 400, "bad_request"},
		"a real app secret":      {http.MethodPut, "/sim/accounts/whatsapp/1", `{"appSecret": "0123"}`, 400, "bad_request"},
		"an id with letters":     {http.MethodPut, "/sim/accounts/whatsapp/x", `{}`, 400, "bad_request"},
		"a callback by file":     {http.MethodPut, "/sim/accounts/whatsapp/1", `{"callback": "file:///etc/passwd"}`, 400, "bad_request"},
		"an odd WABA":            {http.MethodPut, "/sim/accounts/whatsapp/1", `{"businessAccountID": "waba"}`, 400, "bad_request"},
		"another one's WABA":     {http.MethodPut, "/sim/accounts/whatsapp/1", `{"businessAccountID": "101234567890"}`, 400, "bad_request"},
		"an odd code":            {http.MethodPut, "/sim/accounts/whatsapp/1", `{"failWith": -131030}`, 400, "bad_request"},
		"a real token":           {http.MethodPut, "/sim/accounts/telegram/shop_bot", `{"token": "123:AAE"}`, 400, "bad_request"},
		"an odd secret":          {http.MethodPut, "/sim/accounts/telegram/shop_bot", `{"secret": "a b"}`, 400, "bad_request"},
		"no backend":             {http.MethodPost, "/backend/init", `{}`, 404, "no_backend"},
		"a path that is nothing": {http.MethodGet, "/nothing/here", "", 404, "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			w.Expect(w.call(test.status, test.method, test.path, test.body)["error"]).To(HaveKeyWithValue("code", test.code))
		})
	}
	w.Expect(w.sim.AddWhatsApp(WhatsAppAccount{PhoneNumberID: "x"})).To(MatchError(ContainSubstring("want digits")))
	w.Expect(w.sim.AddTelegram(TelegramAccount{Username: "x"})).To(MatchError(ContainSubstring("want a bot's username")))
}

func TestAPI_isNotForOtherSites(t *testing.T) {
	w := startSimulator(t, Options{})
	for _, header := range []http.Header{
		{"Origin": {"https://evil.example"}}, {"Sec-Fetch-Site": {"cross-site"}},
	} {
		status, _ := w.rawText(http.MethodPost, "/sim/reset", header)
		w.Expect(status).To(Equal(http.StatusForbidden))
	}
	status, _ := w.rawText(http.MethodPost, "/sim/reset", http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {w.url}})
	w.Expect(status).To(Equal(http.StatusNoContent))
}

func (w *runningSimulator) rawText(method, path string, header http.Header) (int, http.Header) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, nil)
	w.Expect(err).NotTo(HaveOccurred())
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode, response.Header
}

func TestEvents_areToldAsTheyHappen(t *testing.T) {
	w, _ := registered(t)
	next := w.call(http.StatusOK, http.MethodGet, "/sim/events", "")["next"].(float64)
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+waLink+`"}`)
	events := w.call(http.StatusOK, http.MethodGet, fmt.Sprintf("/sim/events?after=%.0f&wait=30s", next), "")["events"].([]any)
	w.Expect(events[0]).To(And(HaveKeyWithValue("type", "message"), HaveKeyWithValue("user", "1"), HaveKeyWithValue("chat", "whatsapp:4915112345670")))
}

func TestPage_loadsNothingFromElsewhere(t *testing.T) {
	w := startSimulator(t, Options{})
	for path, kind := range map[string]string{"/": "text/html", "/app.js": "text/javascript", "/style.css": "text/css", "/icon.svg": "image/svg+xml"} {
		status, header := w.rawText(http.MethodGet, path, http.Header{})
		w.Expect(status).To(Equal(http.StatusOK), path)
		w.Expect(header.Get("Content-Type")).To(HavePrefix(kind))
		w.Expect(header.Get("Content-Security-Policy")).To(HavePrefix("default-src 'self';"))
	}
}

func TestReceiver_judgesBothSignatures(t *testing.T) {
	const body = `{"event":"verification.success"}`
	for name, secret := range map[string]string{"any text": "a webhook secret of enough length", "a standard one": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"} {
		t.Run(name, func(t *testing.T) {
			w := startSimulator(t, Options{WebhookSecret: func() []byte { return []byte(secret) }})
			hook, err := standardwebhooks.NewWebhookRaw([]byte(secret))
			if strings.HasPrefix(secret, "whsec_") {
				hook, err = standardwebhooks.NewWebhook(secret)
			}
			w.Expect(err).NotTo(HaveOccurred())
			signed := func(at time.Time, id string) http.Header {
				signature, err := hook.Sign(id, at, []byte(body))
				w.Expect(err).NotTo(HaveOccurred())
				return http.Header{
					"Webhook-Id": {id}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}, "Webhook-Signature": {"v1,b2xk " + signature},
					"X-Webhook-Signature": {strings.TrimPrefix(metaMAC([]byte(secret), []byte(body)), "sha256=")},
				}
			}
			good := signed(time.Now(), "evt_1")
			wrong := good.Clone()
			wrong.Set("X-Webhook-Signature", strings.Repeat("0", 64))
			for _, test := range []struct {
				header              http.Header
				status              int
				signature, standard string
				duplicate           bool
			}{
				{wrong, http.StatusUnauthorized, "invalid", "valid", false},
				{good, http.StatusNoContent, "valid", "valid", false},
				{good, http.StatusNoContent, "valid", "valid", true},
				{signed(time.Now().Add(-time.Hour), "evt_2"), http.StatusUnauthorized, "valid", "invalid", false},
				{http.Header{}, http.StatusUnauthorized, "missing", "missing", false},
			} {
				status, _ := w.raw(http.MethodPost, "/receiver", body, test.header)
				w.Expect(status).To(Equal(test.status))
				all := w.call(http.StatusOK, http.MethodGet, "/receiver/deliveries", "")["deliveries"].([]any)
				w.Expect(all[len(all)-1]).To(And(HaveKeyWithValue("signature", test.signature), HaveKeyWithValue("standardSignature", test.standard),
					HaveKeyWithValue("duplicate", test.duplicate), HaveKeyWithValue("body", body), HaveKeyWithValue("status", BeEquivalentTo(test.status))))
			}
			w.call(http.StatusNoContent, http.MethodPost, "/sim/faults", `{"platform": "receiver", "status": 500}`)
			status, _ := w.raw(http.MethodPost, "/receiver", body, good)
			w.Expect(status).To(Equal(http.StatusInternalServerError))
			w.call(http.StatusNoContent, http.MethodDelete, "/receiver/deliveries", "")
			w.Expect(w.call(http.StatusOK, http.MethodGet, "/receiver/deliveries", "")["deliveries"]).To(BeEmpty())
		})
	}
}

func TestReceiver_withoutASecretJudgesNothing(t *testing.T) {
	w := startSimulator(t, Options{})
	status, _ := w.raw(http.MethodPost, "/receiver", "{}", http.Header{"X-Webhook-Signature": {"00"}})
	w.Expect(status).To(Equal(http.StatusNoContent))
	w.Expect(w.call(http.StatusOK, http.MethodGet, "/receiver/deliveries", "")["deliveries"]).
		To(ConsistOf(And(HaveKeyWithValue("signature", "unknown"), HaveKeyWithValue("standardSignature", "missing"))))
}

func TestBackend_isCalledWithItsKey(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answerJSON(w, http.StatusOK, map[string]string{"asked": r.Method + " " + r.URL.String(), "key": r.Header.Get("Authorization")})
	}))
	t.Cleanup(api.Close)
	w := startSimulator(t, Options{Backend: &Backend{URL: api.URL + "/", Key: func() string { return "pp_key" }}})
	w.Expect(w.call(http.StatusOK, http.MethodPost, "/backend/init", "{}")).
		To(And(HaveKeyWithValue("asked", "POST /api/verify/init"), HaveKeyWithValue("key", "Bearer pp_key")))
	w.Expect(w.call(http.StatusOK, http.MethodGet, "/backend/status?id=vr1&wait=1s", "")).To(HaveKeyWithValue("asked", "GET /api/verify/status?id=vr1&wait=1s"))
	w.Expect(w.call(http.StatusOK, http.MethodGet, "/sim/about", "")).To(HaveKeyWithValue("backend", true))
	api.Close()
	w.call(http.StatusBadGateway, http.MethodPost, "/backend/init", "{}")
}
