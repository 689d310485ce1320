package page

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/page/view"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// sessionPage is the page of a request of LevelSession.
type sessionPage struct {
	*site

	initiated verification.Initiated
	url, mark string
}

// startSession stores a request of LevelSession.
func (s *site) startSession(change ...func(*verification.Initiation)) *sessionPage {
	s.t.Helper()
	initiated, page := s.start(append([]func(*verification.Initiation){func(in *verification.Initiation) {
		in.Terms.Level = verification.LevelSession
		in.ReturnURL = "https://shop.example/back?code=mine&order=7&c%6fde=x&status=VERIFIED"
	}}, change...)...)
	return &sessionPage{s, initiated, page, markName(initiated.Request.ID, verification.WhatsApp) + "=1"}
}

// prove has the claimed number send the code.
func (p *sessionPage) prove(m verification.Method) {
	p.t.Helper()
	receipt, err := p.service.Receive(p.t.Context(), verification.Message{
		Text:     p.initiated.Code.Grouped(),
		Evidence: verification.Evidence{Method: m, Sender: p.initiated.Request.Phone, SentAt: p.handler.Clock.Now()},
	}, 0)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(receipt.Outcome).To(Equal(verification.OutcomeProven))
}

// stored returns the request as it is stored.
func (p *sessionPage) stored() verification.Request {
	p.t.Helper()
	r, err := p.store.Read(p.t.Context(), p.initiated.Request.ID)
	p.Expect(err).NotTo(HaveOccurred())
	return r
}

// codes returns the session codes that the prover reads in the chat.
func (p *sessionPage) codes() (digits, returnCode string) {
	p.t.Helper()
	r := p.stored()
	codes, found := p.settings.Load().SessionCodes(&r, p.handler.Clock.Now())
	p.Expect(found).To(BeTrue())
	return codes.Digits.Reveal(), codes.Return.Reveal()
}

// wrongDigits returns digits that are none of the request.
func (p *sessionPage) wrongDigits() string {
	p.t.Helper()
	digits, _ := p.codes()
	last := (digits[5]-'0'+1)%10 + '0'
	return digits[:5] + string(last)
}

// target returns where the page leads back to with a code.
func (p *sessionPage) target(code string) string {
	return "https://shop.example/back?order=7&requestId=" + p.initiated.Request.ID + "&status=PENDING&code=" + code
}

// post sends the form of an operation, as the page does.
func (s *site) post(url, body string, header ...string) (answer, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, url, strings.NewReader(body))
	s.Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	s.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	s.Expect(err).NotTo(HaveOccurred())
	return answer{response.StatusCode, response.Header, response.Cookies()}, string(content)
}

// enter types a text into the form of the digits.
func (p *sessionPage) enter(text string) (answer, string) {
	p.t.Helper()
	return p.post(p.url+"/confirm", url.Values{"code": {text}}.Encode())
}

// openReturn opens a link in the chat.
func (p *sessionPage) openReturn(code string, header ...string) answer {
	p.t.Helper()
	response, body := p.send(http.MethodGet, p.url+"/return?code="+code, header...)
	p.Expect(body).To(BeEmpty())
	return response
}

// expectPage expects a redirect to the page, without anything in its query.
func (p *sessionPage) expectPage(a answer, description ...any) {
	p.t.Helper()
	p.Expect(a.StatusCode).To(Equal(http.StatusSeeOther), description...)
	p.Expect(a.Header.Get("Location")).To(Equal(strings.TrimPrefix(p.url, p.server.URL)), description...)
}

func TestSession_digitsLeadBack(t *testing.T) {
	s := newSite(t)
	p := s.startSession()
	p.Expect(p.get(p.url)).To(And(ContainSubstring(`data-state="ready"`), ContainSubstring(`/cancel"`)))
	p.prove(verification.WhatsApp)
	p.Expect(p.get(p.url)).To(And(ContainSubstring(`data-state="digits"`), ContainSubstring(`<input id="digits"`), ContainSubstring("in WhatsApp"),
		Not(ContainSubstring("?method=")), Not(ContainSubstring("https://wa.me/"))))
	digits, code := p.codes()
	for _, text := range []string{digits, " " + digits[:3] + " " + digits[3:] + " ", code} {
		response, body := p.enter(text)
		p.Expect(response.StatusCode).To(Equal(http.StatusSeeOther))
		p.Expect(response.Header.Get("Location")).To(Equal(p.target(code)), "nothing stands twice in the query")
		p.Expect(response.Header.Get("Referrer-Policy")).To(Equal("same-origin"))
		p.Expect(response.Header.Get("Cache-Control")).To(Equal("no-store"))
		p.Expect(body).To(BeEmpty())
	}
	p.Expect(p.stored().WrongCodes).To(BeZero())
	p.Expect(p.stored().Phase).To(Equal(verification.Pending), "the client decides")
}

