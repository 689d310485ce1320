package page

import (
	"errors"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/page/view"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestWrongNumber_leadsBack with a hint for the client, which is all that changes: anyone with the link can do it.
func TestWrongNumber_leadsBack(t *testing.T) {
	for before, want := range map[verification.HintKind]struct {
		state view.State
		hint  verification.HintKind
	}{
		"":                                    {view.Ready, verification.HintNumberWrong},
		verification.HintOtherNumber:          {view.OtherNumber, verification.HintNumberWrong},
		verification.HintNumberHidden:         {view.Hidden, verification.HintNumberWrong},
		verification.HintAwaitingContact:      {view.Seen, verification.HintAwaitingContact},
		verification.HintAwaitingConfirmation: {view.Confirm, verification.HintAwaitingConfirmation},
		verification.HintTextRefused:          {view.TextRefused, verification.HintTextRefused},
	} {
		s := newSite(t)
		initiated, page := s.start(func(in *verification.Initiation) { in.ReturnURL = "https://shop.example/back?order=7" })
		id := initiated.Request.ID
		if before != "" {
			s.update(id, addHint(before))
		}
		first, err := s.store.Read(t.Context(), id)
		s.Expect(err).NotTo(HaveOccurred())
		for range 2 {
			response, body := s.post(page+"/wrong-number?returnURL=https://evil.example", "returnURL=https://evil.example")
			s.Expect(response.StatusCode).To(Equal(http.StatusSeeOther), string(before))
			s.Expect(response.Header.Get("Location")).To(Equal("https://shop.example/back?order=7&requestId=" + id + "&status=PENDING"))
			s.Expect(response.Cookies()).To(BeEmpty())
			s.Expect(body).To(BeEmpty())
		}
		stored, err := s.store.Read(t.Context(), id)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(stored.HintAt(time.Now())).To(Equal(want.hint), string(before))
		s.Expect(stored.Event()).To(Equal(first.Event()), string(before))
		s.Expect(s.stateOf(page)).To(BeEquivalentTo(want.state), "%s: the page goes on", before)
		stored.Hints, stored.Version = first.Hints, first.Version
		s.Expect(stored).To(Equal(first), string(before))
		s.verify(id)
		s.Expect(s.stateOf(page)).To(BeEquivalentTo(view.Verified), "%s: so does the request", before)
	}
}

// TestWrongNumber_isRefused from other sites and by a look, which leave the request as it is.
func TestWrongNumber_isRefused(t *testing.T) {
	s := newSite(t)
	initiated, page := s.start()
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut} {
		response, _ := s.send(method, page+"/wrong-number")
		s.Expect(response.StatusCode).To(Equal(http.StatusMethodNotAllowed), "%s, which previews and scanners send", method)
	}
	for name, header := range map[string][]string{
		"a form of another site":  {"Sec-Fetch-Site", "cross-site"},
		"a form of a subdomain":   {"Sec-Fetch-Site", "same-site"},
		"a script of another one": {"Sec-Fetch-Site", "", "Origin", "https://evil.example"},
		"a frame without origin":  {"Sec-Fetch-Site", "", "Origin", "null"},
	} {
		response, _ := s.post(page+"/wrong-number", "", header...)
		s.Expect(response.StatusCode).To(Equal(http.StatusForbidden), name)
		s.Expect(response.Header.Get("Location")).To(BeEmpty(), name)
	}
	stored, err := s.store.Read(t.Context(), initiated.Request.ID)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(stored.Hints).To(BeEmpty())
}

// TestWrongNumber_showsThePage where it has more to show, or there is no way back.
func TestWrongNumber_showsThePage(t *testing.T) {
	s := newSite(t)
	none, page := s.start(func(in *verification.Initiation) { in.ReturnURL = "" })
	s.Expect(s.get(page)).NotTo(ContainSubstring("wrong-number"))
	withdrawn, other := s.start()
	s.changeSettings(func(c *settings.Settings) { c.Page.ReturnURLs = nil })
	for _, url := range []string{page, other} {
		response, body := s.post(url+"/wrong-number", "")
		s.Expect(response.StatusCode).To(Equal(http.StatusOK))
		s.Expect(body).To(And(ContainSubstring(`data-state="ready"`), Not(ContainSubstring("shop.example"))), "none, or one that was withdrawn")
	}
	s.Expect(none.Request.ID).NotTo(Equal(withdrawn.Request.ID))
	s.settings.Store(shopSettings())

	p := s.startSession()
	p.prove(verification.WhatsApp)
	before := p.stored()
	_, body := s.post(p.url+"/wrong-number", "")
	s.Expect(body).To(ContainSubstring(`data-state="digits"`), "the number was right")
	s.Expect(p.stored()).To(Equal(before))
	p.confirm()
	_, body = s.post(p.url+"/wrong-number", "")
	s.Expect(body).To(ContainSubstring(`data-state="verified"`))
}

// TestWrongNumber_leadsBackWithoutTheStore: the hint is lost, and the way back is not.
func TestWrongNumber_leadsBackWithoutTheStore(t *testing.T) {
	s := newSite(t)
	_, page := s.start()
	s.handler.Service = verification.NewService(verification.NewCodeSpace("books/shop"), failingWrites{s.store})
	response, _ := s.post(page+"/wrong-number", "")
	s.Expect(response.StatusCode).To(Equal(http.StatusSeeOther))
	s.Expect(response.Header.Get("Location")).To(HavePrefix("https://shop.example/back?"))
	s.backend.Fail(errors.New("down"))
	response, _ = s.post(page+"/wrong-number", "")
	s.Expect(response.StatusCode).To(Equal(http.StatusServiceUnavailable), "where it leads to is stored")
}

// TestPage_showsPurposeAndTimeLeft at the time of each call.
func TestPage_showsPurposeAndTimeLeft(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	s := newSite(t, func(o *Options) { o.Clock = now })
	project := &verifyv1.VerificationProject{}
	project.Spec.Purposes = []verifyv1.Purpose{{Name: "sign-in", Title: "Sign in", Titles: map[string]verifyv1.PurposeTitle{"de": "Anmeldung"}}}
	s.changeSettings(func(c *settings.Settings) { c.Purposes = settings.FromProject(project, settings.Secrets{}).Purposes })
	initiated, page := s.start(func(in *verification.Initiation) { in.Terms.Purpose = "sign-in" })
	s.Expect(s.get(page)).To(ContainSubstring("Purpose: <bdi>Sign in</bdi>"))
	s.Expect(s.get(page, "Accept-Language", "de")).To(ContainSubstring("Zweck: <bdi>Anmeldung</bdi>"))
	now.SetTime(initiated.Request.ExpiresAt.Add(-2 * time.Minute))
	s.Expect(s.get(page)).To(ContainSubstring(`data-left="120"`))
	now.Step(90 * time.Second)
	s.Expect(s.get(page)).To(And(ContainSubstring(`data-left="30"`), ContainSubstring(">Less than a minute left<")))
}
