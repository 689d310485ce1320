package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestSession_wrongDigitsCount(t *testing.T) {
	s := newSite(t)
	p, other := s.startSession(), s.startSession()
	p.prove(verification.WhatsApp)
	other.prove(verification.WhatsApp)
	otherDigits, _ := other.codes()
	for _, text := range []string{"", "12345", "1234567", "abcdef", "123456\x00", "１２３"} {
		response, body := p.enter(text)
		s.Expect(response.StatusCode).To(Equal(http.StatusBadRequest), text)
		s.Expect(body).To(And(ContainSubstring("</span> Enter the six digits from the chat."), ContainSubstring(" autofocus")), text)
	}
	for name, body := range map[string]string{"no field": "x=1", "the query": ""} {
		response, _ := s.post(p.url+"/confirm?code="+otherDigits, body)
		s.Expect(response.StatusCode).To(Equal(http.StatusBadRequest), name)
	}
	response, _ := s.post(p.url+"/confirm", "code="+otherDigits, "Content-Type", "application/json")
	s.Expect(response.StatusCode).To(Equal(http.StatusBadRequest))
	response, _ = s.post(p.url+"/confirm", "code="+strings.Repeat("1", maxForm))
	s.Expect(response.StatusCode).To(Equal(http.StatusRequestEntityTooLarge))
	s.Expect(p.stored().WrongCodes).To(BeZero(), "none of these is a try")

	wrong := []string{otherDigits, p.wrongDigits(), strings.Repeat("A", 22), p.wrongDigits()}
	for i, text := range wrong {
		response, body := p.enter(text)
		s.Expect(response.StatusCode).To(Equal(http.StatusUnprocessableEntity))
		s.Expect(body).To(ContainSubstring(fmt.Sprintf("These digits are wrong. Tries left: %d.", verification.MaxConfirmTries-1-i)))
		s.Expect(p.stored().WrongCodes).To(Equal(i + 1))
	}
	response, body := p.enter(p.wrongDigits())
	s.Expect(response.StatusCode).To(Equal(http.StatusUnprocessableEntity))
	s.Expect(body).To(And(ContainSubstring(`data-state="expired"`), ContainSubstring("Too many wrong digits"), Not(ContainSubstring("<form"))))
	digits, code := p.codes()
	response, body = p.enter(digits)
	s.Expect(response.StatusCode).To(Equal(http.StatusConflict))
	s.Expect(body).To(And(ContainSubstring(`data-state="expired"`), Not(ContainSubstring(code))))
	p.expectPage(p.openReturn(code, "Cookie", p.mark))
	s.Expect(other.stored().WrongCodes).To(BeZero())
}

// TestSession_digitsBeforeAndAfter their time.
func TestSession_digitsBeforeAndAfter(t *testing.T) {
	s := newSite(t)
	p := s.startSession()
	digits, code := p.codes()
	response, body := p.enter(digits)
	s.Expect(response.StatusCode).To(Equal(http.StatusConflict), "not proven, although the codes can be made")
	s.Expect(body).To(And(ContainSubstring(`data-state="ready"`), ContainSubstring(`content="5;url=/phone/v/`)))
	p.expectPage(p.openReturn(code, "Cookie", p.mark), "not proven")
	p.prove(verification.WhatsApp)
	p.confirm()
	response, body = p.enter(digits)
	s.Expect(response.StatusCode).To(Equal(http.StatusConflict))
	s.Expect(body).To(And(ContainSubstring(`data-state="verified"`), Not(ContainSubstring(code))))
}

