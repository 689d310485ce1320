package simulator

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/phone"
)

func number(t *testing.T, text string) phone.Number {
	t.Helper()
	n, err := phone.FromE164(text)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return n
}

// kind matches an error of the client.
func kind(class messenger.CallFailure, code int) types.GomegaMatcher {
	return WithTransform(func(err error) whatsapp.Error {
		if e, ok := err.(*whatsapp.Error); ok { //nolint:errorlint // it is not wrapped
			return whatsapp.Error{CallError: messenger.CallError{Class: e.Class}, Code: e.Code}
		}
		return whatsapp.Error{}
	}, Equal(whatsapp.Error{CallError: messenger.CallError{Class: class}, Code: code}))
}

func TestGraphAPI_anAccountExistsOnceACredentialNamesIt(t *testing.T) {
	w := startSimulator(t, Options{})
	w.call(http.StatusNotFound, http.MethodPost, "/sim/users/1/open", `{"link": "`+waLink+`"}`)
	n, err := w.graph.PhoneNumber(t.Context(), whatsAppAccount(credential))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(n).To(Equal(whatsapp.PhoneNumber{
		ID: "1234567890", DisplayPhoneNumber: "+4915112345670", VerifiedName: "+4915112345670", Status: "CONNECTED",
	}))
	w.Expect(w.call(http.StatusOK, http.MethodPost, "/sim/users/1/open", `{"link": "`+waLink+`"}`)).
		To(HaveKeyWithValue("draft", "Hello Ada, 1+1"))
}

func TestGraphAPI_shakesHandsBeforeItTakesACallback(t *testing.T) {
	right := true
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if right && q.Get("hub.mode") == "subscribe" && q.Get("hub.verify_token") == "token" {
			_, _ = w.Write([]byte(q.Get("hub.challenge")))
			return
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	w, account := startSimulator(t, Options{RootCAs: roots}), whatsAppAccount(credential)

	w.Expect(w.graph.SetCallback(t.Context(), account, server.URL+"/hook", "token")).To(Succeed())
	callbacks, err := w.graph.Callbacks(t.Context(), account)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(callbacks).To(Equal(whatsapp.Callbacks{PhoneNumber: server.URL + "/hook"}))

	w.Expect(w.graph.SetCallback(t.Context(), account, server.URL+"/other", "wrong")).To(kind(messenger.CallRefused, 2200))
	w.Expect(w.graph.SetCallback(t.Context(), account, "https://127.0.0.1:1/hook", "token")).To(kind(messenger.CallRefused, 2200))
	w.Expect(w.graph.SetCallback(t.Context(), account, "http://127.0.0.1/hook", "token")).To(kind(messenger.CallRefused, 100))
	callbacks, err = w.graph.Callbacks(t.Context(), account)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(callbacks.PhoneNumber).To(Equal(server.URL+"/hook"), "a callback that was refused changes nothing")

	w.Expect(w.graph.RemoveCallback(t.Context(), account)).To(Succeed())
	callbacks, err = w.graph.Callbacks(t.Context(), account)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(callbacks).To(BeZero())
}

func TestGraphAPI_messagesReachTheirUsersAndComeBackAsStatuses(t *testing.T) {
	w, c := registered(t)
	account := whatsAppAccount(credential)
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+waLink+`"}`)
	w.Eventually(c.all).WithTimeout(patience).Should(HaveLen(1))
	w.Expect(w.graph.SendText(t.Context(), account, whatsapp.ToNumber(number(t, "+4915112345678")), "Thank you.")).To(Succeed())
	w.Expect(w.line("1")).To(And(HaveKeyWithValue("from", "business"), HaveKeyWithValue("text", "Thank you.")))
	w.Eventually(c.all).WithTimeout(patience).Should(HaveLen(3))
	statuses := knownOfMeta(t)
	for _, p := range c.all()[1:] {
		w.Expect(unknownIn(shapeOf(t, p.body), statuses)).To(BeEmpty())
	}

	w.Expect(w.graph.SendText(t.Context(), account, whatsapp.ToNumber(number(t, "+4915100000000")), "Hi")).To(Succeed())
	w.Eventually(c.text).WithTimeout(patience).Should(ContainSubstring("131026"))
	w.Expect(w.graph.SendText(t.Context(), account, whatsapp.ToNumber(number(t, "+5215512345678")), "Hi")).To(Succeed())
	w.Eventually(c.text).WithTimeout(patience).Should(ContainSubstring("131047"))
}

