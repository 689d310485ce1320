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

// startSessionSite starts both. The client's page /elsewhere redirects to a third origin.
func startSessionSite(t *testing.T) *sessionSite {
	t.Helper()
	s := &sessionSite{WithT: NewWithT(t), t: t}
	third := startClient(t, "")
	s.client = startClient(t, third)
	pages := http.NewServeMux()
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	s.settings = &settings.Settings{
		Project: "demo/shop", DisplayName: "Ada's Bookshop", BaseURL: server.URL,
		WhatsApp: &settings.WhatsApp{AppSecret: settings.NewSecret([]byte("an app secret")), PhoneNumber: "+4915112345670"},
		Telegram: &settings.Telegram{BotToken: settings.NewSecret([]byte("123:a bot token")), BotUsername: "ada_bot"},
		Page:     &settings.Page{ReturnURLs: []string{s.client, third}},
	}
	codes := verification.NewCodeSpace(s.settings.Project)
	s.store = memory.NewBackend(memory.Options{Clock: clock.RealClock{}}).Open(s.settings.Project)
	s.service = verification.NewService(codes, s.store)
	handler, err := page.NewHandler(page.Options{
		Settings: func() *settings.Settings { return s.settings }, Service: s.service,
		Link: func(_ *settings.Settings, _ *verification.Request, code verification.Code) string {
			return "https://wa.me/4915112345670?text=" + code.Grouped()
		},
	})
	s.Expect(err).NotTo(HaveOccurred())
	pages.Handle(page.Prefix, handler)
	return s
}

