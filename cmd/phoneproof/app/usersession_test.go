package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/page"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// sessionSite serves the pages of requests at the level Session, and the client's page on another origin. What the chat shows is
// computed, so that the page is tested alone.
type sessionSite struct {
	*WithT

	t        *testing.T
	settings *settings.Settings
	store    verification.Store
	service  *verification.Service
	// client is the origin of the client.
	client string
}

// startSessionSite starts both, with pages by a clock.
func startSessionSite(t *testing.T, now clock.Clock) *sessionSite {
	t.Helper()
	s := &sessionSite{WithT: NewWithT(t), t: t}
	client := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>Shop</title><link rel="icon" href="data:,"><h1>Shop</h1>`))
	}))
	t.Cleanup(client.Close)
	s.client = client.URL
	pages := http.NewServeMux()
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	s.settings = &settings.Settings{
		Project: "demo/shop", DisplayName: "Ada's Bookshop", BaseURL: server.URL,
		WhatsApp: &settings.WhatsApp{AppSecret: settings.NewSecret([]byte("an app secret")), PhoneNumber: "+4915112345670"},
		Telegram: &settings.Telegram{BotToken: settings.NewSecret([]byte("123:a bot token")), BotUsername: "ada_bot"},
		Page:     &settings.Page{ReturnURLs: []string{s.client}},
	}
	codes := verification.NewCodeSpace(s.settings.Project)
	s.store = memory.NewBackend(memory.Options{Clock: clock.RealClock{}}).Open(s.settings.Project)
	s.service = verification.NewService(codes, s.store)
	handler, err := page.NewHandler(page.Options{
		Clock: now, Settings: func() *settings.Settings { return s.settings }, Service: s.service,
		Link: func(_ *settings.Settings, _ *verification.Request, code verification.Code) string {
			return chatLink(code)
		},
	})
	s.Expect(err).NotTo(HaveOccurred())
	pages.Handle(page.Prefix, handler)
	return s
}

// chatLink is the link that opens the messenger.
func chatLink(code verification.Code) string {
	return "https://wa.me/4915112345670?text=" + code.Grouped()
}

// sessionUser is a user with the page of a request open.
type sessionUser struct {
	*userPage

	site    *sessionSite
	request verification.Initiated
}

// openSessionPage starts a verification at the level Session and opens its page.
func (b *tab) openSessionPage(s *sessionSite, locale string, change ...func(*verification.Initiation)) *sessionUser {
	b.t.Helper()
	number, err := phone.FromE164(ada)
	s.Expect(err).NotTo(HaveOccurred())
	in := verification.Initiation{
		Phone: number, Method: verification.WhatsApp, OtherMethods: []verification.Method{verification.Telegram}, TTL: 10 * time.Minute,
	}
	in.Terms.Level, in.ReturnURL, in.Locale = verification.LevelSession, s.client+"/back?order=7", locale
	for _, edit := range change {
		edit(&in)
	}
	request, err := s.service.Initiate(b.t.Context(), in)
	s.Expect(err).NotTo(HaveOccurred())
	u := &sessionUser{site: s, request: request, userPage: &userPage{
		tab: b, id: request.Request.ID, link: chatLink(request.Code), url: page.URL(s.settings, in.Method, request.Code, time.Now()),
	}}
	u.UseAxe("color-contrast", "document-title", "html-has-lang")
	u.Open(u.url)
	return u
}

// proveNumber has the claimed number send the message.
func (u *sessionUser) proveNumber() {
	u.t.Helper()
	receipt, err := u.site.service.Receive(u.t.Context(), verification.Message{
		Text:     u.request.Code.Grouped(),
		Evidence: verification.Evidence{Method: verification.WhatsApp, Sender: u.request.Request.Phone, SentAt: time.Now()},
	}, 0)
	u.Expect(err).NotTo(HaveOccurred())
	u.Expect(receipt.Outcome).To(Equal(verification.OutcomeProven))
}

// readStored returns the request.
func (u *sessionUser) readStored() verification.Request {
	u.t.Helper()
	r, err := u.site.store.Read(u.t.Context(), u.id)
	u.Expect(err).NotTo(HaveOccurred())
	return r
}

// readChat returns the digits and the return link that the chat shows.
func (u *sessionUser) readChat() (digits, link string) {
	u.t.Helper()
	r := u.readStored()
	codes, found := u.site.settings.SessionCodes(&r, time.Now())
	u.Expect(found).To(BeTrue())
	return codes.Digits.Reveal(), u.url + "/return?code=" + codes.Return.Reveal()
}

// expectBack waits for the client's page, with the return code.
func (u *sessionUser) expectBack() {
	u.t.Helper()
	_, link := u.readChat()
	_, code, _ := strings.Cut(link, "?")
	u.AwaitLocation(Equal(u.site.client + "/back?order=7&requestId=" + u.id + "&status=PENDING&" + code))
	u.AwaitText("h1", Equal("Shop"))
	u.Expect(u.Eval(`document.referrer`)).To(BeEmpty())
	u.Expect(u.readStored().Phase).To(Equal(verification.Pending), "the client decides")
}

// TestUserSession_returnsOnAPhone by the link in the chat, which opens in the browser that the user came from, and then by the digits.
func TestUserSession_returnsOnAPhone(t *testing.T) {
	t.Parallel()
	s := startSessionSite(t, clock.RealClock{})
	b := openTab(t)
	b.EmulatePhone()
	b.HandLinksToApps()
	u := b.openSessionPage(s, "")
	u.expectTitle("Verify your phone number")
	u.Press("#open")
	u.AwaitApp()
	u.AwaitText("h1", Equal("Now tap Send in WhatsApp"))
	u.Hide()
	u.proveNumber()
	u.Show()
	u.expectTitle("Enter the six digits") // also for who comes back without the link
	digits, link := u.readChat()
	u.Open(link)
	u.expectBack()
	u.Expect(u.TakeProblems()).To(BeEmpty())
	u.GoBack()
	u.AwaitText("h1", Equal("Enter the six digits"))
	u.Expect(u.Eval("location.href")).To(Equal(u.url), "the code is not in the history of the page")

	u.enterWrong(digits)
	u.Reload()
	u.AwaitText("h1", Equal("Enter the six digits"))
	u.Await(`document.querySelector("#problem")`, BeNil())
	u.Expect(u.readStored().WrongCodes).To(Equal(1), "a reload sends nothing again")
	u.TabTo("#digits")
	u.Type(digits[:4])
	u.Hide()
	u.Show()
	u.AwaitValue("#digits", Equal(digits[:4]))
	u.AwaitFocus("#digits")
	u.Type(digits[4:])
	u.PressKey("Enter")
	u.expectBack()

	stranger := openTab(t)
	stranger.Open(link)
	stranger.AwaitText("h1", Equal("Enter the six digits"))
	stranger.Expect(stranger.Eval("location.href")).To(Equal(u.url), "in a second browser")
}

// enterWrong enters other digits by keyboard.
func (u *sessionUser) enterWrong(digits string) {
	u.t.Helper()
	wrong := "123456"
	if digits == wrong {
		wrong = "654321"
	}
	u.TabTo("#digits")
	u.Type(wrong)
	u.PressKey("Enter")
	u.Await(`document.querySelector("#problem")?.innerText ?? ""`, ContainSubstring("4"), "tries are left")
	u.AwaitFocus("#digits")
}

// TestUserSession_worksWithoutAScript, by its reloads, and the page does not load itself while the user types.
func TestUserSession_worksWithoutAScript(t *testing.T) {
	t.Parallel()
	s := startSessionSite(t, clock.RealClock{})
	b := openTab(t)
	b.DisableScript()
	u := b.openSessionPage(s, "")
	u.AwaitText("h1", Equal("Verify your phone number"))
	u.proveNumber()
	u.AwaitText("h1", Equal("Enter the six digits"))
	u.Expect(u.Eval(`document.getElementById("left").checkVisibility()`)).To(BeFalse(), "nothing keeps it right")
	digits, _ := u.readChat()
	u.enterWrong(digits)
	u.Type(digits)
	u.PressKey("Enter")
	u.expectBack()
}

// TestUserSession_worksByKeyboardInArabic from right to left, with the digits of either script, which are written from left to right.
func TestUserSession_worksByKeyboardInArabic(t *testing.T) {
	t.Parallel()
	s := startSessionSite(t, clock.RealClock{})
	b := openTab(t)
	b.HandLinksToApps()
	u := b.openSessionPage(s, "ar")
	u.expectTitle("تأكيد رقم هاتفك")
	u.Expect(u.readQR()).To(Equal(u.link), "what a phone reads from a large screen")
	u.pressByKeyboard("#open")
	u.AwaitApp()
	u.expectTitle("اضغط الآن إرسال في WhatsApp")
	u.pressByKeyboard(".switch")
	u.AwaitText(".steps", ContainSubstring("Telegram"))
	u.proveNumber()
	u.expectTitle("أدخل الأرقام الستة")
	u.Expect(u.Eval(`getComputedStyle(document.body).direction + " " + getComputedStyle(document.querySelector("#digits")).direction`)).To(Equal("rtl ltr"))
	u.Expect(u.TakeProblems()).To(BeEmpty())
	digits, _ := u.readChat()
	u.enterWrong(digits)
	u.Type(strings.Map(func(r rune) rune { return r - '0' + '٠' }, digits))
	u.PressKey("Enter")
	u.expectBack()
}
