package adversary

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/simphone"
)

// pageEvery is how often a page is opened again: none lets itself be opened much more often.
const pageEvery = 500 * time.Millisecond

// TestAttacks plays each attack by each messenger. The rows of docs/security.md name them.
func TestAttacks(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	for title, play := range map[string]func(*scene){
		"relayed link":  func(s *scene) { s.relayOffer(func(a *person) string { return a.openMessenger(a.page) }) },
		"unopened page": func(s *scene) { s.relayOffer(func(a *person) string { return a.page }) },
		"opened page":   (*scene).relayOpenedPage,
		"QR on a wall":  (*scene).showQR,
		"race":          (*scene).raceRequests,
		"stolen codes":  (*scene).stealCodes,
		"guess":         (*scene).guessDigits,
		"bombing":       (*scene).bombNumber,
	} {
		for _, method := range []string{byWhatsApp, byTelegram} {
			t.Run(title+" by "+method, func(t *testing.T) {
				t.Parallel()
				play(&scene{world: w, WithT: NewWithT(t), t: t, method: method, read: map[string]string{}})
			})
		}
	}
}

// relayOffer passes on what prepare returns to the owner of a number, who obeys it, while previews look through all links.
func (s *scene) relayOffer(prepare func(attacker *person) string) (attacker *person, codes simphone.Codes) {
	number := s.newNumber()
	attacker = s.newStarted(number)
	offer := prepare(attacker)
	victim, scanner := s.newPerson(), s.newScanner()
	if !messengerLink.MatchString(offer) {
		scanner.scanLinks(offer)
	}
	codes, _ = s.proveNumber(victim, number, offer)
	scanner.scanLinks(codes.ReturnLink)
	victim.followOffers(codes, offer)
	scanner.scanLinks(codes.ReturnLink)
	attacker.claimVerified(s.idOf(number))
	scanner.expectNothing(codes)
	attacker.expectNotVerified(number)
	attacker.enterHeardDigits(codes, number)
	return attacker, codes
}

// scanLinks opens an address, and the page there, without cookies and by the methods that change nothing.
func (p *person) scanLinks(address string) {
	p.t.Helper()
	page, _, _ := strings.Cut(address, "/return?")
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		p.mustSend(method, address, nil)
		p.mustSend(method, page, nil)
	}
}

// followOffers does all that pages and chat offer, in the browser of the owner of the number, who has no session in the shop.
func (p *person) followOffers(codes simphone.Codes, offer string) {
	p.t.Helper()
	p.open(codes.ReturnLink)
	pages := []string{chatPage(codes)}
	if !messengerLink.MatchString(offer) {
		page, _, _ := strings.Cut(offer, "?")
		pages = append(pages, page)
	}
	for _, page := range pages {
		shop := p.enterOnPage(page, codes.Digits)
		p.Expect(shop.url.String()).To(Equal(shopURL+"/me"), "the digits are right, and lead to the shop, which has them not begun there")
	}
	p.Expect(p.mustSend(http.MethodPost, shopURL+"/digits", url.Values{"code": {codes.Digits}}).url.Path).To(Equal("/me"))
	p.Expect(p.isVerified()).To(BeFalse())
}

// claimVerified opens the shop's return address as if a page had led there.
func (p *person) claimVerified(request string) {
	p.t.Helper()
	for _, query := range []string{"status=VERIFIED", "status=VERIFIED&code=", "status=PENDING&code=AAAAAAAAAAAAAAAAAAAAAA"} {
		p.open(shopURL + "/return?requestId=" + request + "&" + query)
	}
}

// enterHeardDigits ends an attack, which brought no codes: the digits are read out to the attacker, which stops at no level.
func (p *person) enterHeardDigits(codes simphone.Codes, number string) {
	p.t.Helper()
	p.expectNothing(codes)
	got, err := p.enterDigits(codes.Digits)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(got.body).To(ContainSubstring("Verified: " + number))
	p.Expect(p.isVerified()).To(BeTrue())
	p.Expect(p.phasesOf(number)).To(ContainElement(verifyv1.PhaseVerified))
}

// expectNotVerified expects that neither the shop nor the store has a number as verified.
func (p *person) expectNotVerified(number string) {
	p.t.Helper()
	p.Expect(p.isVerified()).To(BeFalse())
	p.Expect(p.phasesOf(number)).NotTo(ContainElement(verifyv1.PhaseVerified))
}

