package callback

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	messengers "github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/settings"
)

func TestDecideSubscription(t *testing.T) {
	registered := trueVerdict(verifyv1.ReasonRegistered, "registered")
	ours, byHand := plan{}, plan{byHand: true}
	missing, unchecked := subscription{missing: true, remedy: "curl"}, subscription{unchecked: "why", unanswered: true}
	for name, row := range map[string]struct {
		plan    plan
		found   subscription
		do      step
		says    verdict
		step    step
		want    verdict
		message string
	}{
		"subscribed":                     {ours, subscription{}, stepNone, registered, stepNone, registered, "registered"},
		"subscribed, registered by hand": {byHand, subscription{}, stepNone, registeredByHand, stepNone, registeredByHand, ""},
		"missing":                        {ours, missing, stepNone, registered, stepSubscribe, registered, "registered"},
		"missing, and no callback yet": {ours, missing, stepRegister, registered, stepRegister,
			verdict{status: metav1.ConditionUnknown, reason: verifyv1.ReasonRegistering}, "it is next"},
		"missing, registered by hand": {byHand, missing, stepNone, registeredByHand, stepNone,
			verdict{status: metav1.ConditionFalse, reason: verifyv1.ReasonNotSubscribed}, "set spec.whatsapp.registerWebhook to true, or run: curl"},
		"another account": {ours, subscription{mismatch: "why"}, stepNone, registered, stepNone,
			verdict{status: metav1.ConditionFalse, reason: verifyv1.ReasonAccountMismatch}, "why"},
		"another account, and no callback yet": {ours, subscription{mismatch: "why"}, stepRegister, registered, stepRegister,
			verdict{status: metav1.ConditionFalse, reason: verifyv1.ReasonAccountMismatch}, "why"},
		"another account, registered by hand": {byHand, subscription{mismatch: "why"}, stepNone, registeredByHand, stepNone,
			verdict{status: metav1.ConditionFalse, reason: verifyv1.ReasonAccountMismatch}, "why"},
		"unchecked": {ours, unchecked, stepRegister, registered, stepRegister,
			verdict{status: metav1.ConditionTrue, reason: verifyv1.ReasonRegistered}, "registered; the app's subscription is not checked: why"},
		"unchecked, registered by hand": {byHand, unchecked, stepNone, registeredByHand, stepNone,
			verdict{status: metav1.ConditionTrue, reason: verifyv1.ReasonRegistrationByHand}, "not checked; the app's subscription is not checked: why"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			do, says := decideSubscription(row.plan, row.found, row.do, row.says)
			g.Expect(do).To(Equal(row.step))
			g.Expect(says.status).To(Equal(row.want.status))
			g.Expect(says.reason).To(Equal(row.want.reason))
			g.Expect(says.message).To(ContainSubstring(row.message))
		})
	}
}

// TestSubscription_follows: the app is subscribed after the callback is registered, in two checks, and again when that was undone.
func TestSubscription_follows(t *testing.T) {
	w := newWhatsAppAccount(t)
	w.platform.subscribed = subscription{missing: true}
	w.Expect(w.expect(metav1.ConditionUnknown, verifyv1.ReasonRegistering)).To(BeNumerically("<=", firstRetry), "the next step is near")
	w.Expect(w.expectTrue(verifyv1.ReasonRegistered)).To(Equal(recheckDelay))
	w.Expect(w.platform.calls).To(Equal([]string{"observe", "register", "observe", "subscribe"}))
	w.Expect(w.expectTrue(verifyv1.ReasonRegistered)).To(BeNumerically(">", checkInterval*3/4))

	w.platform.subscribed = subscription{missing: true}
	w.Expect(w.expectTrue(verifyv1.ReasonRegistered)).To(Equal(recheckDelay))
	w.platform.subscribed = subscription{missing: true}
	w.Expect(w.expectTrue(verifyv1.ReasonRegistered)).To(BeNumerically(">", checkInterval*3/4), "another program undoes it each time")
	w.Expect(w.platform.countChanges()).To(Equal(4))
}

