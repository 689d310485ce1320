package page

import (
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/page/view"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const claimed = "+4915112345607"

// site is a project with pages, served over HTTP on loopback.
type site struct {
	*WithT

	t        *testing.T
	settings atomic.Pointer[settings.Settings]
	backend  *memory.Backend
	store    verification.Store
	service  *verification.Service
	handler  *Handler
	server   *httptest.Server
	drain    chan struct{}
}

func newSite(t *testing.T, change ...func(*Options)) *site {
	t.Helper()
	s := &site{WithT: NewWithT(t), t: t, drain: make(chan struct{})}
	s.settings.Store(shopSettings())
	s.backend = memory.NewBackend(memory.Options{Clock: clock.RealClock{}})
	s.store = s.backend.Open("books/shop")
	s.service = verification.NewService(verification.NewCodeSpace("books/shop"), s.store)
	o := Options{
		Settings: s.settings.Load, Service: s.service, Registerer: prometheus.NewRegistry(),
		Draining: func(context.Context) <-chan struct{} { return s.drain },
		Link: func(_ *settings.Settings, r *verification.Request, code verification.Code) string {
			if r.Method == verification.Telegram {
				return "https://t.me/ada_bot?start=" + code.Grouped()
			}
			return "https://wa.me/15550100100?text=" + code.Grouped()
		},
	}
	for _, edit := range change {
		edit(&o)
	}
	var err error
	s.handler, err = NewHandler(o)
	s.Expect(err).NotTo(HaveOccurred())
	s.server = httptest.NewServer(s.handler)
	t.Cleanup(s.server.Close)
	return s
}

func (s *site) changeSettings(edit func(*settings.Settings)) {
	changed := *s.settings.Load()
	page := *changed.Page
	changed.Page = &page
	edit(&changed)
	s.settings.Store(&changed)
}

// start stores a request, and returns it with the address of its page.
func (s *site) start(change ...func(*verification.Initiation)) (verification.Initiated, string) {
	s.t.Helper()
	number, err := phone.FromE164(claimed)
	s.Expect(err).NotTo(HaveOccurred())
	in := verification.Initiation{
		Phone: number, Method: verification.WhatsApp, OtherMethods: []verification.Method{verification.Telegram}, TTL: 10 * time.Minute,
		DisplayName: "Ada's Books",
	}
	in.ReturnURL = "https://shop.example/back?status=EXPIRED&order=7&&request%49d=a"
	for _, edit := range change {
		edit(&in)
	}
	initiated, err := s.service.Initiate(s.t.Context(), in)
	s.Expect(err).NotTo(HaveOccurred())
	return initiated, s.server.URL + "/phone/v/" + sealTicket(s.settings.Load(), in.Method, initiated.Code, time.Now())
}

// update applies a mutation to a request.
func (s *site) update(id string, mutate verification.Mutation) {
	s.t.Helper()
	_, err := s.store.Update(s.t.Context(), id, mutate)
	s.Expect(err).NotTo(HaveOccurred())
}

func (s *site) verify(id string) {
	s.t.Helper()
	s.update(id, func(r *verification.Request, now time.Time) error {
		return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, 0)
	})
}

// addHint returns the mutation that stores a hint.
func addHint(kind verification.HintKind) verification.Mutation {
	return func(r *verification.Request, now time.Time) error {
		r.Hints = append(r.Hints, verification.Hint{Kind: kind, At: now})
		return nil
	}
}

// endAs returns the mutation that ends a request.
func endAs(hints ...verification.HintKind) verification.Mutation {
	return func(r *verification.Request, now time.Time) error {
		r.Phase = verification.Expired
		for _, kind := range hints {
			r.Hints = append(r.Hints, verification.Hint{Kind: kind, At: now})
		}
		return nil
	}
}

// answer is an answer whose body was read.
type answer struct {
	StatusCode int
	Header     http.Header
	cookies    []*http.Cookie
}

func (a answer) Cookies() []*http.Cookie { return a.cookies }

func (s *site) send(method, url string, header ...string) (answer, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, url, nil)
	s.Expect(err).NotTo(HaveOccurred())
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	s.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	s.Expect(err).NotTo(HaveOccurred())
	return answer{response.StatusCode, response.Header, response.Cookies()}, string(body)
}

func (s *site) get(url string, header ...string) string {
	s.t.Helper()
	response, body := s.send(http.MethodGet, url, header...)
	s.Expect(response.StatusCode).To(Equal(http.StatusOK), url)
	return body
}