// TestSession_returnLinkLeadsBack in the browser in which the messenger was opened.
func TestSession_returnLinkLeadsBack(t *testing.T) {
	s := newSite(t)
	p := s.startSession()
	p.prove(verification.WhatsApp)
	_, code := p.codes()
	before := p.stored()
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		response, _ := s.send(method, p.url+"/return?code="+code, "Cookie", p.mark)
		s.Expect(response.StatusCode).To(Equal(http.StatusSeeOther))
		s.Expect(response.Header.Get("Location")).To(Equal(p.target(code)))
		p.expectPage(firstOf(s.send(method, p.url+"/return?code="+code)), "a second browser, a preview or a scanner")
	}
	s.Expect(s.get(p.url)).To(ContainSubstring(`<input id="digits"`), "what they see")
	s.Expect(p.stored()).To(Equal(before), "no GET writes")
}

// TestSession_scannedByAPhone: who scanned the QR code of another screen did not start on the phone.
func TestSession_scannedByAPhone(t *testing.T) {
	s := newSite(t)
	p := s.startSession()
	scanned := "?method=WHATSAPP&scanned"
	s.Expect(s.get(p.url + scanned)).To(And(ContainSubstring("Enter them where you started."), ContainSubstring("?method=TELEGRAM&amp;scanned")))
	p.prove(verification.WhatsApp)
	s.Expect(s.get(p.url + scanned)).To(And(ContainSubstring("in the browser where you started"), ContainSubstring(`/confirm?scanned"`)))
	s.Expect(s.get(p.url)).To(And(ContainSubstring("enter them here"), ContainSubstring(`/confirm"`)))
	_, body := s.post(p.url+"/confirm?scanned", "code="+p.wrongDigits())
	s.Expect(body).To(And(ContainSubstring("These digits are wrong."), ContainSubstring("in the browser where you started")))
}

func firstOf[A, B any](a A, _ B) A { return a }

// TestSession_linkOfTheChatLeadsBack: the chat does not know the code of the request after a tap or a contact, so its link has another ticket.
func TestSession_linkOfTheChatLeadsBack(t *testing.T) {
	s := newSite(t)
	p := s.startSession()
	p.prove(verification.WhatsApp)
	digits, code := p.codes()
	stored := p.stored()
	link := ProvenURL(p.settings.Load(), &stored, p.handler.Clock.Now())
	link = strings.Replace(link, "https://verify.example", p.server.URL, 1)
	response, _ := p.send(http.MethodGet, link+"/return?code="+code, "Cookie", p.mark)
	p.Expect(response.StatusCode).To(Equal(http.StatusSeeOther))
	p.Expect(response.Header.Get("Location")).To(Equal(p.target(code)), "in the browser that opened the messenger")

	response, _ = p.send(http.MethodGet, link+"/return?code="+code)
	p.Expect(response.StatusCode).To(Equal(http.StatusSeeOther))
	p.Expect(response.Header.Get("Location")).To(Equal(strings.TrimPrefix(link, p.server.URL)), "in another one")
	shown := p.get(link)
	p.Expect(shown).To(And(ContainSubstring(`data-state="digits"`), Not(ContainSubstring("https://wa.me/")), Not(ContainSubstring(code))))
	p.Expect(shown).To(ContainSubstring("in the browser where you started"))
	p.Expect(p.get(link, "Cookie", p.mark)).To(ContainSubstring("enter them here"))
	response, _ = p.post(link+"/confirm", url.Values{"code": {digits}}.Encode())
	p.Expect(response.Header.Get("Location")).To(Equal(p.target(code)))

	other := p.startSession()
	early := other.stored()
	link = ProvenURL(p.settings.Load(), &early, p.handler.Clock.Now())
	link = strings.Replace(link, "https://verify.example", p.server.URL, 1)
	p.Expect(p.get(link)).To(And(ContainSubstring(`data-state="ready"`), Not(ContainSubstring(other.initiated.Code.Grouped()))),
		"a ticket of a chat never yields the code of its request")
}

