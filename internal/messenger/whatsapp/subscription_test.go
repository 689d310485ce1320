package whatsapp

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
)

const (
	businessID = "102290129340398"
	appID      = "987654321098765"
)

func TestClient_readsTheSubscription(t *testing.T) {
	w := newWorlds(t)
	ctx := t.Context()
	w.graph.answers(http.StatusOK, golden(t, "answers/debug_token"))
	token, err := w.client.InspectToken(ctx, w.real)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(token).To(Equal(Token{AppID: appID, BusinessAccounts: []string{businessID, "102290129340399"}}))

	w.graph.answers(http.StatusOK, golden(t, "answers/phone_numbers"))
	w.Expect(w.client.OwnsNumber(ctx, w.real, businessID)).To(BeTrue())
	other := *w.real
	other.PhoneNumberID = "106540352242923"
	w.Expect(w.client.OwnsNumber(ctx, &other, businessID)).To(BeFalse())

	w.graph.answers(http.StatusOK, golden(t, "answers/subscribed_apps"))
	w.Expect(w.client.SubscribedApps(ctx, w.real, businessID)).To(Equal([]string{"670843887433847", appID}))
	w.graph.answers(http.StatusOK, []byte(`{"data":[]}`))
	w.Expect(w.client.SubscribedApps(ctx, w.real, businessID)).To(BeEmpty())
	w.graph.answers(http.StatusOK, []byte(`{"data":[{}]}`))
	w.Expect(w.client.SubscribedApps(ctx, w.real, businessID)).To(Equal([]string{""}))

	w.graph.answers(http.StatusOK, golden(t, "answers/success"))
	w.Expect(w.client.SubscribeApp(ctx, w.real, businessID)).To(Succeed())

	var asked []string
	for _, call := range w.graph.all() {
		w.Expect(call.Authorization).To(Equal("Bearer " + accessToken))
		w.Expect(call.Body).To(BeEmpty())
		asked = append(asked, call.Method+" "+strings.TrimPrefix(call.URI, "/"+GraphVersion))
	}
	w.Expect(asked).To(Equal([]string{
		"GET /debug_token?input_token=" + accessToken,
		"GET /" + businessID + "/phone_numbers?fields=id&limit=100", "GET /" + businessID + "/phone_numbers?fields=id&limit=100",
		"GET /" + businessID + "/subscribed_apps", "GET /" + businessID + "/subscribed_apps", "GET /" + businessID + "/subscribed_apps",
		"POST /" + businessID + "/subscribed_apps",
	}))
}

// TestClient_numbersOnSeveralPages are all read, within a bound.
func TestClient_numbersOnSeveralPages(t *testing.T) {
	w := newWorlds(t)
	const endless = `{"data":[{"id":"1"}],"paging":{"cursors":{"after":"QV&1"},"next":"https://graph.facebook.com/next"}}`
	answers := func(last string) {
		w.graph.answersWith(func(query url.Values) string {
			if query.Get("after") == "QV&1" {
				return last
			}
			return endless
		})
	}
	answers(`{"data":[{"id":"` + w.real.PhoneNumberID + `"}]}`)
	w.Expect(w.client.OwnsNumber(t.Context(), w.real, businessID)).To(BeTrue())
	w.Expect(w.graph.all()).To(HaveLen(2))
	answers(`{"data":[{"id":"2"}],"paging":{"cursors":{"after":"QV&2"}}}`)
	w.Expect(w.client.OwnsNumber(t.Context(), w.real, businessID)).To(BeFalse())
	answers(endless)
	_, err := w.client.OwnsNumber(t.Context(), w.real, businessID)
	w.Expect(err).To(MatchError(errTooManyNumbers))
	w.Expect(w.graph.all()).To(HaveLen(2 + 2 + maxNumberPages))
}

// TestClient_subscriptionOfOddAccounts: no call leaves with an id that is none, and none stands for the number.
func TestClient_subscriptionOfOddAccounts(t *testing.T) {
	w := newWorlds(t)
	for _, id := range []string{"", "1/2", "1?x", "..", "1 2", strings.Repeat("1", 65)} {
		_, err := w.client.SubscribedApps(t.Context(), w.real, id)
		w.Expect(err).To(HaveOccurred(), id)
		_, err = w.client.OwnsNumber(t.Context(), w.real, id)
		w.Expect(err).To(HaveOccurred(), id)
		w.Expect(w.client.SubscribeApp(t.Context(), w.real, id)).NotTo(Succeed(), id)
	}
	w.Expect(w.graph.all()).To(BeEmpty())
}

// TestClient_tokenInTheQuery: the only call with the token in its URL shows it in no error.
func TestClient_tokenInTheQuery(t *testing.T) {
	w := newWorlds(t)
	fail := func(says string) {
		t.Helper()
		_, err := w.client.InspectToken(t.Context(), w.real)
		w.Expect(err).To(MatchError(ContainSubstring(says)))
		var all strings.Builder
		for ; err != nil; err = errors.Unwrap(err) {
			fmt.Fprintf(&all, "%v %+v %#v %q", err, err, err, err)
		}
		w.Expect(all.String()).NotTo(Or(ContainSubstring(accessToken), ContainSubstring("input_token"), ContainSubstring("127.0.0.1")))
	}
	w.graph.answers(http.StatusBadRequest, []byte(`{"error":{"code":190,"message":"`+accessToken+`"}}`))
	fail("code 190")
	w.graph.answers(http.StatusOK, []byte(`<html>`+accessToken))
	fail("unreadable")
	w.graph.Close()
	fail("unreachable")
}

func TestClient_subscribeCommand(t *testing.T) {
	w := newWorlds(t)
	const form = "curl -X POST -H 'Authorization: Bearer ACCESS_TOKEN' %s/" + GraphVersion + "/" + businessID + "/subscribed_apps"
	w.Expect(w.client.SubscribeCommand(w.real, businessID)).To(Equal(fmt.Sprintf(form, w.graph.URL)))
	w.Expect(w.client.SubscribeCommand(w.simulated, businessID)).To(Equal(fmt.Sprintf(form, w.simulator.URL+"/graph")))
	contradictory := &settings.WhatsApp{AccessToken: settings.NewSecret([]byte("sim_canarytoken"))}
	w.Expect(w.client.SubscribeCommand(contradictory, businessID)).To(Equal(fmt.Sprintf(form, DefaultGraphURL)))
	_, err := w.client.InspectToken(t.Context(), contradictory)
	w.Expect(err).To(MatchError(messenger.ErrNoSimulator))
}
