package page

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/verification/codesender"
)

// startCode stores a request to whose number a code is sent.
func (s *site) startCode(change ...func(*verification.Initiation)) *sessionPage {
	s.t.Helper()
	s.service.Sender = codesender.New(1)
	s.backend.ForgetLimits() // a number gets one code a minute
	return s.startSession(append([]func(*verification.Initiation){func(in *verification.Initiation) {
		in.Terms.Deliver = verification.DeliverCode
	}}, change...)...)
}

// delivered returns the eight digits that are sent to the number.
func (p *sessionPage) delivered() string {
	p.t.Helper()
	r := p.stored()
	code, found := p.settings.Load().DeliveredCode(&r, p.handler.Clock.Now())
	p.Expect(found).To(BeTrue())
	return code.Reveal()
}

// wrongCode returns eight digits that are none of the request.
func (p *sessionPage) wrongCode() string {
	code := p.delivered()
	return code[:7] + string((code[7]-'0'+1)%10+'0')
}

func TestCode_field(t *testing.T) {
	s := newSite(t)
	p := s.startCode()
	s.Expect(s.get(p.url)).To(And(ContainSubstring(`data-state="code"`), ContainSubstring(`autocomplete="one-time-code"`),
		ContainSubstring("Look in WhatsApp"), ContainSubstring("Wrong number?"), Not(ContainSubstring("https://wa.me/"))))
	text := s.get(p.url + "?method=WHATSAPP")
	s.Expect(text).To(And(ContainSubstring(`data-state="ready"`), ContainSubstring("https://wa.me/"), Not(ContainSubstring("<input")),
		ContainSubstring("Enter the code instead")), "the text in its place")
	s.Expect(s.get(p.url+"?method=WHATSAPP", "Cookie", p.mark)).To(ContainSubstring(`data-state="opened"`))
	s.changeSettings(func(c *settings.Settings) { c.Suspended = true })
	s.Expect(s.get(p.url)).To(ContainSubstring(`data-state="code"`), "the code may have come")
	s.Expect(s.get(p.url + "?method=WHATSAPP")).To(And(ContainSubstring(`data-state="unavailable"`), ContainSubstring("Enter the code instead")))
	s.changeSettings(func(c *settings.Settings) { c.Suspended = false })
	for hint, state := range map[verification.HintKind]string{
		verification.HintCodeNotSent: "code", verification.HintNumberWrong: "code",
		verification.HintOtherNumber: "other-number", verification.HintAwaitingConfirmation: "confirm", verification.HintNumberHidden: "hidden",
	} {
		of := s.startCode()
		s.update(of.initiated.Request.ID, addHint(hint))
		s.Expect(s.get(of.url)).To(And(ContainSubstring(`data-state="`+state+`"`), ContainSubstring(`<input id="digits"`)), "%s", hint)
		s.changeSettings(func(c *settings.Settings) { c.Suspended = true })
		s.Expect(s.stateOf(of.url)).To(Equal("code"), "%s, and no messenger is left to try", hint)
		s.changeSettings(func(c *settings.Settings) { c.Suspended = false })
	}
	elsewhere := s.startCode(func(in *verification.Initiation) { in.ReturnURL = "" })
	s.Expect(s.get(elsewhere.url)).To(And(ContainSubstring("where you started"), Not(ContainSubstring("<input"))))
}

func TestCode_rightDigitsLeadBackAndProve(t *testing.T) {
	s := newSite(t)
	p := s.startCode()
	response, body := p.enter(" " + p.delivered() + "\u00a0")
	s.Expect(response.StatusCode).To(Equal(http.StatusSeeOther), body)
	_, code := p.codes()
	s.Expect(response.Header.Get("Location")).To(Equal(p.target(code)))
	r := p.stored()
	s.Expect(r.IsProven()).To(BeTrue())
	s.Expect(r.Via).To(Equal(verification.ViaCode))
	s.Expect(r.Actual).To(Equal(r.Phone))
	s.Expect(s.get(p.url)).To(And(ContainSubstring(`data-state="code"`), Not(ContainSubstring("Send the text instead"))))
	response, _ = p.enter(p.delivered())
	s.Expect(response.Header.Get("Location")).To(Equal(p.target(code)), "who comes back by the browser's button")
}

// TestCode_digitsOfTheChat count once a message has proven the number; before they are of the wrong form, and no try.
func TestCode_digitsOfTheChat(t *testing.T) {
	s := newSite(t)
	p := s.startCode()
	for _, text := range []string{"123456", "1234567", "12345678x"} {
		response, body := p.enter(text)
		s.Expect(response.StatusCode).To(BeElementOf(http.StatusBadRequest, http.StatusConflict), text)
		s.Expect(body).To(ContainSubstring("Enter the eight digits of the code.</p>"), text)
	}
	s.Expect(p.stored().WrongCodes).To(BeZero())
	p.prove(verification.WhatsApp)
	s.Expect(s.get(p.url)).To(ContainSubstring(`data-state="digits"`))
	digits, code := p.codes()
	response, _ := p.enter(digits)
	s.Expect(response.Header.Get("Location")).To(Equal(p.target(code)))
	s.Expect(p.stored().Via).To(Equal(verification.ViaMessage))

	link := s.startSession()
	link.prove(verification.WhatsApp)
	response, body := link.enter("12345678")
	s.Expect(response.StatusCode).To(Equal(http.StatusConflict))
	s.Expect(body).To(ContainSubstring("Enter the six digits from the chat.</p>"))
	s.Expect(link.stored().WrongCodes).To(BeZero())
}

// TestCode_newTicketKeepsTries: a request has pages with several tickets, and one count.
func TestCode_newTicketKeepsTries(t *testing.T) {
	s := newSite(t)
	p := s.startCode()
	stored := p.stored()
	other := s.server.URL + "/phone/v/" + sealTicket(s.settings.Load(), verification.Telegram, p.initiated.Code, time.Now())
	chat := strings.Replace(ProvenURL(s.settings.Load(), &stored, time.Now()), "https://verify.example", s.server.URL, 1)
	for i, page := range []string{p.url, other, chat} {
		response, _ := s.post(page+"/confirm", url.Values{"code": {p.wrongCode()}}.Encode())
		s.Expect(response.StatusCode).To(Equal(http.StatusUnprocessableEntity))
		s.Expect(p.stored().WrongCodes).To(Equal(i + 1))
	}
	s.Expect(p.stored().Phase).To(Equal(verification.Expired))
}

func TestCode_afterTwentySeconds(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	s := newSite(t, func(o *Options) { o.Clock = now })
	p := s.startCode()
	created := p.stored().CreatedAt
	for after, want := range map[time.Duration]string{0: "20s", 7500 * time.Millisecond: "13s", 19 * time.Second: "1s"} {
		now.SetTime(created.Add(after))
		response, body := s.send(http.MethodGet, p.url)
		s.Expect(body).To(And(ContainSubstring("<style>:root{--text-delay:"+want+"}</style>"), ContainSubstring(`class="later soon"`)), "after %s", after)
		s.Expect(strings.Count(response.Header.Get("Content-Security-Policy"), "sha256-")).To(Equal(strings.Count(body, "<style>")+1), "the policy has the style")
	}
	for _, after := range []time.Duration{20 * time.Second, 5 * time.Minute} {
		now.SetTime(created.Add(after))
		s.Expect(s.get(p.url)).To(And(Not(ContainSubstring("--text-delay:")), Not(ContainSubstring("later soon")), ContainSubstring("?method=WHATSAPP\">Send the text instead</a>")))
	}
}