// TestSession_returnLinkIsRefused everywhere else: each leads to the page, and counts as no try.
func TestSession_returnLinkIsRefused(t *testing.T) {
	s := newSite(t)
	p, other := s.startSession(), s.startSession()
	p.prove(verification.WhatsApp)
	other.prove(verification.WhatsApp)
	digits, code := p.codes()
	_, otherCode := other.codes()
	for name, c := range map[string]struct {
		page         *sessionPage
		code, cookie string
	}{
		"none":                       {p, "", p.mark},
		"another code":               {p, strings.Repeat("A", 22), p.mark},
		"a code with more":           {p, code + "A", p.mark},
		"of another request":         {p, otherCode, p.mark},
		"with another ticket":        {other, code, p.mark + "; " + other.mark},
		"the digits":                 {p, digits, p.mark},
		"the mark of another page":   {p, code, other.mark},
		"a mark that is none":        {p, code, markPrefix + "=1"},
		"another cookie":             {p, code, "session=1"},
		"the code of another, alone": {other, code, p.mark},
	} {
		c.page.expectPage(c.page.openReturn(c.code, "Cookie", c.cookie), name)
	}
	s.Expect(p.stored().WrongCodes + other.stored().WrongCodes).To(BeZero())
	s.Expect(p.openReturn(code, "Cookie", p.mark).Header.Get("Location")).To(Equal(p.target(code)), "it still works")
}

// TestSession_returnLinkEnds with its request.
func TestSession_returnLinkEnds(t *testing.T) {
	for name, end := range map[string]func(*sessionPage, *clocktesting.FakeClock){
		"confirmed": func(p *sessionPage, _ *clocktesting.FakeClock) { p.confirm() },
		"canceled":  func(p *sessionPage, _ *clocktesting.FakeClock) { p.post(p.url+"/cancel", "") },
		"expired": func(p *sessionPage, now *clocktesting.FakeClock) {
			now.SetTime(p.initiated.Request.ExpiresAt.Add(time.Second))
		},
	} {
		now := clocktesting.NewFakeClock(time.Now())
		s := newSite(t, func(o *Options) { o.Clock = now })
		p := s.startSession()
		p.prove(verification.WhatsApp)
		_, code := p.codes()
		s.Expect(p.openReturn(code, "Cookie", p.mark).Header.Get("Location")).To(Equal(p.target(code)), name)
		s.Expect(p.openReturn(code, "Cookie", p.mark).Header.Get("Location")).To(Equal(p.target(code)), "%s: the client redeems it once", name)
		end(p, now)
		p.expectPage(p.openReturn(code, "Cookie", p.mark), name)
	}
}

// confirm redeems the return code, as the client does.
func (p *sessionPage) confirm() {
	p.t.Helper()
	_, returnCode := p.codes()
	code, valid := verification.ParseSessionCode(returnCode)
	p.Expect(valid).To(BeTrue())
	_, err := p.service.ConfirmSession(p.t.Context(), p.initiated.Request.ID, false, code, func(r *verification.Request) verification.CodeSecrets {
		return p.settings.Load().CodeSecrets(r, p.handler.Clock.Now())
	}, 0)
	p.Expect(err).NotTo(HaveOccurred())
}

// TestSession_returnLinkAsksTheStore at a replica that learns late of the proof, and of the end.
func TestSession_returnLinkAsksTheStore(t *testing.T) {
	var store laggingStore
	s := newSite(t)
	store.Store = s.store
	s.handler.Service = verification.NewService(verification.NewCodeSpace("books/shop"), &store)
	p := s.startSession()
	store.known.Store(&p.initiated.Request)
	p.prove(verification.WhatsApp)
	_, code := p.codes()
	s.Expect(s.stateOf(p.url)).To(Equal("ready"), "what this replica knows")
	s.Expect(p.openReturn(code, "Cookie", p.mark).Header.Get("Location")).To(Equal(p.target(code)))
	proven := p.stored()
	store.known.Store(&proven)
	p.confirm()
	p.expectPage(p.openReturn(code, "Cookie", p.mark))
}