// TestSession_lastsAsLongAsItMayBeConfirmed although its time is up.
func TestSession_lastsAsLongAsItMayBeConfirmed(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	s := newSite(t, func(o *Options) { o.Clock = now })
	p := s.startSession()
	s.update(p.initiated.Request.ID, func(r *verification.Request, _ time.Time) error {
		r.ProvenAt, r.Actual = r.ExpiresAt.Add(-time.Minute), r.Phone
		return nil
	})
	digits, code := p.codes()
	end := p.initiated.Request.ExpiresAt.Add(verification.ConfirmGrace)
	for at, want := range map[time.Duration]string{-time.Second: "digits", verification.ExpiryGrace - time.Second: "digits", verification.ExpiryGrace: "expired"} {
		now.SetTime(end.Add(at))
		s.Expect(s.stateOf(p.url)).To(Equal(want), at.String())
	}
	now.SetTime(end.Add(-time.Second))
	s.Expect(p.openReturn(code, "Cookie", p.mark).Header.Get("Location")).To(Equal(p.target(code)))
	response, _ := p.enter(digits)
	s.Expect(response.Header.Get("Location")).To(Equal(p.target(code)))
	r := p.stored()
	s.Expect(nextCheck(&r, now.Now(), now.Now().Add(time.Minute))).To(Equal(end.Add(verification.ExpiryGrace)), "an open page shows its end in time")
	now.SetTime(end)
	p.expectPage(p.openReturn(code, "Cookie", p.mark), "the client could not redeem it")
}

func TestSession_cancelEnds(t *testing.T) {
	s := newSite(t)
	for _, proven := range []bool{false, true} {
		p := s.startSession()
		if proven {
			p.prove(verification.WhatsApp)
		}
		stream := s.followPage(p.url)
		stream.next()
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
			response, _ := s.send(method, p.url+"/cancel")
			s.Expect(response.StatusCode).To(Equal(http.StatusMethodNotAllowed), method)
		}
		for range 2 { // a reload sends the form once more
			response, body := s.post(p.url+"/cancel", "")
			s.Expect(response.StatusCode).To(Equal(http.StatusOK))
			s.Expect(body).To(And(ContainSubstring(`data-state="canceled"`), ContainSubstring(`id="return"`), ContainSubstring("status=EXPIRED"),
				Not(ContainSubstring("<form"))))
		}
		s.Expect(stream.next()).To(Equal("canceled"))
		s.Expect(stream.next()).To(BeEmpty(), "the stream ends with the request")
		s.Expect(p.stored().Phase).To(Equal(verification.Expired))
	}
	p := s.startSession()
	p.prove(verification.WhatsApp)
	p.confirm()
	response, body := s.post(p.url+"/cancel", "")
	s.Expect(response.StatusCode).To(Equal(http.StatusOK))
	s.Expect(body).To(ContainSubstring(`data-state="verified"`), "too late")
}

// TestSession_formsOfOtherSitesAreRefused, and cost no try.
func TestSession_formsOfOtherSitesAreRefused(t *testing.T) {
	s := newSite(t)
	p := s.startSession()
	p.prove(verification.WhatsApp)
	digits, _ := p.codes()
	for _, operation := range []string{"/confirm", "/cancel"} {
		for name, header := range map[string][]string{
			"a form of another site":  {"Sec-Fetch-Site", "cross-site"},
			"a form of a subdomain":   {"Sec-Fetch-Site", "same-site"},
			"a script of another one": {"Sec-Fetch-Site", "", "Origin", "https://evil.example"},
			"a frame without origin":  {"Sec-Fetch-Site", "", "Origin", "null"},
		} {
			response, _ := s.post(p.url+operation, "code="+digits, header...)
			s.Expect(response.StatusCode).To(Equal(http.StatusForbidden), operation+" "+name)
			s.Expect(response.Header.Get("Location")).To(BeEmpty())
		}
	}
	s.Expect(p.stored().Phase).To(Equal(verification.Pending))
	s.Expect(p.stored().WrongCodes).To(BeZero())
}

// TestSession_isNoneAtTheLevelPossession: there is nothing new.
func TestSession_isNoneAtTheLevelPossession(t *testing.T) {
	s := newSite(t)
	initiated, page := s.start(func(in *verification.Initiation) { in.ReturnURL = "https://shop.example/back?code=mine" })
	_, body := s.send(http.MethodGet, page)
	s.Expect(body).NotTo(Or(ContainSubstring("/confirm"), ContainSubstring("/cancel")))
	before, err := s.store.Read(t.Context(), initiated.Request.ID)
	s.Expect(err).NotTo(HaveOccurred())
	for _, operation := range []string{"/confirm", "/cancel"} {
		response, _ := s.post(page+operation, "code=123456")
		s.Expect(response.StatusCode).To(Equal(http.StatusNotFound), operation)
	}
	response, _ := s.send(http.MethodGet, page+"/return?code=123456")
	s.Expect(response.StatusCode).To(Equal(http.StatusNotFound))
	s.Expect(s.store.Read(t.Context(), initiated.Request.ID)).To(Equal(before))
	s.verify(initiated.Request.ID)
	s.Expect(s.get(page)).To(ContainSubstring("https://shop.example/back?code=mine&amp;requestId="), "its query is the client's")
}