func (s *scene) phasesOf(number string) []verifyv1.Phase {
	s.t.Helper()
	var all []verifyv1.Phase
	for _, r := range s.readStored(number) {
		all = append(all, r.Status.Phase)
	}
	return all
}

// idOf returns the id of the only request for a number.
func (s *scene) idOf(number string) string {
	s.t.Helper()
	stored := s.readStored(number)
	s.Expect(stored).To(HaveLen(1))
	return stored[0].Name
}

// relayOpenedPage has the attacker hold the page open, with its cookie and its stream of events, which ends with the request.
func (s *scene) relayOpenedPage() {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	var stream *http.Response
	first := make([]byte, 1)
	attacker, codes := s.relayOffer(func(a *person) string {
		a.openMessenger(a.page)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.page+"/events", nil)
		s.Expect(err).NotTo(HaveOccurred())
		stream, err = (&http.Client{Jar: a.client.Jar, Transport: a.world}).Do(request) //nolint:bodyclose // closed by the context
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(stream.StatusCode).To(Equal(http.StatusOK))
		s.Expect(io.ReadFull(stream.Body, first)).To(Equal(1), "it is open before the number is proven")
		return a.page
	})
	time.AfterFunc(patience, cancel)
	rest, err := io.ReadAll(stream.Body)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(string(rest)).To(ContainSubstring("data: verified\n"), "it was open to the end")
	attacker.seen = append(attacker.seen, response{header: fmt.Sprint(stream.Header), body: string(first) + string(rest)})
	attacker.expectNothing(codes)
}

// showQR shows the picture of the page to a bystander, too, whose number no one claimed.
func (s *scene) showQR() {
	s.relayOffer(func(a *person) string {
		content := a.readQR()
		link := content
		if !messengerLink.MatchString(content) {
			link = s.newPerson().openMessenger(content)
		}
		s.callPhone("/"+s.newNumber()+"/send", map[string]string{"link": link}, http.StatusAccepted, nil)
		return content
	})
}

// raceRequests begins two requests for one number, of which the owner first proves one, and then the other.
func (s *scene) raceRequests() {
	number := s.newNumber()
	first, second, victim := s.newStarted(number), s.newStarted(number), s.newPerson()
	codes, _ := s.proveNumber(victim, number, first.page)
	got, err := second.enterDigits(codes.Digits)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(got.body).To(ContainSubstring("Send the message from your phone first."))
	victim.followOffers(codes, first.page)
	second.expectNotVerified(number)
	others, _ := s.proveNumber(victim, number, second.page)
	s.Expect(others).NotTo(HaveField("Digits", codes.Digits))
	second.expectRefused(codes.Digits, wrongDigits)
	first.expectRefused(others.Digits, wrongDigits)
	first.expectNotVerified(number)
	second.expectNothing(others)
	first.enterHeardDigits(codes, number)
	s.Expect(second.isVerified()).To(BeFalse())
}

// What the shop says of digits.
const (
	wrongDigits = "These digits are wrong."
	tooLate     = "This has ended. Begin again."
)

// expectRefused expects the shop to refuse a code and to say why.
func (p *person) expectRefused(code, why string) {
	p.t.Helper()
	got, err := p.enterDigits(code)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(got.status).To(BeElementOf(http.StatusConflict, http.StatusUnprocessableEntity), got.body)
	p.Expect(got.body).To(ContainSubstring(why))
}

// stealCodes uses the codes of an honest user before and after that user does, for that request and, four times, for the attacker's,
// which is proven, too.
func (s *scene) stealCodes() {
	number := s.newNumber()
	honest := s.newStarted(number)
	own := s.idOf(number)
	codes, _ := s.proveNumber(honest, number, honest.page)
	attacker := s.newStarted(number)
	others, _ := s.proveNumber(honest, number, attacker.openMessenger(attacker.page))
	for _, used := range []bool{false, true} {
		if used {
			s.Expect(honest.open(codes.ReturnLink).body).To(ContainSubstring("Verified: " + number))
		}
		s.Expect(attacker.open(codes.ReturnLink).url.String()).To(Equal(chatPage(codes)), "another browser is not led on")
		s.Expect(attacker.open(attacker.page + "/return?code=" + returnCode(codes)).url.String()).To(Equal(attacker.page))
		attacker.open(shopURL + "/return?requestId=" + own + "&status=PENDING&code=" + returnCode(codes))
		if !used {
			s.Expect(attacker.enterOnPage(chatPage(codes), codes.Digits).url.String()).To(Equal(shopURL+"/me"), "a session that did not begin it")
			s.Expect(attacker.enterOnPage(attacker.page, codes.Digits).body).To(ContainSubstring("These digits are wrong."))
		}
		attacker.expectRefused(codes.Digits, wrongDigits)
	}
	attacker.expectRefused(returnCode(codes), wrongDigits)
	for _, code := range []string{codes.Digits, returnCode(codes)} {
		var refused struct{ Error struct{ Code string } }
		s.callAPI("confirm", map[string]string{"requestId": own, "code": code}, http.StatusConflict, &refused)
		s.Expect(refused.Error.Code).To(Equal("already_confirmed"))
	}
	s.Expect(attacker.isVerified()).To(BeFalse())
	s.Expect(honest.isVerified()).To(BeTrue())
	s.Expect(s.phasesOf(number)).To(ConsistOf(verifyv1.PhaseVerified, verifyv1.PhasePending))
	attacker.enterHeardDigits(others, number)
}