func TestGraphAPI_aUserWithoutANumberCanBeAskedForIt(t *testing.T) {
	w, c := registered(t)
	account := whatsAppAccount(credential)
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/4/send", `{"link": "`+waLink+`"}`)
	w.Eventually(c.all).WithTimeout(patience).Should(HaveLen(1))
	w.Expect(string(c.all()[0].body)).NotTo(ContainSubstring("972502345678"))
	w.call(http.StatusConflict, http.MethodPost, "/sim/users/4/share-contact", "")

	id := w.sim.phones.users[3].businessScopedID(w.sim.whatsApp.businesses[0])
	w.Expect(id).To(MatchRegexp(`^IL\.[0-9]+$`))
	w.Expect(w.graph.RequestContact(t.Context(), account, whatsapp.ToUserID(id), "May we know your number?", "")).To(Succeed())
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/4/share-contact", "")
	w.Eventually(c.text).WithTimeout(patience).
		Should(And(ContainSubstring(`"origin":"contact_request"`), ContainSubstring(`"wa_id":"972502345678"`), ContainSubstring(id)))
	w.call(http.StatusConflict, http.MethodPost, "/sim/users/4/share-contact", "")
}

// asked has user 1 write to the account, and the account ask with a button.
func (w *runningSimulator) asked(c *callback) {
	w.t.Helper()
	before := len(c.all())
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+waLink+`", "text": "Hello there"}`)
	w.Expect(w.graph.AskWithButtons(w.t.Context(), whatsAppAccount(credential), whatsapp.ToNumber(number(w.t, "+4915112345678")),
		whatsapp.Question{Text: "Is it you?", Buttons: []whatsapp.Button{{ID: "confirm:one", Title: "Confirm"}}})).To(Succeed())
	w.Eventually(c.all).WithTimeout(patience).Should(HaveLen(before+3), "the message, and that the question was sent and delivered")
}

func TestGraphAPI_aUserCanTapAButton(t *testing.T) {
	w, c := registered(t)
	w.call(http.StatusNotFound, http.MethodPost, "/sim/users/1/tap", "")
	w.asked(c)
	w.Expect(c.text()).To(ContainSubstring("Hello there"), "the draft was edited")
	w.call(http.StatusConflict, http.MethodPost, "/sim/users/1/tap", `{"title": "Not me"}`)
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/tap", `{"title": "Confirm"}`)
	w.Eventually(c.text).WithTimeout(patience).
		Should(ContainSubstring(`"interactive":{"type":"button_reply","button_reply":{"id":"confirm:one","title":"Confirm"}}`))
	w.call(http.StatusConflict, http.MethodPost, "/sim/users/1/tap", "")
}

