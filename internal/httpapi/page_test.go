package httpapi

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// withPage gives a project a page, and the other messenger to choose there.
func withPage(c *setup) {
	changed := *c.settings
	changed.Page = &settings.Page{ReturnURLs: []string{"https://shop.example"}}
	c.settings = &changed
	c.options.Pages = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
}

func TestInit_returnURL(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, withPage)
	for name, test := range map[string]struct {
		value string
		code  verification.ErrorCode
	}{
		"listed":          {`"https://shop.example/back?order=7"`, ""},
		"null":            {`null`, ""},
		"of another site": {`"https://shop.example.evil.example/"`, codeInvalidReturnURL},
		"empty":           {`""`, codeInvalidReturnURL},
		"a number":        {`7`, codeInvalidType},
		"half a pair":     {`"https://shop.example/\ud83d"`, codeInvalidJSON},
	} {
		a := h.do(bodyWith("returnURL", test.value).markInvalid())
		if test.code == "" {
			g.Expect(a.status).To(Equal(http.StatusOK), name)
			continue
		}
		g.Expect(a.status).To(Equal(http.StatusBadRequest), name)
		g.Expect(a.errorField("code")).To(Equal(string(test.code)), name)
	}
	h.changeSettings(func(s *settings.Settings) {
		s.Page = &settings.Page{ReturnURLs: []string{"https://shop.example", "http://localhost:3000/back?a=1"}}
	})
	g.Expect(h.do(bodyWith("returnURL", `"https://evil.example/"`)).errorField("message")).To(Equal("returnURL must be a URL of ASCII characters without " +
		"a fragment that is one of spec.page.returnURLs of the project, or below an origin of them: http://localhost:3000/back?a=1, https://shop.example."))
	h.changeSettings(func(s *settings.Settings) { s.Page = &settings.Page{} })
	g.Expect(h.do(bodyWith("returnURL", `"https://shop.example/"`)).errorField("message")).To(ContainSubstring("no spec.page.returnURLs"))
	h.changeSettings(func(s *settings.Settings) { s.Page = nil })
	g.Expect(h.do(bodyWith("returnURL", `"https://shop.example/"`).markInvalid()).errorField("code")).To(Equal(string(codeInvalidReturnURL)), "without a page")
}

func TestInit_answersThePage(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, withPage)
	a := h.do(requestWithBody(`{"phoneNumber":"+4915123456789"}`))
	g.Expect(a.fields["pageURL"]).To(Equal("https://verify.example/v/TICKET"))
	h.changeSettings(func(s *settings.Settings) { s.Page = nil })
	g.Expect(h.do(requestWithBody(`{"phoneNumber":"+4915123456789"}`)).fields).NotTo(HaveKey("pageURL"))
}

func TestStatus_namesTheMethodWhereThereAreTwo(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, withPage)
	id := h.do(requestWithBody(`{"phoneNumber":"+4915123456789"}`)).fields["requestId"].(string)
	g.Expect(h.do(statusRequest(keyAll, "id="+id)).fields["method"]).To(Equal("WHATSAPP"))
	_, err := h.store.Update(t.Context(), id, func(r *verification.Request, now time.Time) error {
		return r.Verify(verification.Evidence{Method: verification.Telegram, Sender: r.Phone, SentAt: now}, now, 0)
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(h.do(statusRequest(keyAll, "id="+id)).fields["method"]).To(Equal("TELEGRAM"))

	h.changeSettings(func(s *settings.Settings) { s.Page = nil })
	id = h.do(requestWithBody(`{"phoneNumber":"+4915123456789"}`)).fields["requestId"].(string)
	g.Expect(h.do(statusRequest(keyAll, "id="+id)).fields).NotTo(HaveKey("method"))
}

// TestPages_areServedBelowTheirPrefix also looks for tickets and return codes in logs and metrics.
func TestPages_areServedBelowTheirPrefix(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t, withPage, func(c *setup) { c.settings.PathPrefix = "/phone" })
	h.canaries.add("TICKET", "RETURNCODE")
	for path, want := range map[string]int{
		"/v/TICKET": http.StatusOK, "/v/TICKET/events": http.StatusOK, "/v/TICKET/return?code=RETURNCODE": http.StatusOK, "/phone/v/TICKET": http.StatusOK, "/v/": http.StatusOK,
		"/v?code=RETURNCODE": http.StatusNotFound, "/x/v/TICKET/return?code=RETURNCODE": http.StatusNotFound,
		"/v": http.StatusNotFound, "/x/v/TICKET": http.StatusNotFound, "/phone/x/v/TICKET": http.StatusNotFound,
	} {
		response, err := h.client.Get("http://" + h.address + path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(response.StatusCode).To(Equal(want), path)
	}
	g.Expect(h.gatherMetrics()).To(And(ContainSubstring(`route="/v/"`), ContainSubstring(`route="/v/ (wait)"`)), "open pages do not count as slow answers")
}