// TestSubscription_ofForeignCallbacks: what is not ours is neither asked for its subscription nor subscribed.
func TestSubscription_ofForeignCallbacks(t *testing.T) {
	w := newWhatsAppAccount(t)
	w.platform.subscribed, w.platform.callback = subscription{missing: true}, foreignURL
	w.expectFalse(verifyv1.ReasonCallbackTaken)
	w.platform.callback, w.platform.seen.mismatch = "", "another number"
	w.expectFalse(verifyv1.ReasonAccountMismatch)
	w.Expect(w.platform.questions).To(BeZero())
	w.Expect(w.platform.countChanges()).To(BeZero())
}

// TestSubscription_ofAnotherAccount: the app is not subscribed to it. The callback of the number is registered and kept all the same.
func TestSubscription_ofAnotherAccount(t *testing.T) {
	w := newWhatsAppAccount(t)
	w.platform.subscribed = subscription{mismatch: "another account"}
	w.expectFalse(verifyv1.ReasonAccountMismatch)
	w.Expect(w.platform.calls).To(Equal([]string{"observe", "register"}))
	w.Expect(w.remembered).To(HaveLen(1))
	w.Expect(w.expectFalse(verifyv1.ReasonAccountMismatch)).To(BeNumerically("<=", 2*firstRetry), "the user may be typing")
	w.Expect(w.platform.calls).To(Equal([]string{"observe", "register", "observe"}))

	w.edit(func(s *settings.Settings) { s.WhatsApp = nil })
	w.reconcile()
	w.Expect(w.platform.callback).To(BeEmpty(), "the callback was ours")
}

// TestSubscription_byHand: nothing is changed, and nothing but the subscription asked for.
func TestSubscription_byHand(t *testing.T) {
	w := newWhatsAppAccount(t)
	w.platform.subscribed = subscription{missing: true, remedy: "curl"}
	w.edit(func(s *settings.Settings) { s.WhatsApp.RegisterWebhook = false })
	w.Expect(w.expectFalse(verifyv1.ReasonNotSubscribed)).To(BeNumerically("<=", firstRetry), "the user may be typing")
	w.platform.subscribed = subscription{}
	w.Expect(w.expectTrue(verifyv1.ReasonRegistrationByHand)).To(BeNumerically(">", checkInterval*3/4))
	w.Expect(w.platform.calls).To(BeEmpty())
	w.Expect(w.platform.questions).To(Equal(2))
	w.Expect(w.remembered).To(BeEmpty())
}

// TestSubscription_unchecked makes no project unready, whatever was known before.
func TestSubscription_unchecked(t *testing.T) {
	for _, registers := range []bool{true, false} {
		w := newWhatsAppAccount(t)
		reason := verifyv1.ReasonRegistered
		if !registers {
			reason = verifyv1.ReasonRegistrationByHand
			w.edit(func(s *settings.Settings) { s.WhatsApp.RegisterWebhook = false })
		}
		w.platform.subscribed = subscription{unchecked: "no permission"}
		for range patience + 1 {
			w.expectTrue(reason)
			w.Expect(w.conditions[len(w.conditions)-1].Message).To(HaveSuffix("; the app's subscription is not checked: no permission"))
			w.clock.Step(checkInterval)
		}
	}
}