// stateOf returns the state that a page shows.
func (s *site) stateOf(url string) string {
	s.t.Helper()
	_, rest, found := strings.Cut(s.get(url), `data-state="`)
	s.Expect(found).To(BeTrue())
	state, _, _ := strings.Cut(rest, `"`)
	return state
}

func TestPage_showsEachState(t *testing.T) {
	for name, c := range map[string]struct {
		mutate verification.Mutation
		want   view.State
	}{
		"nothing came":             {nil, view.Ready},
		"another number":           {addHint(verification.HintOtherNumber), view.OtherNumber},
		"a hidden number":          {addHint(verification.HintNumberHidden), view.Hidden},
		"a contact is awaited":     {addHint(verification.HintAwaitingContact), view.Seen},
		"a confirmation is":        {addHint(verification.HintAwaitingConfirmation), view.Confirm},
		"another text":             {addHint(verification.HintTextChanged), view.Confirm},
		"a text that never counts": {addHint(verification.HintTextRefused), view.TextRefused},
		"another one's contact":    {addHint(verification.HintContactRefused), view.ContactRefused},
		"an anonymous number":      {addHint(verification.HintNumberAnonymous), view.Anonymous},
		"no question":              {addHint(verification.HintNoQuestion), view.NoQuestion},
		"declined":                 {endAs(verification.HintDeclined), view.Declined},
		"expired":                  {endAs(), view.Expired},
		"expired, another number":  {endAs(verification.HintOtherNumber), view.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			initiated, page := s.start()
			if c.mutate != nil {
				s.update(initiated.Request.ID, c.mutate)
			}
			s.Expect(s.stateOf(page)).To(BeEquivalentTo(c.want))
		})
	}
	s := newSite(t)
	initiated, page := s.start()
	s.changeSettings(func(c *settings.Settings) { c.Suspended = true })
	s.Expect(s.stateOf(page)).To(BeEquivalentTo(view.Unavailable))
	s.changeSettings(func(c *settings.Settings) { c.Suspended = false })
	s.verify(initiated.Request.ID)
	s.Expect(s.stateOf(page)).To(BeEquivalentTo(view.Verified))
	s.Expect(s.get(page)).To(ContainSubstring(
		"https://shop.example/back?order=7&amp;requestId="+initiated.Request.ID+"&amp;status=VERIFIED\""), "nothing stands twice in the query")
	s.changeSettings(func(c *settings.Settings) { c.Page.ReturnURLs = nil })
	s.Expect(s.get(page)).NotTo(ContainSubstring("shop.example"), "a return that was withdrawn")
}

func TestPage_hidesTheNumberAndClaimsNothing(t *testing.T) {
	s := newSite(t)
	initiated, page := s.start()
	before, err := s.store.Read(t.Context(), initiated.Request.ID)
	s.Expect(err).NotTo(HaveOccurred())
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		response, body := s.send(method, page)
		s.Expect(response.StatusCode).To(Equal(http.StatusOK))
		s.Expect(body).NotTo(ContainSubstring(claimed[1:]))
		s.Expect(response.Cookies()).To(BeEmpty())
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		} {
			s.Expect(response.Header.Get(name)).To(Equal(want), name)
		}
		s.Expect(response.Header.Get("Content-Security-Policy")).To(ContainSubstring("frame-ancestors 'none'"))
	}
	s.Expect(s.get(page)).To(ContainSubstring("+49*********07"))
	s.Expect(s.store.Read(t.Context(), initiated.Request.ID)).To(Equal(before))
	s.changeSettings(func(c *settings.Settings) { c.Page.FrameAncestors = []string{"https://shop.example"} })
	response, _ := s.send(http.MethodGet, page)
	s.Expect(response.Header.Get("X-Frame-Options")).To(BeEmpty())
	s.Expect(response.Header.Get("Content-Security-Policy")).To(ContainSubstring("frame-ancestors https://shop.example"))
}

// TestPage_leadsToThePhone that is simulated, and never to a messenger beside it.
func TestPage_leadsToThePhone(t *testing.T) {
	s := newSite(t, func(o *Options) { o.PhoneURL = "http://127.0.0.1:8090/" })
	_, url := s.start()
	shown := s.get(url)
	s.Expect(shown).To(And(ContainSubstring(`href="http://127.0.0.1:8090/#https://wa.me/15550100100?text=`), ContainSubstring("This is phoneproof dev")))
	s.Expect(shown).NotTo(ContainSubstring(`"https://wa.me/`))
}

