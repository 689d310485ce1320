package simulator

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// The business account of the account of the tests, and the app of its token.
const (
	waba   = "101234567890"
	ownApp = "whatsapp_business_api_data"
)

// subscribedApps returns the ids of the apps that are subscribed.
func (w *runningSimulator) subscribedApps() []any {
	w.t.Helper()
	ids := []any{}
	for _, app := range w.callGraph(http.StatusOK, http.MethodGet, waba+"/subscribed_apps", "")["data"].([]any) {
		ids = append(ids, app.(map[string]any)[ownApp].(map[string]any)["id"])
	}
	return ids
}

// debugToken returns what debug_token says of a token.
func (w *runningSimulator) debugToken(token string) map[string]any {
	w.t.Helper()
	return w.callGraph(http.StatusOK, http.MethodGet, "debug_token?input_token="+token, "")["data"].(map[string]any)
}

// scopesOf returns the business accounts of each granular scope.
func scopesOf(token map[string]any) map[string]any {
	all := map[string]any{}
	for _, g := range token["granular_scopes"].([]any) {
		all[g.(map[string]any)["scope"].(string)] = g.(map[string]any)["target_ids"]
	}
	return all
}

func TestSubscription_decidesWhetherWebhooksArrive(t *testing.T) {
	w, c := registered(t)
	app := w.debugToken(credential)["app_id"]
	w.Expect(app).To(MatchRegexp(`^[0-9]{15}$`))
	w.Expect(w.subscribedApps()).To(ConsistOf(app), "accounts are subscribed at first")
	w.writeAs("1")
	w.Eventually(c.all).WithTimeout(patience).Should(HaveLen(1))
	w.Expect(c.postedValues()[0]).NotTo(BeNil())
	w.Expect(string(c.all()[0].body)).To(ContainSubstring(`"id":"`+waba+`"`), "the entry names the business account")

	for _, unsubscribe := range []func(){
		func() { w.changeAccount(`{"subscribed": false}`) },
		func() {
			w.Expect(w.callGraph(http.StatusOK, http.MethodDelete, waba+"/subscribed_apps", "")).To(Equal(map[string]any{"success": true}))
		},
	} {
		unsubscribe()
		before := len(c.all())
		w.Expect(w.subscribedApps()).To(BeEmpty())
		w.writeAs("1")
		w.Expect(w.line("1")).To(HaveKeyWithValue("state", "undeliverable"))
		w.sendMessage(http.StatusOK, newText(adaNumber))
		w.Expect(w.line("1")).To(HaveKeyWithValue("text", "Thank you."), "the user gets messages all the same")
		w.writeAs("1") // which reads that message, unreported
		w.Expect(w.callGraph(http.StatusOK, http.MethodPost, waba+"/subscribed_apps", "")).To(Equal(map[string]any{"success": true}))
		w.Expect(w.subscribedApps()).To(ConsistOf(app))
		w.writeAs("1")
		w.Eventually(func() any { return w.line("1")["state"] }).WithTimeout(patience).Should(Equal("delivered"))
		w.Expect(c.all()).To(HaveLen(before+1), "neither messages nor statuses of before")
	}
	w.call(http.StatusNoContent, http.MethodPost, "/sim/faults", `{"platform": "whatsapp", "method": "subscribed_apps", "status": 500}`)
	w.callGraph(http.StatusInternalServerError, http.MethodGet, waba+"/subscribed_apps", "")
	w.call(http.StatusNoContent, http.MethodPost, "/sim/reset", "")
	w.Expect(w.subscribedApps()).To(ConsistOf(app), "the accounts stay")
}

func TestSubscription_mayOverrideTheCallback(t *testing.T) {
	shakes := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.URL.Query().Get("hub.challenge")))
	}))
	t.Cleanup(shakes.Close)
	w, c := startSimulator(t, Options{Redirect: func(to string) string {
		if to == "https://shop.example/hook" {
			return shakes.URL
		}
		return to
	}}), newCallback(t)
	w.Expect(w.sim.AddWhatsApp(WhatsAppAccount{
		PhoneNumberID: "1234567890", Number: "+4915112345670", AppSecret: credential, Callback: c.URL,
	})).To(Succeed())
	const override = `{"override_callback_uri": "https://shop.example/hook", "verify_token": "token"}`
	for _, body := range []string{`{"override_callback_uri": "https://shop.example/hook"}`, `{`} {
		w.callGraph(http.StatusBadRequest, http.MethodPost, waba+"/subscribed_apps", body)
	}
	w.callGraph(http.StatusOK, http.MethodPost, waba+"/subscribed_apps", override)
	listed := w.callGraph(http.StatusOK, http.MethodGet, waba+"/subscribed_apps", "")
	w.Expect(shapeOfValue(listed)).To(Equal(shapeOf(t, ownGolden(t, "answers/subscribed_apps_override"))))
	callbacks, err := w.graph.Callbacks(t.Context(), whatsAppAccount(credential))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(callbacks).To(Equal(whatsapp.Callbacks{BusinessAccount: "https://shop.example/hook", Application: c.URL}))
	w.writeAs("1")
	w.Eventually(func() any { return w.line("1")["state"] }).WithTimeout(patience).Should(Equal("delivered"))
	w.Expect(c.all()).To(BeEmpty())

	w.callGraph(http.StatusOK, http.MethodPost, waba+"/subscribed_apps", "")
	w.writeAs("1")
	w.Eventually(c.all).WithTimeout(patience).Should(HaveLen(1), "without an override the callback is that of the app again")
}