// TestSubscription_unanswered: what was known stays, the question is repeated with a growing delay, and never before the platform allows.
func TestSubscription_unanswered(t *testing.T) {
	w := newWhatsAppAccount(t)
	message := func() string { return w.conditions[len(w.conditions)-1].Message }
	away := subscription{unchecked: "no answer", unanswered: true}
	w.platform.subscribed = away
	w.Expect(w.expectTrue(verifyv1.ReasonRegistered)).To(BeNumerically("<=", firstRetry))
	w.Expect(message()).To(ContainSubstring("not checked: no answer"))
	w.clock.Step(firstRetry)
	w.platform.subscribed = subscription{}
	w.expectTrue(verifyv1.ReasonRegistered)
	w.Expect(message()).NotTo(ContainSubstring("not checked"))

	w.platform.subscribed = away
	for n := range 3 {
		wait := w.expectTrue(verifyv1.ReasonRegistered)
		w.Expect(message()).NotTo(ContainSubstring("not checked"), "it was known")
		w.Expect(wait).To(BeNumerically("~", firstRetry<<n, firstRetry<<n/4))
		w.clock.Step(wait)
	}
	away.wait = time.Hour
	w.platform.subscribed = away
	w.expectTrue(verifyv1.ReasonRegistered)
	questions := w.platform.questions
	w.clock.Step(30 * time.Minute)
	w.edit(func(s *settings.Settings) { s.DisplayName = "another" })
	w.expectTrue(verifyv1.ReasonRegistered)
	w.Expect(w.platform.questions).To(Equal(questions), "the condition is of the new generation, without a call")
	w.edit(func(s *settings.Settings) { s.WhatsApp.BusinessAccountID = "7" })
	w.expectTrue(verifyv1.ReasonRegistered)
	w.Expect(w.platform.questions).To(Equal(questions+1), "of another account nothing is known")
	w.Expect(message()).To(ContainSubstring("not checked: no answer"))
}

// TestSubscription_refused: the token may read the subscription and not make it.
func TestSubscription_refused(t *testing.T) {
	w := newWhatsAppAccount(t)
	w.expectTrue(verifyv1.ReasonRegistered)
	w.restart()
	w.platform.subscribed = subscription{missing: true}
	w.platform.fails["subscribe"] = &whatsapp.Error{CallError: messengers.CallError{Class: messengers.CallCredentials}, Status: 403, Code: 200}
	wait := w.expectFalse(verifyv1.ReasonNotSubscribed)
	w.Expect(wait).To(BeNumerically("<=", firstRetry))
	w.Expect(w.conditions[len(w.conditions)-1].Message).To(ContainSubstring("permission whatsapp_business_management"))
	w.edit(func(s *settings.Settings) { s.WhatsApp = nil })
	w.reconcile()
	w.Expect(w.platform.callback).To(BeEmpty(), "the callback was ours all the same")

	w = newWhatsAppAccount(t)
	w.expectTrue(verifyv1.ReasonRegistered)
	w.platform.subscribed = subscription{missing: true}
	w.platform.fails["subscribe"] = &whatsapp.Error{CallError: messengers.CallError{Class: messengers.CallPlatformError}, Status: 500, Code: 2}
	for range patience - 1 {
		w.expectTrue(verifyv1.ReasonRegistered)
	}
	w.expectFalse(verifyv1.ReasonPlatformFailing)
	delete(w.platform.fails, "subscribe")
	w.expectTrue(verifyv1.ReasonRegistered)
}

func TestSubscription_endOfTheTerm(t *testing.T) {
	w := newWhatsAppAccount(t)
	w.edit(func(s *settings.Settings) { s.WhatsApp.RegisterWebhook = false })
	w.platform.subscribed = subscription{unchecked: "no answer", unanswered: true}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Expect(w.controller.reconcileOnce(ctx)).To(BeZero())
	w.Expect(w.conditions).To(BeEmpty())
}

const (
	businessID = "102290129340398"
	appID      = "987654321098765"
)

// fakeMeta is the part of the Graph API that is about business accounts.
type fakeMeta struct {
	*WithT

	mu sync.Mutex
	// apps are the apps that are subscribed, by business account. Others do not exist for the token.
	apps map[string][]string
	// numbers are the numbers of the business accounts.
	numbers map[string][]string
	// token is the answer to debug_token; empty for a refusal.
	token string
	// templates is the answer to message_templates; empty for a refusal.
	templates string
	// refuses is the status of all other answers, if it is not zero.
	refuses int
	calls   []string
}