func TestGraphAPI_refusesAsMetaDoes(t *testing.T) {
	w := startSimulator(t, Options{})
	account := whatsAppAccount(credential)
	w.call(http.StatusNoContent, http.MethodPost, "/sim/faults", `{"platform": "whatsapp", "method": "messages", "status": 429}`)
	w.Expect(w.graph.SendText(t.Context(), account, whatsapp.ToNumber(number(t, "+4915112345678")), "Hi")).To(kind(messenger.CallRateLimited, 130429))
	w.call(http.StatusNoContent, http.MethodPost, "/sim/faults", `{"platform": "whatsapp", "status": 500, "times": 5}`)
	w.Expect(w.graph.RemoveCallback(t.Context(), account)).To(kind(messenger.CallPlatformError, 131000))
	w.call(http.StatusNoContent, http.MethodDelete, "/sim/faults", "")
	w.call(http.StatusNoContent, http.MethodPost, "/sim/revoke", `{"credential": "`+credential+`"}`)
	w.Expect(w.graph.RemoveCallback(t.Context(), account)).To(kind(messenger.CallCredentials, 190))

	for name, test := range map[string]struct {
		method, path, body, token string
		status, code              int
	}{
		"a real token":        {http.MethodGet, "/v25.0/1234567890", "", "EAAG0123456789", http.StatusUnauthorized, 190},
		"no token":            {http.MethodGet, "/v25.0/1234567890", "", "", http.StatusUnauthorized, 104},
		"no such object":      {http.MethodGet, "/v25.0/me", "", "sim_x", http.StatusBadRequest, 100},
		"no way to an edge":   {http.MethodPost, "/v25.0/101/phone_numbers", "", "sim_x", http.StatusBadRequest, 2500},
		"no such WABA":        {http.MethodGet, "/v25.0/99/subscribed_apps", "", "sim_x", http.StatusBadRequest, 100},
		"a foreign WABA":      {http.MethodGet, "/v25.0/111/phone_numbers", "", "sim_x", http.StatusBadRequest, 100},
		"no input token":      {http.MethodGet, "/v25.0/debug_token", "", "sim_x", http.StatusBadRequest, 100},
		"no such edge":        {http.MethodPost, "/v25.0/1/calls", "", "sim_x", http.StatusBadRequest, 2500},
		"no such field":       {http.MethodGet, "/v25.0/1?fields=id,color", "", "sim_x", http.StatusBadRequest, 100},
		"no JSON":             {http.MethodPost, "/v25.0/1/messages", "{", "sim_x", http.StatusBadRequest, 100},
		"no product":          {http.MethodPost, "/v25.0/1/messages", `{"to": "1"}`, "sim_x", http.StatusBadRequest, 100},
		"no recipient":        {http.MethodPost, "/v25.0/1/messages", `{"messaging_product": "whatsapp", "type": "text"}`, "sim_x", http.StatusBadRequest, 100},
		"two recipients":      {http.MethodPost, "/v25.0/1/messages", `{"messaging_product": "whatsapp", "to": "1", "recipient": "DE.1", "type": "text", "text": {"body": "Hi"}}`, "sim_x", http.StatusBadRequest, 100},
		"much opaque data":    {http.MethodPost, "/v25.0/1/messages", `{"messaging_product": "whatsapp", "to": "1", "type": "text", "text": {"body": "Hi"}, "biz_opaque_callback_data": "` + strings.Repeat("x", 513) + `"}`, "sim_x", http.StatusBadRequest, 100},
		"buttons like twins":  {http.MethodPost, "/v25.0/1/messages", newQuestion("49", "one", "one"), "sim_x", http.StatusBadRequest, 100},
		"an image":            {http.MethodPost, "/v25.0/1/messages", `{"messaging_product": "whatsapp", "to": "1", "type": "image"}`, "sim_x", http.StatusBadRequest, 100},
		"an empty text":       {http.MethodPost, "/v25.0/1/messages", `{"messaging_product": "whatsapp", "to": "1", "type": "text"}`, "sim_x", http.StatusBadRequest, 100},
		"no configuration":    {http.MethodPost, "/v25.0/1", `{}`, "sim_x", http.StatusBadRequest, 100},
		"a callback, no word": {http.MethodPost, "/v25.0/1", `{"webhook_configuration": {"override_callback_uri": "https://x.example/"}}`, "sim_x", http.StatusBadRequest, 100},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			if test.token != "" {
				header.Set("Authorization", "Bearer "+test.token)
			}
			status, answer := w.raw(test.method, test.path, test.body, header)
			w.Expect(status).To(Equal(test.status))
			w.Expect(answer["error"]).To(And(HaveKeyWithValue("code", BeEquivalentTo(test.code)), HaveKey("message"), HaveKey("type"), HaveKey("fbtrace_id")))
		})
	}
}