func TestBusinessAccount_answersHaveMetasShape(t *testing.T) {
	w, _ := registered(t)
	w.changeAccount(`{"subscribed": false}`)
	answer := w.callGraph(http.StatusOK, http.MethodGet, waba+"/subscribed_apps", "")
	w.Expect(shapeOfValue(answer)).To(Equal(shapeOf(t, ownGolden(t, "answers/subscribed_apps_none"))))
	answer = w.callGraph(http.StatusOK, http.MethodPost, waba+"/subscribed_apps", "{}")
	w.Expect(shapeOfValue(answer)).To(Equal(shapeOf(t, ownGolden(t, "answers/subscribed"))))
	for path, golden := range map[string]string{
		waba + "/subscribed_apps":               "subscribed_apps",
		waba + "/phone_numbers":                 "phone_numbers",
		"debug_token?input_token=" + credential: "debug_token",
		"debug_token?input_token=EAAG":          "debug_token_invalid",
	} {
		answer := w.callGraph(http.StatusOK, http.MethodGet, path, "")
		w.Expect(shapeOfValue(answer)).To(Equal(shapeOf(t, ownGolden(t, "answers/"+golden))), path)
	}
}

func TestToken_thatIsRotatedBelongsToTheSameApp(t *testing.T) {
	w, _ := registered(t)
	first, second := w.debugToken("sim_4915112345670:a"), w.debugToken("sim_4915112345670:b")
	w.Expect(second["app_id"]).To(Equal(first["app_id"]))
	both := []any{"whatsapp_business_management", "whatsapp_business_messaging"}
	w.Expect(second).To(And(HaveKeyWithValue("type", "SYSTEM_USER"), HaveKeyWithValue("is_valid", true),
		HaveKeyWithValue("scopes", append(both, "public_profile"))))
	w.Expect(scopesOf(second)).To(Equal(scopesOf(first)))
	w.Expect(w.debugToken("sim_4915112345671")["app_id"]).NotTo(Equal(first["app_id"]))
	w.call(http.StatusNoContent, http.MethodPost, "/sim/revoke", `{"credential": "sim_4915112345670:a"}`)
	w.Expect(w.debugToken("sim_4915112345670:a")).To(And(HaveKeyWithValue("is_valid", false), HaveKeyWithValue("scopes", BeEmpty()), HaveKey("error")))
}

func TestBusinessAccount_canBeAskedForFirst(t *testing.T) {
	w := startSimulator(t, Options{})
	w.Expect(scopesOf(w.debugToken(credential))).To(HaveKeyWithValue("whatsapp_business_management", BeNil()), "no call named a number yet")
	numbers := w.callGraph(http.StatusOK, http.MethodGet, waba+"/phone_numbers?fields=id", "")["data"]
	w.Expect(numbers).To(Equal([]any{map[string]any{"id": "1234567890"}}))
	w.Expect(w.call(http.StatusOK, http.MethodGet, "/sim/accounts", "")["whatsapp"]).To(ConsistOf(Equal(map[string]any{
		"phoneNumberID": "1234567890", "businessAccountID": waba, "number": "4915112345670",
		"subscribed": true, "failWith": 0.0,
	})))
	w.Expect(scopesOf(w.debugToken(credential))).To(HaveKeyWithValue("whatsapp_business_management", Equal([]any{waba})))
	w.callGraph(http.StatusBadRequest, http.MethodGet, waba+"/phone_numbers?fields=color", "")

	w.changeAccount(`{"businessAccountID": "102290129340398"}`)
	w.callGraph(http.StatusBadRequest, http.MethodGet, waba+"/phone_numbers", "")
	w.callGraph(http.StatusOK, http.MethodGet, "102290129340398/phone_numbers", "")
	w.Expect(scopesOf(w.debugToken(credential))).To(HaveKeyWithValue("whatsapp_business_management", Equal([]any{"102290129340398"})))
}

// TestAppSecret_isComparedWithTheAppOfTheToken checks the proof by which Meta finds out that a secret is another app's.
func TestAppSecret_isComparedWithTheAppOfTheToken(t *testing.T) {
	w := startSimulator(t, Options{})
	w.Expect(w.sim.AddWhatsApp(WhatsAppAccount{PhoneNumberID: "1234567890", Number: "+4915112345670", AppSecret: "sim_4915112345670:app"})).To(Succeed())
	account := whatsAppAccount(credential)
	w.Expect(w.graph.CheckAppSecret(t.Context(), account)).To(MatchError(whatsapp.ErrAppSecret), "it has the value of the token")
	account.AppSecret = settings.NewSecret([]byte("sim_4915112345670:app"))
	w.Expect(w.graph.CheckAppSecret(t.Context(), account)).To(Succeed())

	w.call(http.StatusNoContent, http.MethodPost, "/sim/faults", `{"platform": "whatsapp", "method": "phone_number", "status": 500}`)
	err := w.graph.CheckAppSecret(t.Context(), account)
	w.Expect(err).To(HaveOccurred())
	w.Expect(err).NotTo(MatchError(whatsapp.ErrAppSecret))
}