func (f *fakeMeta) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Expect(r.Header.Get("Authorization")).To(Equal("Bearer " + accessToken))
	path := strings.TrimPrefix(r.URL.Path, "/"+whatsapp.GraphVersion+"/")
	f.calls = append(f.calls, r.Method+" "+path)
	node, edge, _ := strings.Cut(path, "/")
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) } //nolint:errchkjson // maps of the test
	type object = map[string]any
	switch {
	case f.refuses != 0:
		w.WriteHeader(f.refuses)
		answer(object{"error": object{"code": map[int]int{http.StatusUnauthorized: 190, http.StatusForbidden: 200, http.StatusInternalServerError: 2}[f.refuses]}})
	case node == "debug_token" && f.token != "":
		f.Expect(r.URL.Query().Get("input_token")).To(Equal(accessToken))
		_, _ = w.Write([]byte(f.token))
	case edge == "subscribed_apps" && f.apps[node] != nil && r.Method == http.MethodPost:
		f.apps[node] = append(f.apps[node], appID)
		answer(object{"success": true})
	case edge == "subscribed_apps" && f.apps[node] != nil:
		var data []object
		for _, app := range f.apps[node] {
			data = append(data, object{"whatsapp_business_api_data": object{"id": app, "name": "canary"}})
		}
		answer(object{"data": data})
	case edge == "message_templates" && f.templates != "":
		f.Expect(r.URL.Query().Get("name")).To(Equal("phoneproof_code"))
		_, _ = w.Write([]byte(f.templates))
	case edge == "phone_numbers" && f.numbers[node] != nil:
		var data []object
		for _, number := range f.numbers[node] {
			data = append(data, object{"id": number})
		}
		answer(object{"data": data})
	default:
		w.WriteHeader(http.StatusBadRequest)
		answer(object{"error": object{"code": 100, "error_subcode": 33}})
	}
}