// TestSession_anOpenPageYieldsNothing: an attacker opened the page, taps its button and holds it open with all that it gives, while
// the victim sends the message.
func TestSession_anOpenPageYieldsNothing(t *testing.T) {
	logo := t.TempDir() + "/logo"
	var logged strings.Builder
	var mu sync.Mutex
	registry := prometheus.NewRegistry()
	s := newSite(t, func(o *Options) {
		o.LogoFile, o.Registerer = logo, registry
		o.Log = funcr.New(func(_, args string) {
			mu.Lock()
			defer mu.Unlock()
			logged.WriteString(args + "\n")
		}, funcr.Options{})
	})
	p := s.startSession()
	opened, _ := s.post(p.url+"/opened", "")
	s.Expect(opened.Cookies()).To(HaveLen(1))
	cookie := opened.Cookies()[0].Name + "=1"
	s.Expect(cookie).To(Equal(p.mark))
	stream := s.followPage(p.url)
	s.Expect(stream.next()).To(Equal("ready"))
	p.prove(verification.WhatsApp)
	digits, code := p.codes()

	var answers strings.Builder
	answers.WriteString(stream.next())
	for _, state := range []string{"ready", "opened", "digits"} {
		answers.WriteString(s.get(p.url+"/state?since="+state[:1], "Cookie", cookie))
	}
	for _, call := range []struct{ method, path string }{
		{http.MethodGet, ""}, {http.MethodHead, ""}, {http.MethodGet, "?method=TELEGRAM"}, {http.MethodGet, "?code=" + "1"}, {http.MethodGet, "/return"},
		{http.MethodHead, "/return"}, {http.MethodGet, "/return?code="}, {http.MethodGet, "/return?method=WHATSAPP&status=VERIFIED"}, {http.MethodGet, "/state"},
		{http.MethodPost, "/opened"}, {http.MethodGet, "/logo"}, {http.MethodPost, "/confirm"}, {http.MethodGet, "/confirm"}, {http.MethodGet, "/cancel"},
		{http.MethodGet, "/digits"}, {http.MethodPost, "/return"},
	} {
		response, body := s.send(call.method, p.url+call.path, "Cookie", cookie)
		fmt.Fprintln(&answers, response.Header, body)
	}
	_, wrong := p.enter(p.wrongDigits())
	seen := answers.String() + wrong
	for _, secret := range []string{code, url.QueryEscape(code), digits} {
		s.Expect(seen).NotTo(ContainSubstring(secret))
	}
	s.Expect(seen).NotTo(ContainSubstring("status=PENDING&code"))

	s.Expect(p.openReturn(code, "Cookie", cookie).Header.Get("Location")).To(ContainSubstring(code), "the victim's own")
	s.backend.Fail(errors.New("down"))
	p.enter(digits)
	s.send(http.MethodGet, p.url+"/return?code="+code, "Cookie", cookie)
	s.backend.Fail(nil)
	families, err := registry.Gather()
	s.Expect(err).NotTo(HaveOccurred())
	mu.Lock()
	defer mu.Unlock()
	s.Expect(logged.String()).To(ContainSubstring("page cannot"))
	for _, secret := range []string{code, digits, p.url[strings.LastIndex(p.url, "/")+1:], claimed[1:]} {
		s.Expect(logged.String()+fmt.Sprint(families)).NotTo(ContainSubstring(secret), "in logs and metrics")
	}
}