// guesses are entered at once, half of them on the page and half in the shop, which are served by different replicas.
const guesses = 12

// guessDigits enters wrong digits until no more are taken, and then the right ones. Those of the next request verify.
func (s *scene) guessDigits() {
	number := s.newNumber()
	attacker := s.newStarted(number)
	victim := s.newPerson()
	codes, _ := s.proveNumber(victim, number, attacker.page)
	attacker.awaitForm(attacker.page)
	right, err := strconv.Atoi(codes.Digits)
	s.Expect(err).NotTo(HaveOccurred())
	answers, errs := make([]response, guesses), make([]error, guesses)
	var running sync.WaitGroup
	for n := range guesses {
		running.Go(func() {
			address := []string{shopURL + "/digits", attacker.page + "/confirm"}[n%2]
			answers[n], errs[n] = attacker.sendForm(http.MethodPost, address, url.Values{"code": {fmt.Sprintf("%06d", (right+1+n)%1_000_000)}})
		})
	}
	running.Wait()
	wrong := 0
	for n, got := range answers {
		s.Expect(errs[n]).NotTo(HaveOccurred())
		if strings.Contains(got.body, wrongDigits) || n%2 == 1 && got.status == http.StatusUnprocessableEntity {
			wrong++
		}
	}
	s.Expect(wrong).To(BeNumerically("<=", verification.MaxConfirmTries))
	for range guesses { // on a busy machine all of them may have been refused because others were being compared
		_, err := attacker.enterDigits(fmt.Sprintf("%06d", (right+1)%1_000_000))
		s.Expect(err).NotTo(HaveOccurred())
	}
	attacker.expectRefused(codes.Digits, tooLate)
	attacker.mustSend(http.MethodPost, attacker.page+"/confirm", url.Values{"code": {codes.Digits}})
	attacker.open(shopURL + "/return?requestId=" + s.idOf(number) + "&status=PENDING&code=" + returnCode(codes))
	attacker.expectNotVerified(number)
	s.Expect(s.readStored(number)).To(HaveExactElements(And(
		HaveField("Status.Phase", verifyv1.PhaseExpired), HaveField("Status.WrongCodes", BeEquivalentTo(verification.MaxConfirmTries)))))
	attacker.expectNothing(codes)
	next := s.newStarted(number)
	codes, _ = s.proveNumber(victim, number, next.page)
	next.enterHeardDigits(codes, number)
}

// bombNumber goes on with a number whose owner answered Not me.
func (s *scene) bombNumber() {
	number := s.newNumber()
	attacker := s.newStarted(number)
	codes, chat := s.proveNumber(s.newPerson(), number, attacker.page)
	s.callPhone("/"+number+"/tap", map[string]string{"chat": chat, "title": "Not me", "wait": "20s"}, http.StatusAccepted, nil)
	s.Eventually(func() []verifyv1.Phase { return s.phasesOf(number) }).WithTimeout(patience).Should(HaveExactElements(verifyv1.PhaseExpired))
	attacker.expectRefused(codes.Digits, tooLate)
	// The project has no other limit that refuses. A replica may hear of the answer a moment later.
	s.Eventually(func() bool { return s.newPerson().beginRequest(number) }).WithTimeout(patience).WithPolling(pageEvery).Should(BeFalse())
	begun := len(s.phasesOf(number))
	s.callAPI("init", map[string]string{"phoneNumber": number}, http.StatusTooManyRequests, nil)
	s.Expect(s.phasesOf(number)).To(HaveLen(begun))
	attacker.expectNotVerified(number)
	attacker.expectNothing(codes)
}