// TestSession_formsLeadWhereThePolicyAllows: browsers hold redirects to that.
func TestSession_formsLeadWhereThePolicyAllows(t *testing.T) {
	s := newSite(t)
	s.changeSettings(func(c *settings.Settings) {
		c.Page.ReturnURLs = []string{"https://shop.example", "https://shop.example/a?b=c;d", "https://login.shop.example:8443/x", "http://localhost:3000"}
	})
	p := s.startSession()
	response, _ := s.send(http.MethodGet, p.url)
	s.Expect(response.Header.Get("Content-Security-Policy")).To(ContainSubstring(
		"form-action 'self' https://shop.example https://login.shop.example:8443 http://localhost:3000; "))
	s.backend.Fail(errors.New("down"))
	response, body := s.send(http.MethodGet, p.url)
	s.Expect(body).To(ContainSubstring(`data-state="unavailable"`))
	s.Expect(response.Header.Get("Content-Security-Policy")).To(ContainSubstring("form-action 'self' https://shop.example"), "the page goes on from here")
}

// failingWrites is a store that can be read and not written.
type failingWrites struct{ verification.Store }

func (failingWrites) Update(context.Context, string, verification.Mutation) (verification.Request, error) {
	return verification.Request{}, verification.Unavailable(errors.New("down"))
}

func TestSession_withoutTheStore(t *testing.T) {
	s := newSite(t)
	p := s.startSession()
	p.prove(verification.WhatsApp)
	digits, code := p.codes()
	s.handler.Service = verification.NewService(verification.NewCodeSpace("books/shop"), failingWrites{s.store})
	for _, text := range []string{digits, p.wrongDigits()} { // the right digits need no write, but a state that is current
		response, body := p.enter(text)
		s.Expect(response.StatusCode).To(Equal(http.StatusServiceUnavailable))
		s.Expect(body).To(And(ContainSubstring("</span> The digits could not be checked."), Not(ContainSubstring(code))))
	}
	response, body := s.post(p.url+"/cancel", "")
	s.Expect(response.StatusCode).To(Equal(http.StatusServiceUnavailable))
	s.Expect(body).To(ContainSubstring("<form"), "it can be tried again")
	s.backend.Fail(errors.New("down"))
	response, body = s.send(http.MethodGet, p.url+"/return?code="+code, "Cookie", p.mark)
	s.Expect(response.StatusCode).To(Equal(http.StatusServiceUnavailable))
	s.Expect(body).NotTo(ContainSubstring(code))
}

// slowStore holds up its changes.
type slowStore struct {
	verification.Store

	began, goOn chan struct{}
}

func (s slowStore) Update(ctx context.Context, id string, mutate verification.Mutation) (verification.Request, error) {
	s.began <- struct{}{}
	<-s.goOn
	return s.Store.Update(ctx, id, mutate)
}

// TestSession_entersOneCodeAtATime: a right code needs no write, so among many at once it could overtake wrong ones that are not counted.
func TestSession_entersOneCodeAtATime(t *testing.T) {
	s := newSite(t)
	p := s.startSession()
	p.prove(verification.WhatsApp)
	digits, code := p.codes()
	slow := slowStore{s.store, make(chan struct{}), make(chan struct{})}
	s.handler.Service = verification.NewService(verification.NewCodeSpace("books/shop"), slow)
	first := make(chan int)
	go func() {
		response, _ := p.enter(p.wrongDigits())
		first <- response.StatusCode
	}()
	<-slow.began
	for range 2 * verification.MaxConfirmTries {
		response, body := p.enter(digits)
		s.Expect(response.StatusCode).To(Equal(http.StatusTooManyRequests))
		s.Expect(response.Header.Get("Retry-After")).To(Equal("5"))
		s.Expect(body).NotTo(ContainSubstring(code))
	}
	close(slow.goOn)
	s.Expect(<-first).To(Equal(http.StatusUnprocessableEntity))
	go func() { <-slow.began }()
	response, _ := p.enter(digits)
	s.Expect(response.StatusCode).To(Equal(http.StatusSeeOther), "those that were refused used nothing up")
}