// tokenOf returns the answer to debug_token for a token that manages these business accounts.
func tokenOf(app string, businessAccounts ...string) string {
	type object = map[string]any
	body, err := json.Marshal(object{"data": object{"app_id": app, "granular_scopes": []any{
		object{"scope": "whatsapp_business_messaging", "target_ids": []string{"7"}},
		object{"scope": "whatsapp_business_management", "target_ids": businessAccounts},
	}}})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// newMeta returns a Graph API with one business account, which has the number, and one app of another program subscribed to it.
func newMeta(t *testing.T) (*fakeMeta, *graph, *settings.Settings) {
	t.Helper()
	f := &fakeMeta{
		WithT: NewWithT(t), apps: map[string][]string{businessID: {"1"}}, token: tokenOf(appID, businessID),
		numbers: map[string][]string{businessID: {"2", "106540352242922"}},
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	client, err := whatsapp.NewClient(whatsapp.ClientOptions{GraphURL: server.URL})
	f.Expect(err).NotTo(HaveOccurred())
	return f, &graph{client: client}, newWhatsAppAccount(t).settings
}

func (f *fakeMeta) takeCalls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

func TestGraph_readSubscription(t *testing.T) {
	const debugToken, readApps = "GET debug_token", "GET " + businessID + "/subscribed_apps"
	readNumbers := "GET " + businessID + "/phone_numbers"
	mismatch := func(because string) func(subscription) bool {
		return func(s subscription) bool { return s == subscription{mismatch: because} }
	}
	missing := func(s subscription) bool {
		return s.missing && s.unchecked == "" && strings.HasSuffix(s.remedy, "/"+businessID+"/subscribed_apps")
	}
	subscribed := func(s subscription) bool { return !s.missing && s.unchecked == "" }
	unchecked := func(because string) func(subscription) bool {
		return func(s subscription) bool { return !s.missing && s.unchecked == because && !s.unanswered }
	}
	unanswered := func(s subscription) bool { return !s.missing && s.unchecked == accountUnanswered && s.unanswered }
	for name, row := range map[string]struct {
		change func(*fakeMeta, *settings.WhatsApp)
		want   func(subscription) bool
		calls  []string
	}{
		"missing": {func(*fakeMeta, *settings.WhatsApp) {}, missing, []string{debugToken, readNumbers, readApps}},
		"subscribed": {func(f *fakeMeta, _ *settings.WhatsApp) { f.apps[businessID] = []string{"1", appID} },
			subscribed, []string{debugToken, readNumbers, readApps}},
		"the account of the spec": {func(f *fakeMeta, a *settings.WhatsApp) {
			f.token, a.BusinessAccountID = tokenOf(appID, "3", "4"), businessID
		}, missing, []string{debugToken, readNumbers, readApps}},
		"the account of the spec has other numbers": {func(f *fakeMeta, a *settings.WhatsApp) {
			f.apps["3"], f.numbers["3"], a.BusinessAccountID = []string{appID}, []string{"9"}, "3"
		}, mismatch(otherAccountNamed), []string{debugToken, "GET 3/phone_numbers"}},
		"the same, and the token cannot be read": {func(f *fakeMeta, a *settings.WhatsApp) {
			f.token, f.numbers["3"], a.BusinessAccountID = "", []string{"9"}, "3"
		}, mismatch(otherAccountNamed), []string{debugToken, "GET 3/phone_numbers"}},
		"the account of the spec may not be read": {func(f *fakeMeta, a *settings.WhatsApp) {
			f.apps["3"], a.BusinessAccountID = []string{appID}, "3"
		}, unchecked(accountRefused), []string{debugToken, "GET 3/phone_numbers"}},
		"a token of one other account": {func(f *fakeMeta, _ *settings.WhatsApp) {
			f.token, f.apps["3"], f.numbers["3"] = tokenOf(appID, "3"), []string{appID}, []string{"9"}
		}, mismatch(otherAccountsOfToken), []string{debugToken, "GET 3/phone_numbers"}},
		"a token of two other accounts": {func(f *fakeMeta, _ *settings.WhatsApp) {
			f.token, f.numbers["3"], f.numbers["4"] = tokenOf(appID, "3", "4"), []string{"9"}, []string{}
		}, mismatch(otherAccountsOfToken), []string{debugToken, "GET 3/phone_numbers", "GET 4/phone_numbers"}},
		"the same, one of which may not be read": {func(f *fakeMeta, _ *settings.WhatsApp) {
			f.token, f.numbers["3"] = tokenOf(appID, "3", "4"), []string{"9"}
		}, unchecked(accountNotFound), []string{debugToken, "GET 3/phone_numbers", "GET 4/phone_numbers"}},
		"one of several accounts": {func(f *fakeMeta, _ *settings.WhatsApp) {
			f.token, f.numbers["3"] = tokenOf(appID, "3", "4", businessID, "5"), []string{"9"}
		}, missing, []string{debugToken, "GET 3/phone_numbers", "GET 4/phone_numbers", readNumbers, readApps}},
		"none of many accounts": {func(f *fakeMeta, _ *settings.WhatsApp) {
			f.token = tokenOf(appID, strings.Split("11 12 13 14 15 16 17 18 "+businessID, " ")...)
		}, unchecked(accountNotFound), append([]string{debugToken},
			strings.Split(strings.Repeat("GET N/phone_numbers,", maxBusinessAccounts-1)+"GET N/phone_numbers", ",")...)},
		"a token for any account":     {func(f *fakeMeta, _ *settings.WhatsApp) { f.token = tokenOf(appID) }, unchecked(accountNotFound), []string{debugToken}},
		"a token that cannot be read": {func(f *fakeMeta, _ *settings.WhatsApp) { f.token = "" }, unchecked(accountRefused), []string{debugToken}},
		"an answer that is none":      {func(f *fakeMeta, _ *settings.WhatsApp) { f.token = "<html>" }, unanswered, []string{debugToken}},
		"an account that it may not read": {func(f *fakeMeta, _ *settings.WhatsApp) { f.numbers = nil },
			unchecked(accountRefused), []string{debugToken, readNumbers}},
		"apps that it may not read": {func(f *fakeMeta, _ *settings.WhatsApp) { f.apps = nil },
			unchecked(accountRefused), []string{debugToken, readNumbers, readApps}},
		"no app id, and any app": {func(f *fakeMeta, _ *settings.WhatsApp) { f.token = tokenOf("", businessID) },
			subscribed, []string{debugToken, readNumbers, readApps}},
		"no app id, and none": {func(f *fakeMeta, _ *settings.WhatsApp) {
			f.token, f.apps[businessID] = tokenOf("", businessID), []string{}
		}, missing, []string{debugToken, readNumbers, readApps}},
		"an app without an id": {func(f *fakeMeta, _ *settings.WhatsApp) { f.apps[businessID] = []string{""} },
			subscribed, []string{debugToken, readNumbers, readApps}},
		"the account of the spec, and a token that cannot be read": {func(f *fakeMeta, a *settings.WhatsApp) { f.token, a.BusinessAccountID = "", businessID },
			subscribed, []string{debugToken, readNumbers, readApps}},
		"no permission at all":  {func(f *fakeMeta, _ *settings.WhatsApp) { f.refuses = 403 }, unchecked(accountRefused), []string{debugToken}},
		"a platform that fails": {func(f *fakeMeta, _ *settings.WhatsApp) { f.refuses = 500 }, unanswered, []string{debugToken}},
		"the same, account known": {func(f *fakeMeta, a *settings.WhatsApp) { f.refuses, a.BusinessAccountID = 500, businessID },
			unanswered, []string{debugToken}},
		"credentials of a simulator": {func(_ *fakeMeta, a *settings.WhatsApp) { a.Simulated = true }, unchecked(noSimulator), nil},
	} {
		t.Run(name, func(t *testing.T) {
			f, m, s := newMeta(t)
			row.change(f, s.WhatsApp)
			found := m.readSubscription(t.Context(), s)
			f.Expect(row.want(found)).To(BeTrue(), "%+v", found)
			f.Expect(found.unchecked).NotTo(MatchRegexp(`canary|[0-9]{3}|://`))
			calls := f.takeCalls()
			for i := range calls {
				if strings.HasPrefix(calls[i], "GET 1") && len(calls[i]) == len("GET 11/phone_numbers") {
					calls[i] = "GET N/phone_numbers"
				}
			}
			f.Expect(calls).To(Equal(row.calls))
		})
	}
}

// TestGraph_asksForTheAccountOnce, until spec or token change.
func TestGraph_asksForTheAccountOnce(t *testing.T) {
	f, m, s := newMeta(t)
	f.Expect(m.readSubscription(t.Context(), s).missing).To(BeTrue())
	f.takeCalls()
	f.Expect(m.subscribeApp(t.Context(), s)).To(Succeed())
	f.Expect(m.readSubscription(t.Context(), s).missing).To(BeFalse())
	f.Expect(f.takeCalls()).To(Equal([]string{"POST " + businessID + "/subscribed_apps", "GET " + businessID + "/subscribed_apps"}))
	s.WhatsApp.BusinessAccountID = businessID
	m.readSubscription(t.Context(), s)
	f.Expect(f.takeCalls()).To(HaveLen(3))
	m.readSubscription(t.Context(), s)
	f.Expect(f.takeCalls()).To(HaveLen(1))
	s.WhatsApp.PhoneNumberID = "8"
	for range 2 { // the number may be moved to the account
		f.Expect(m.readSubscription(t.Context(), s).mismatch).To(Equal(otherAccountNamed))
		f.Expect(f.takeCalls()).To(HaveLen(2))
	}
	f.mu.Lock()
	f.numbers[businessID] = append(f.numbers[businessID], "8")
	f.mu.Unlock()
	f.Expect(m.readSubscription(t.Context(), s).missing).To(BeFalse())
	f.Expect(f.takeCalls()).To(HaveLen(3))
}

// TestGraph_explainsARefusedSubscription with the command that makes it, and nothing of the token.
func TestGraph_explainsARefusedSubscription(t *testing.T) {
	f, m, s := newMeta(t)
	f.Expect(m.readSubscription(t.Context(), s).missing).To(BeTrue())
	f.mu.Lock()
	f.refuses = http.StatusForbidden
	f.mu.Unlock()
	err := m.subscribeApp(t.Context(), s)
	f.Expect(err).To(HaveOccurred())
	said := m.explainError(err, stepSubscribe)
	f.Expect(said.reason).To(Equal(verifyv1.ReasonNotSubscribed))
	f.Expect(said.temporary).To(BeFalse())
	f.Expect(said.message).To(And(ContainSubstring("curl -X POST -H 'Authorization: Bearer ACCESS_TOKEN' "),
		HaveSuffix("/"+whatsapp.GraphVersion+"/"+businessID+"/subscribed_apps"), Not(ContainSubstring("canary"))))
}