// TestSession_pageFollowsToTheDigits in each way, also if the hint of the proof was there before.
func TestSession_pageFollowsToTheDigits(t *testing.T) {
	s := newSite(t)
	for _, first := range []view.State{view.Ready, view.Confirm} {
		p := s.startSession()
		if first == view.Confirm {
			s.update(p.initiated.Request.ID, addHint(verification.HintAwaitingConfirmation))
		}
		s.Expect(s.get(p.url)).To(ContainSubstring(`<noscript><meta http-equiv="refresh" content="5">`), "without a script")
		stream := s.followPage(p.url)
		s.Expect(stream.next()).To(BeEquivalentTo(first))
		polled := make(chan string, 1)
		go func() { polled <- s.get(p.url + "/state?since=" + string(first)) }()
		s.Eventually(func() int {
			s.handler.followers.mu.Lock()
			defer s.handler.followers.mu.Unlock()
			return len(s.handler.followers.byID[p.initiated.Request.ID])
		}).WithTimeout(30 * time.Second).Should(Equal(2))
		p.prove(verification.WhatsApp)
		s.Expect(stream.next()).To(Equal("digits"))
		s.Eventually(polled).WithTimeout(30 * time.Second).Should(Receive(ContainSubstring(`"digits"`)))
		s.Expect(s.get(p.url)).NotTo(ContainSubstring("http-equiv"), "what is typed stays")
		p.confirm()
		s.Expect(stream.next()).To(Equal("verified"))
	}
}

// TestProgressOf_neverFalls on the ways of a request, and grows with its proof.
func TestProgressOf_neverFalls(t *testing.T) {
	s := newSite(t)
	ends := map[string]func(*sessionPage){
		"confirmed": func(p *sessionPage) { p.confirm() },
		"canceled":  func(p *sessionPage) { s.post(p.url+"/cancel", "") },
		"lapsed":    func(p *sessionPage) { s.update(p.initiated.Request.ID, endAs()) },
	}
	for _, hints := range [][]verification.HintKind{
		nil, {verification.HintAwaitingConfirmation}, {verification.HintTextChanged, verification.HintAwaitingConfirmation, verification.HintOtherNumber},
	} {
		for name, end := range ends {
			p := s.startSession()
			last := -1
			rise := func(step any) {
				r := p.stored()
				progress := progressOf(&r, time.Now())
				s.Expect(progress).To(BeNumerically(">", last), "%s, %v, %v", name, hints, step)
				last = progress
			}
			rise("began")
			for _, hint := range hints {
				s.update(p.initiated.Request.ID, addHint(hint))
				rise(hint)
			}
			p.prove(verification.WhatsApp)
			rise("proven")
			end(p)
			rise("ended")
		}
	}
}

// TestSession_namesTheMessengerOfTheProof although init named the other one.
func TestSession_namesTheMessengerOfTheProof(t *testing.T) {
	s := newSite(t)
	p := s.startSession()
	p.prove(verification.Telegram)
	for _, query := range []string{"", "?method=WHATSAPP"} {
		s.Expect(s.get(p.url + query)).To(And(ContainSubstring("The chat in Telegram"), ContainSubstring(`data-state="digits"`)))
	}
	digits, code := p.codes()
	response, _ := p.enter(digits)
	s.Expect(response.Header.Get("Location")).To(Equal(p.target(code)))
	s.changeSettings(func(c *settings.Settings) { c.Suspended = true })
	s.Expect(s.stateOf(p.url)).To(Equal("digits"), "no messenger is needed any more")
}

func TestSession_withoutAWayBack(t *testing.T) {
	s := newSite(t)
	p := s.startSession(func(in *verification.Initiation) { in.ReturnURL = "" })
	p.prove(verification.WhatsApp)
	s.Expect(s.get(p.url)).To(And(ContainSubstring("in the app or on the website"), Not(ContainSubstring("<input"))))
	digits, code := p.codes()
	for _, text := range []string{digits, p.wrongDigits()} {
		response, body := p.enter(text)
		s.Expect(response.StatusCode).To(Equal(http.StatusOK))
		s.Expect(body).To(ContainSubstring(`data-state="digits"`))
	}
	s.Expect(p.stored().WrongCodes).To(BeZero(), "the page did not ask")
	p.expectPage(p.openReturn(code, "Cookie", p.mark))
	withdrawn := s.startSession()
	withdrawn.prove(verification.WhatsApp)
	_, code = withdrawn.codes()
	s.changeSettings(func(c *settings.Settings) { c.Page.ReturnURLs = nil })
	withdrawn.expectPage(withdrawn.openReturn(code, "Cookie", withdrawn.mark), "a return that was withdrawn")
}