func TestPage_offersTheOtherMessenger(t *testing.T) {
	s := newSite(t)
	initiated, page := s.start()
	code := initiated.Code.Grouped()
	s.Expect(s.get(page)).To(And(ContainSubstring("https://wa.me/15550100100?text="+code), ContainSubstring("?method=TELEGRAM")))
	s.Expect(s.get(page + "?method=TELEGRAM")).To(And(ContainSubstring("https://t.me/ada_bot?start="+code), ContainSubstring("?method=WHATSAPP")))
	s.Expect(s.get(page + "?method=SIGNAL")).To(ContainSubstring("https://wa.me/"))
	s.changeSettings(func(c *settings.Settings) { c.WhatsApp = nil })
	_, page = s.start(func(in *verification.Initiation) { in.Method, in.OtherMethods = verification.Telegram, nil })
	s.Expect(s.get(page)).NotTo(ContainSubstring("?method="))
}

// TestPage_leadsOutOfAHiddenNumber: WhatsApp hides the number, and Telegram does not.
func TestPage_leadsOutOfAHiddenNumber(t *testing.T) {
	s := newSite(t)
	initiated, page := s.start()
	s.update(initiated.Request.ID, addHint(verification.HintNumberHidden))
	s.Expect(s.get(page)).To(And(ContainSubstring("WhatsApp does not show us your number"), ContainSubstring("?method=TELEGRAM"),
		Not(ContainSubstring("https://wa.me/")), Not(ContainSubstring(`id="return"`))))
	s.Expect(s.get(page + "?method=TELEGRAM")).To(And(ContainSubstring(`data-state="ready"`), ContainSubstring("Open Telegram"),
		ContainSubstring("https://t.me/ada_bot?start="), Not(ContainSubstring("does not show us"))))
	for _, hint := range []verification.HintKind{verification.HintNumberHidden, verification.HintNumberAnonymous, verification.HintNoQuestion} {
		initiated, page = s.start(func(in *verification.Initiation) {
			if in.OtherMethods = nil; hint == verification.HintNumberAnonymous {
				in.Method = verification.Telegram
			}
		})
		s.update(initiated.Request.ID, addHint(hint))
		s.Expect(s.get(page)).To(And(ContainSubstring(`id="return"`), ContainSubstring("&amp;status=PENDING")), "%s: nothing else is left to try", hint)
	}
}

// TestPage_leadsOutOfALostQuestion: the prepared text needs no question, and another messenger has one of its own.
func TestPage_leadsOutOfALostQuestion(t *testing.T) {
	s := newSite(t)
	initiated, page := s.start()
	s.update(initiated.Request.ID, addHint(verification.HintTextChanged))
	s.update(initiated.Request.ID, addHint(verification.HintNoQuestion))
	s.Expect(s.get(page)).To(And(ContainSubstring("does not deliver our question"), ContainSubstring("https://wa.me/"),
		ContainSubstring("?method=TELEGRAM"), Not(ContainSubstring("tap <strong>"))))
}

// TestPage_beginsAnewInTheOtherMessenger: what was asked in one says nothing about the other.
func TestPage_beginsAnewInTheOtherMessenger(t *testing.T) {
	for hint, want := range map[verification.HintKind]struct{ first, whatsApp, telegram view.State }{
		verification.HintNumberHidden:         {view.Hidden, view.Hidden, view.Ready},
		verification.HintAwaitingConfirmation: {view.Confirm, view.Confirm, view.Ready},
		verification.HintTextChanged:          {view.Confirm, view.Confirm, view.Ready},
		verification.HintAwaitingContact:      {view.Seen, view.Ready, view.Seen},
		verification.HintTextRefused:          {view.TextRefused, view.TextRefused, view.Ready},
		verification.HintNoQuestion:           {view.NoQuestion, view.NoQuestion, view.Ready},
		verification.HintContactRefused:       {view.ContactRefused, view.Ready, view.ContactRefused},
		verification.HintNumberAnonymous:      {view.Anonymous, view.Ready, view.Anonymous},
		verification.HintOtherNumber:          {view.OtherNumber, view.OtherNumber, view.OtherNumber},
	} {
		s := newSite(t)
		initiated, page := s.start()
		s.update(initiated.Request.ID, addHint(hint))
		for method, state := range map[string]view.State{"": want.first, "?method=WHATSAPP": want.whatsApp, "?method=TELEGRAM": want.telegram} {
			s.Expect(s.stateOf(page+method)).To(BeEquivalentTo(state), "%s with %s", hint, method)
			s.Expect(s.get(page+"/state"+method)).To(ContainSubstring(string(state)), "%s with %s", hint, method)
		}
	}
}

