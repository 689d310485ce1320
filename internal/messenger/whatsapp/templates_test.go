package whatsapp

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestClient_readsTemplates(t *testing.T) {
	w := newWorlds(t)
	w.graph.answers(http.StatusOK, golden(t, "answers/message_templates"))
	w.Expect(w.client.ReadTemplate(t.Context(), w.real, businessID, "verify_code")).To(Equal([]Template{
		{Language: "en_US", Category: "AUTHENTICATION", Status: "APPROVED", Quality: "GREEN", SendTTL: 5 * time.Minute, CopyCode: true},
		{Language: "pt_BR", Category: "AUTHENTICATION", Status: "PAUSED", CopyCode: true},
	}))
	w.Expect(w.client.ReadTemplate(t.Context(), w.real, businessID, "other")).To(BeEmpty())
	w.Expect(w.graph.all()[0].URI).To(Equal("/" + GraphVersion + "/" + businessID + "/message_templates?fields=" +
		"name%2Clanguage%2Ccategory%2Cstatus%2Cquality_score%2Cmessage_send_ttl_seconds%2Ccomponents&limit=100&name=verify_code"))

	const endless = `{"data":[{"name":"x","language":"de"}],"paging":{"cursors":{"after":"QV&1"},"next":"https://graph.facebook.com/next"}}`
	w.graph.answersWith(func(query url.Values) string {
		if query.Get("after") == "QV&1" {
			return `{"data":[{"name":"x","language":"fr"}]}`
		}
		return endless
	})
	w.Expect(w.client.ReadTemplate(t.Context(), w.real, businessID, "x")).To(Equal([]Template{{Language: "de"}, {Language: "fr"}}))
	w.graph.answers(http.StatusOK, []byte(endless))
	_, err := w.client.ReadTemplate(t.Context(), w.real, businessID, "x")
	w.Expect(err).To(MatchError(errTooManyTemplates))
	_, err = w.client.ReadTemplate(t.Context(), w.real, "", "x")
	w.Expect(err).To(HaveOccurred())
}

func TestTemplateButton_copiesCode(t *testing.T) {
	g := NewWithT(t)
	for button, want := range map[templateButton]bool{
		{Type: "OTP", OTPType: "COPY_CODE"}: true,
		{Type: "otp", OTPType: "copy_code"}: true,
		{Type: "OTP", OTPType: "ONE_TAP"}:   false,
		{Type: "OTP", OTPType: "ZERO_TAP"}:  false,
		{Type: "URL", URL: "https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code=otp{{1}}"}: true,
		{Type: "URL", URL: "https://www.whatsapp.com/otp/code/?otp_type=ONE_TAP&code=otp{{1}}"}:   false,
		{Type: "URL", URL: "https://example.com/{{1}}"}:                                           false,
		{Type: "QUICK_REPLY"}: false,
	} {
		g.Expect(button.copiesCode()).To(Equal(want), "%+v", button)
	}
}