// startClient starts a site that says where it is, and returns its origin.
func startClient(t *testing.T, third string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			http.Redirect(w, r, third+"/?"+r.URL.RawQuery, http.StatusSeeOther)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>Shop</title><link rel="icon" href="data:,"><h1>Shop</h1>`))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// sessionUser is a user with the page of a request open.
type sessionUser struct {
	*userPage

	site    *sessionSite
	request verification.Initiated
}

// openSessionPage starts a verification at the level Session and opens its page.
func (b *tab) openSessionPage(s *sessionSite, change ...func(*verification.Initiation)) *sessionUser {
	b.t.Helper()
	number, err := phone.FromE164(ada)
	s.Expect(err).NotTo(HaveOccurred())
	in := verification.Initiation{Phone: number, Method: verification.WhatsApp, TTL: 10 * time.Minute}
	in.Terms.Level, in.ReturnURL = verification.LevelSession, s.client+"/back?order=7"
	for _, edit := range change {
		edit(&in)
	}
	request, err := s.service.Initiate(b.t.Context(), in)
	s.Expect(err).NotTo(HaveOccurred())
	u := &sessionUser{site: s, request: request, userPage: &userPage{
		tab: b, id: request.Request.ID, url: page.URL(s.settings, in.Method, request.Code, time.Now()),
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

// otherDigits returns digits that are wrong.
func otherDigits(digits string) string {
	if digits == "123456" {
		return "654321"
	}
	return "123456"
}

// TestUserSession_returnsOnAPhone by the link in the chat, which opens in the browser that the user came from.
func TestUserSession_returnsOnAPhone(t *testing.T) {
	t.Parallel()
	s := startSessionSite(t)
	b := openTab(t)
	b.EmulatePhone()
	b.HandLinksToApps()
	u := b.openSessionPage(s)
	u.expectTitle("Verify your phone number")
	u.Press("#open")
	u.AwaitApp()
	u.AwaitText("h1", Equal("Now tap Send in WhatsApp"))
	u.Hide()
	u.proveNumber()
	u.Show()
	u.expectTitle("Enter the six digits") // also for who comes back without the link
	_, link := u.readChat()
	u.Open(link)
	u.expectBack()
	u.Expect(u.TakeProblems()).To(BeEmpty())
	u.GoBack()
	u.AwaitText("h1", Equal("Enter the six digits"))
	u.Expect(u.Eval("location.href")).To(Equal(u.url), "the code is not in the history of the page")

	stranger := openTab(t)
	stranger.Open(link)
	stranger.AwaitText("h1", Equal("Enter the six digits"))
	stranger.Expect(stranger.Eval("location.href")).To(Equal(u.url), "in a second browser")
}

// TestUserSession_digitsFromAnotherDevice are typed into the page on a large screen, by keyboard alone.
func TestUserSession_digitsFromAnotherDevice(t *testing.T) {
	t.Parallel()
	s := startSessionSite(t)
	u := openTab(t).openSessionPage(s)
	u.expectTitle("Verify your phone number")
	u.proveNumber() // the phone read the QR code
	u.expectTitle("Enter the six digits")
	digits, _ := u.readChat()
	u.TabTo("#digits")
	u.Type(digits[:3])
	u.PressKey("Enter")
	u.Expect(u.Eval(`document.querySelector("#digits").validity.patternMismatch`)).To(BeTrue(), "half of them are not sent")
	u.Type(" " + digits[3:])
	u.Expect(u.Eval(`document.querySelector("#digits").validity.valid`)).To(BeTrue())
	u.PressKey("Enter")
	u.expectBack()
	u.Expect(u.readStored().WrongCodes).To(BeZero())
	u.Expect(u.TakeProblems()).To(BeEmpty())
}

// TestUserSession_wrongDigits shows the tries that are left, counts each once, and ends with the last one.
func TestUserSession_wrongDigits(t *testing.T) {
	t.Parallel()
	s := startSessionSite(t)
	u := openTab(t).openSessionPage(s)
	u.proveNumber()
	u.AwaitText("h1", Equal("Enter the six digits"))
	digits, _ := u.readChat()
	u.TabTo("#digits")
	u.Type(otherDigits(digits))
	u.Press("form .button:not(.cancel)")
	u.AwaitText("#problem", HaveSuffix(" These digits are wrong. Tries left: 4."))
	u.AwaitFocus("#digits")
	u.Expect(u.Eval(`document.querySelector("#digits").value`)).To(BeEmpty())
	u.judgePage("wrong digits")
	u.Reload()
	u.AwaitText("h1", Equal("Enter the six digits"))
	u.Await(`document.querySelector("#problem")`, BeNil())
	u.Expect(u.Eval("location.href")).To(Equal(u.url))
	u.Expect(u.readStored().WrongCodes).To(Equal(1), "a reload sends nothing again")
	for range verification.MaxConfirmTries - 1 {
		u.TabTo("#digits")
		u.Type(otherDigits(digits))
		u.PressKey("Enter")
		u.Await(`document.readyState === "complete" && !document.querySelector("#digits")?.value`, BeTrue())
	}
	u.expectTitle("Too many wrong digits")
	u.Expect(u.Eval(`document.getElementById("return").href`)).To(HaveSuffix("&status=EXPIRED"))
}

// TestUserSession_keepsWhatIsTyped while the page is followed, and its state stays.
func TestUserSession_keepsWhatIsTyped(t *testing.T) {
	t.Parallel()
	s := startSessionSite(t)
	u := openTab(t).openSessionPage(s)
	u.proveNumber()
	u.AwaitText("h1", Equal("Enter the six digits"))
	digits, _ := u.readChat()
	u.TabTo("#digits")
	u.Type(digits[:4])
	other, valid := verification.ParseSessionCode(otherDigits(digits))
	s.Expect(valid).To(BeTrue())
	_, err := s.service.CheckSessionCode(t.Context(), u.id, other, func(r *verification.Request) [][]byte {
		return s.settings.SessionSecrets(r, time.Now())
	}, 0)
	s.Expect(err).To(MatchError(verification.ErrWrongCode), "in the client's own form")
	u.Hide()
	u.Show()
	u.AwaitValue("#digits", Equal(digits[:4]))
	u.AwaitFocus("#digits")
	u.Type(digits[4:])
	u.PressKey("Enter")
	u.expectBack()
}

// TestUserSession_worksWithoutAScript, and the page does not load itself while the user types.
func TestUserSession_worksWithoutAScript(t *testing.T) {
	t.Parallel()
	s := startSessionSite(t)
	b := openTab(t)
	b.DisableScript()
	u := b.openSessionPage(s)
	u.AwaitText("h1", Equal("Verify your phone number"))
	u.proveNumber()
	u.AwaitText("h1", Equal("Enter the six digits"))
	u.Expect(u.Eval(`document.querySelectorAll("meta[http-equiv]").length`)).To(BeZero())
	u.Expect(u.Eval(`document.getElementById("left").checkVisibility()`)).To(BeFalse(), "nothing keeps it right")
	digits, _ := u.readChat()
	u.TabTo("#digits")
	u.Type(otherDigits(digits))
	u.PressKey("Enter")
	u.AwaitText("#problem", HaveSuffix(" These digits are wrong. Tries left: 4."))
	u.AwaitFocus("#digits")
	u.Type(digits)
	u.PressKey("Enter")
	u.expectBack()

	u = b.openSessionPage(s)
	u.TabTo(".cancel")
	u.PressKey("Enter")
	u.AwaitText("h1", Equal("You canceled"))
	u.Expect(u.readStored().Phase).To(Equal(verification.Expired))
}

// TestUserSession_digitsInArabic are written from left to right, with the digits of either script.
func TestUserSession_digitsInArabic(t *testing.T) {
	t.Parallel()
	s := startSessionSite(t)
	u := openTab(t).openSessionPage(s, func(in *verification.Initiation) { in.Locale = "ar" })
	u.proveNumber()
	u.expectTitle("أدخل الأرقام الستة")
	u.Expect(u.Eval(`getComputedStyle(document.body).direction + " " + getComputedStyle(document.querySelector("#digits")).direction`)).To(Equal("rtl ltr"))
	digits, _ := u.readChat()
	u.TabTo("#digits")
	u.Type(otherDigits(digits))
	u.PressKey("Enter")
	u.AwaitText("#problem", ContainSubstring("المحاولات المتبقية: 4"))
	u.judgePage("wrong digits in Arabic")
	u.AwaitFocus("#digits")
	u.Type(strings.Map(func(r rune) rune { return r - '0' + '٠' }, digits))
	u.PressKey("Enter")
	u.expectBack()
}

func TestUserSession_cancels(t *testing.T) {
	t.Parallel()
	s := startSessionSite(t)
	b := openTab(t)
	for _, proven := range []bool{false, true} {
		u := b.openSessionPage(s)
		u.AwaitText("h1", Equal("Verify your phone number"))
		if proven {
			u.proveNumber()
			u.AwaitText("h1", Equal("Enter the six digits"))
		}
		u.Expect(u.Eval(`(() => {
			const [go, end] = [".button:not(.cancel)", ".cancel"].map((name) => document.querySelector(name).getBoundingClientRect());
			return Math.abs(go.width - end.width) < 1 && end.height >= go.height - 1;
		})()`)).To(BeTrue(), "it is as large as the other button")
		u.TabTo(".cancel")
		u.PressKey("Enter")
		u.expectTitle("You canceled")
		u.Expect(u.Eval("location.href")).To(Equal(u.url))
		u.Expect(u.Eval(`document.getElementById("return").href`)).To(HaveSuffix("&status=EXPIRED"))
		u.Expect(u.readStored().Phase).To(Equal(verification.Expired))
		u.Expect(u.TakeProblems()).To(BeEmpty())
	}
}

// TestUserSession_redirectsFurther: the client's page may redirect to another origin of returnURLs. Browsers hold each redirect of a form to
// the policy of the page that has it.
func TestUserSession_redirectsFurther(t *testing.T) {
	t.Parallel()
	s := startSessionSite(t)
	u := openTab(t).openSessionPage(s, func(in *verification.Initiation) { in.ReturnURL = s.client + "/elsewhere" })
	u.proveNumber()
	u.AwaitText("h1", Equal("Enter the six digits"))
	digits, _ := u.readChat()
	u.TabTo("#digits")
	u.Type(digits)
	u.PressKey("Enter")
	u.AwaitLocation(HavePrefix(s.settings.Page.ReturnURLs[1] + "/?requestId="))
	u.Expect(u.TakeProblems()).To(BeEmpty())
}