// TestPage_namesTheMessengerOfItsState although init named the other one.
func TestPage_namesTheMessengerOfItsState(t *testing.T) {
	s := newSite(t)
	initiated, page := s.start()
	s.update(initiated.Request.ID, addHint(verification.HintAwaitingContact))
	s.Expect(s.get(page)).To(And(ContainSubstring("One more tap in Telegram"), ContainSubstring("https://t.me/"), ContainSubstring("?method=WHATSAPP")))
	s.Expect(s.get(page+"?method=WHATSAPP")).To(And(ContainSubstring("Open WhatsApp"), ContainSubstring("https://wa.me/")), "who changes gets the button")
	s.changeSettings(func(c *settings.Settings) {
		shared := *c.WhatsApp
		shared.HiddenNumbers = settings.HiddenShared
		c.WhatsApp = &shared
	})
	s.Expect(s.get(page)).To(ContainSubstring("One more tap in WhatsApp"), "it may be either, and init named this one")

	initiated, page = s.start(func(in *verification.Initiation) {
		in.Method, in.OtherMethods = verification.Telegram, []verification.Method{verification.WhatsApp}
		in.Locale = "fr"
	})
	s.update(initiated.Request.ID, addHint(verification.HintAwaitingConfirmation))
	s.Expect(s.get(page)).To(And(ContainSubstring("Confirmez dans WhatsApp"), ContainSubstring("<strong><bdi>Confirmer</bdi></strong>")))
	s.update(initiated.Request.ID, endAs(verification.HintDeclined))
	s.Expect(s.get(page)).To(ContainSubstring("<bdi>"+html.EscapeString(s.settings.Load().TextsIn("fr").ButtonNotMe)+"</bdi>"), "as the button in the chat says")
}

// TestStateOf_endsWithTheAPI: until then, a verification of another replica may still come.
func TestStateOf_endsWithTheAPI(t *testing.T) {
	g := NewWithT(t)
	end := time.Unix(1_800_000_000, 0)
	r := &verification.Request{Method: verification.WhatsApp, Phase: verification.Pending, ExpiresAt: end}
	s := shopSettings()
	s.WhatsApp.AccessToken = settings.NewSecret([]byte("a token"))
	for after, want := range map[time.Duration]view.State{
		-time.Second: view.Ready, 0: view.Ready, verification.ExpiryGrace - 1: view.Ready, verification.ExpiryGrace: view.Expired,
	} {
		g.Expect(stateOf(s, r, verification.WhatsApp, false, false, end.Add(after))).To(Equal(want), after.String())
	}
}

// laggingStore is the store of a replica that learns late of what others write.
type laggingStore struct {
	verification.Store

	known atomic.Pointer[verification.Request]
}

func (s *laggingStore) ReadCached(ctx context.Context, id string) (verification.Request, error) {
	if known := s.known.Load(); known != nil {
		return *known, nil
	}
	return s.Store.ReadCached(ctx, id)
}

// TestPage_confirmsAnEnd that only the clock tells.
func TestPage_confirmsAnEnd(t *testing.T) {
	var store laggingStore
	now := clocktesting.NewFakeClock(time.Now())
	s := newSite(t, func(o *Options) { o.Clock = now })
	store.Store = s.store
	s.handler.Service = verification.NewService(verification.NewCodeSpace("books/shop"), &store)
	initiated, page := s.start()
	store.known.Store(&initiated.Request)
	s.verify(initiated.Request.ID)
	s.Expect(s.stateOf(page)).To(Equal("ready"), "what this replica knows")
	now.Step(11 * time.Minute)
	s.Expect(s.stateOf(page)).To(Equal("verified"))
}

func TestPage_speaksTheLanguageOfTheRequestThenOfTheBrowser(t *testing.T) {
	s := newSite(t)
	_, page := s.start(func(in *verification.Initiation) { in.Locale = "ar" })
	s.Expect(s.get(page, "Accept-Language", "de")).To(ContainSubstring(`<html lang="ar" dir="rtl">`))
	_, page = s.start()
	s.Expect(s.get(page, "Accept-Language", "de-AT")).To(ContainSubstring(`<html lang="de" dir="ltr">`))
}