// uncountedStore finds each change, and stores none while it is read-only.
type uncountedStore struct {
	verification.Store

	readOnly bool
}

func (s *uncountedStore) Update(ctx context.Context, id string, mutate verification.Mutation) (verification.Request, error) {
	if !s.readOnly {
		return s.Store.Update(ctx, id, mutate)
	}
	r, err := s.Read(ctx, id)
	if err != nil {
		return r, err
	}
	if err := mutate(&r, time.Now()); !errors.Is(err, verification.ErrUnchanged) {
		return verification.Request{}, verification.Unavailable(errors.New("read-only"))
	}
	return r, nil
}

// TestSession_comparesOneGuessThatIsNotCounted: a store that can be read and not written would tell the right digits from any number of
// wrong ones.
func TestSession_comparesOneGuessThatIsNotCounted(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	s := newSite(t, func(o *Options) { o.Clock = now })
	p := s.startSession()
	p.prove(verification.WhatsApp)
	digits, code := p.codes()
	store := &uncountedStore{s.store, true}
	s.handler.Service = verification.NewService(verification.NewCodeSpace("books/shop"), store)
	response, _ := p.enter(p.wrongDigits())
	s.Expect(response.StatusCode).To(Equal(http.StatusServiceUnavailable))
	for range 59 {
		now.Step(time.Second) // so that the page may be asked
		response, body := p.enter(digits)
		s.Expect(response.StatusCode).To(Equal(http.StatusServiceUnavailable), "as the wrong digits")
		s.Expect(body).NotTo(ContainSubstring(code))
	}
	store.readOnly = false
	response, _ = p.enter(digits)
	s.Expect(response.StatusCode).To(Equal(http.StatusSeeOther))
	s.Expect(p.stored().WrongCodes).To(Equal(1), "the one that was compared")
	response, _ = p.enter(p.wrongDigits())
	s.Expect(response.StatusCode).To(Equal(http.StatusUnprocessableEntity))
	s.Expect(p.stored().WrongCodes).To(Equal(2), "each counts once")
	store.readOnly = true
	response, _ = p.enter(digits)
	s.Expect(response.StatusCode).To(Equal(http.StatusSeeOther), "a user without a wrong code needs no write")
}

// TestSession_boundsItsCalls: guesses are bounded by time, too.
func TestSession_boundsItsCalls(t *testing.T) {
	s := newSite(t)
	p := s.startSession()
	p.prove(verification.WhatsApp)
	refused := 0
	for range 2 * int(callRate.Burst) {
		if response, _ := s.send(http.MethodGet, p.url+"/return?code="+strings.Repeat("A", 22), "Cookie", p.mark); response.StatusCode == http.StatusTooManyRequests {
			refused++
		}
	}
	s.Expect(refused).To(BeNumerically(">", 0))
	response, _ := p.enter("1")
	s.Expect(response.StatusCode).To(Equal(http.StatusTooManyRequests))
}

// TestSession_refusedFormLeadsBack to the page, also without its script.
func TestSession_refusedFormLeadsBack(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Clock = clocktesting.NewFakeClock(time.Now()) })
	p := s.startSession()
	for range int(callRate.Burst) {
		s.send(http.MethodGet, p.url)
	}
	for _, operation := range []string{"/confirm", "/cancel", "/wrong-number"} {
		response, _ := s.post(p.url+operation, "")
		s.Expect(response.StatusCode).To(Equal(http.StatusTooManyRequests), operation)
		s.Expect(response.Header.Get("Refresh")).To(Equal("5;url="+strings.TrimPrefix(p.url, s.server.URL)), operation)
	}
	response, _ := s.send(http.MethodGet, p.url+"/state")
	s.Expect(response.StatusCode).To(Equal(http.StatusTooManyRequests))
	s.Expect(response.Header.Get("Refresh")).To(BeEmpty(), "what a script asks for")
}
