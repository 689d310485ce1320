package simulator

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestWebhooks_comeAgainUntilTheyAreTaken(t *testing.T) {
	for name, link := range map[string]string{"WhatsApp": waLink, "Telegram": tgLink} {
		t.Run(name, func(t *testing.T) {
			w, c := registered(t, http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusOK)
			w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+link+`"}`)
			w.Eventually(func() any { return w.line("1")["state"] }).WithTimeout(patience).Should(Equal("delivered"))
			got := c.all()
			w.Expect(got).To(HaveLen(3))
			w.Expect(got[1].body).To(Equal(got[0].body), "byte for byte")
			w.Expect(got[2].body).To(Equal(got[0].body))
			deliveries := w.call(http.StatusOK, http.MethodGet, "/sim/deliveries", "")["deliveries"].([]any)
			w.Expect(deliveries[2]).To(And(HaveKeyWithValue("attempt", BeEquivalentTo(3)), HaveKeyWithValue("status", BeEquivalentTo(200)), Not(HaveKey("nextAt"))))
			w.Expect(deliveries[0]).To(HaveKey("nextAt"))
		})
	}
}

func TestWebhooks_areGivenUpAtSomeTime(t *testing.T) {
	for name, link := range map[string]string{"WhatsApp": waLink, "Telegram": tgLink} {
		t.Run(name, func(t *testing.T) {
			w, c := registered(t, http.StatusForbidden)
			w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+link+`"}`)
			w.Eventually(func() any { return w.line("1")["state"] }).WithTimeout(patience).Should(Equal("failed"))
			w.Expect(c.all()).To(HaveLen(attempts))
		})
	}
}

func TestWebhooks_ofMetaAreTakenBy200Alone(t *testing.T) {
	w, c := registered(t, http.StatusNoContent, http.StatusOK)
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+waLink+`"}`)
	w.Eventually(func() any { return w.line("1")["state"] }).WithTimeout(patience).Should(Equal("delivered"))
	w.Expect(c.all()).To(HaveLen(2))
}

func TestWebhooks_ofOneTelegramChatStayInOrder(t *testing.T) {
	w, c := registered(t, http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusOK)
	for range 3 {
		w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+tgLink+`"}`)
	}
	w.Eventually(c.all).WithTimeout(patience).Should(HaveLen(5))
	var ids []int64
	for _, p := range c.all() {
		var update struct {
			ID int64 `json:"update_id"`
		}
		w.Expect(json.Unmarshal(p.body, &update)).To(Succeed())
		ids = append(ids, update.ID-firstUpdateID)
	}
	w.Expect(ids).To(Equal([]int64{0, 0, 0, 1, 2}))
}

func TestWebhooks_goNowhereWithoutACallback(t *testing.T) {
	w := startSimulator(t, Options{})
	w.Expect(w.sim.AddWhatsApp(WhatsAppAccount{PhoneNumberID: "1", Number: "+4915112345670", AppSecret: credential})).To(Succeed())
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+waLink+`"}`)
	w.Expect(w.line("1")).To(HaveKeyWithValue("state", "undeliverable"))
}

func TestWebhooks_doNotReachMetadataServices(t *testing.T) {
	w := startSimulator(t, Options{})
	w.Expect(w.sim.AddWhatsApp(WhatsAppAccount{
		PhoneNumberID: "1", Number: "+4915112345670", AppSecret: credential, Callback: "http://169.254.169.254/latest",
	})).To(Succeed())
	w.writeAs("1")
	w.Eventually(func() any { return w.call(http.StatusOK, http.MethodGet, "/sim/deliveries", "")["deliveries"] }).WithTimeout(patience).
		Should(ContainElement(HaveKeyWithValue("error", ContainSubstring("link-local"))))
}

func TestBackoff_doublesUpToItsLimit(t *testing.T) {
	g := NewWithT(t)
	for attempt, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 7: time.Minute, 8: time.Minute} {
		g.Expect(retryDelay(time.Second, attempt)).To(Equal(want))
	}
}