func TestPage_isRefused(t *testing.T) {
	s := newSite(t)
	initiated, page := s.start()
	for name, c := range map[string]struct {
		method, url string
		want        int
	}{
		"another ticket":     {http.MethodGet, page[:len(page)-1] + "-", http.StatusNotFound},
		"no ticket":          {http.MethodGet, s.server.URL + "/v/", http.StatusNotFound},
		"another path":       {http.MethodGet, s.server.URL + "/x/v/" + page[strings.LastIndex(page, "/")+1:], http.StatusNotFound},
		"another operation":  {http.MethodGet, page + "/admin", http.StatusNotFound},
		"a deeper operation": {http.MethodGet, page + "/events/x", http.StatusNotFound},
		"another method":     {http.MethodPost, page, http.StatusMethodNotAllowed},
		"a look at opened":   {http.MethodGet, page + "/opened", http.StatusMethodNotAllowed},
		"a deletion":         {http.MethodDelete, page, http.StatusMethodNotAllowed},
	} {
		response, body := s.send(c.method, c.url)
		s.Expect(response.StatusCode).To(Equal(c.want), name)
		s.Expect(body).NotTo(ContainSubstring("Ada"), name)
	}
	s.Expect(s.get(strings.Replace(page, "/phone/v/", "/v/", 1))).To(ContainSubstring("Ada"), "behind a proxy that strips the path of baseURL")
	for _, prefix := range []string{"/v", "/v/shop"} {
		s.changeSettings(func(c *settings.Settings) { c.PathPrefix = prefix })
		for _, kept := range []string{prefix, ""} {
			s.Expect(s.get(strings.Replace(page, "/phone/v/", kept+"/v/", 1))).To(ContainSubstring("Ada"), "%q of %q", kept, prefix)
		}
	}
	s.changeSettings(func(c *settings.Settings) { c.PathPrefix = "/phone" })
	s.Expect(s.store.Delete(t.Context(), initiated.Request.ID, initiated.Request.Version)).To(Succeed())
	response, _ := s.send(http.MethodGet, page)
	s.Expect(response.StatusCode).To(Equal(http.StatusNotFound), "a request that is gone")
	_, page = s.start()
	s.backend.Fail(errors.New("down"))
	response, body := s.send(http.MethodGet, page)
	s.Expect(response.StatusCode).To(Equal(http.StatusServiceUnavailable))
	s.Expect(response.Header.Get("Refresh")).To(Equal("5"), "a page without a script goes on")
	s.Expect(body).To(And(ContainSubstring(`data-state="unavailable"`), ContainSubstring("this page goes on by itself")))
	response, body = s.send(http.MethodGet, page+"/state")
	s.Expect(response.StatusCode).To(Equal(http.StatusServiceUnavailable))
	s.Expect(body).To(BeEmpty())
	s.backend.Fail(nil)
	s.changeSettings(func(c *settings.Settings) { c.Page.ReturnURLs = nil })
	withoutPage := *s.settings.Load()
	withoutPage.Page = nil
	s.settings.Store(&withoutPage)
	response, _ = s.send(http.MethodGet, page)
	s.Expect(response.StatusCode).To(Equal(http.StatusNotFound), "a project without a page")
}

// TestPage_boundsTheCallsOfOneTicket asks without end.
func TestPage_boundsTheCallsOfOneTicket(t *testing.T) {
	s := newSite(t)
	_, page := s.start()
	refused := 0
	for range 3 * int(callRate.Burst) {
		if response, _ := s.send(http.MethodHead, page); response.StatusCode == http.StatusTooManyRequests {
			s.Expect(response.Header.Get("Refresh")).To(Equal("5"), "a page without a script goes on")
			refused++
		}
	}
	s.Expect(refused).To(BeNumerically(">", 0))
	_, other := s.start()
	s.Expect(s.stateOf(other)).To(Equal("ready"), "other pages do not suffer")
}

func TestNewHandler_needsItsParts(t *testing.T) {
	g := NewWithT(t)
	_, err := NewHandler(Options{})
	g.Expect(err).To(HaveOccurred())
	s := newSite(t)
	_, err = NewHandler(s.handler.Options)
	g.Expect(err).To(MatchError(ContainSubstring("metrics")), "registered twice")
}
