package adversary

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/simphone"
	"github.com/phoneproof/phoneproof/test/system"
)

// TestCodeAttacks plays attacks on requests with a code that is sent to the number, with two replicas on a database. The attacker has an
// API key, as a website whose users are not to be trusted has.
func TestCodeAttacks(t *testing.T) {
	t.Parallel()
	w := startReplicas(t, system.PostgreSQL, func(p *verifyv1.VerificationProject) error {
		system.SendCodes(p, 6000)
		p.Spec.APIKeys[0].Scopes = []verifyv1.Scope{verifyv1.ScopeInit, verifyv1.ScopeStatus, verifyv1.ScopeDeliver}
		p.Spec.Page, p.Spec.Webhook = &verifyv1.Page{ReturnURLs: []verifyv1.ReturnURL{shopURL}}, nil
		return nil
	})
	for title, play := range map[string]func(*scene){
		"sprayed digits":  (*scene).sprayDelivered,
		"confused digits": (*scene).confuseDigits,
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			play(&scene{world: w, WithT: NewWithT(t), t: t, method: byWhatsApp, read: map[string]string{}})
		})
	}
}

// codeRequest is a request as the attacker's website got it.
type codeRequest struct {
	ID      string `json:"requestId"`
	PageURL string `json:"pageURL"`
	WaLink  string `json:"waLink"`
}

// tryConfirm enters a code at a replica. It returns the status and the code of the error.
func (s *scene) tryConfirm(r *system.Replica, id, code string) (string, error) {
	body := fmt.Sprintf(`{"requestId":%q,"code":%q}`, id, code)
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+r.API+"/api/verify/confirm", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+s.system.Key)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var refused struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	err = json.NewDecoder(answer.Body).Decode(&refused)
	return strings.TrimSpace(fmt.Sprint(answer.StatusCode, " ", refused.Error.Code)), err
}

// initRequest begins a request at the first replica, by link if deliver is empty.
func (s *scene) initRequest(number, deliver string) (r codeRequest) {
	s.t.Helper()
	body := map[string]string{
		"phoneNumber": number, "subject": number, "assurance": "SESSION", "returnURL": shopURL + "/return", "deliver": deliver,
	}
	if deliver == "" {
		delete(body, "deliver")
	}
	s.callAPI("init", body, http.StatusOK, &r)
	return r
}

// awaitDelivered returns the digits that were delivered to a number.
func (s *scene) awaitDelivered(number string) string {
	s.t.Helper()
	var codes simphone.Codes
	s.Eventually(func() (err error) {
		codes, err = simphone.LatestDelivered(s.t.Context(), http.DefaultClient, s.simulator, number)
		return err
	}).WithTimeout(patience).Should(Succeed())
	return codes.Digits
}

// confirm enters a code at the second replica. It returns the status and the code of the error.
func (s *scene) confirm(id, code string) string {
	s.t.Helper()
	answer, err := s.tryConfirm(s.second, id, code)
	s.Expect(err).NotTo(HaveOccurred())
	return answer
}

// otherDigits returns other digits of that length.
func otherDigits(s *scene, digits string, by int) string {
	s.t.Helper()
	n, err := strconv.Atoi(digits)
	s.Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf("%0*d", len(digits), (n+by)%map[int]int{6: 1_000_000, 8: 100_000_000}[len(digits)])
}

// sprayDelivered guesses at once on the page and in confirm, which are served by different replicas, and then enters the right digits.
func (s *scene) sprayDelivered() {
	number := s.newNumber()
	r := s.initRequest(number, "CODE")
	digits := s.awaitDelivered(number)
	attacker := s.newPerson()
	attacker.awaitForm(r.PageURL)
	wrong, errs := make([]bool, guesses), make([]error, guesses)
	var running sync.WaitGroup
	for n := range guesses {
		guess := otherDigits(s, digits, n+1)
		running.Go(func() {
			if n%2 == 0 {
				var got response
				got, errs[n] = attacker.sendForm(http.MethodPost, r.PageURL+"/confirm", url.Values{"code": {guess}})
				wrong[n] = got.status == http.StatusUnprocessableEntity
				return
			}
			var answer string
			answer, errs[n] = s.tryConfirm(s.first, r.ID, guess)
			wrong[n] = answer == "422 wrong_code"
		})
	}
	running.Wait()
	counted := 0
	for n := range guesses {
		s.Expect(errs[n]).NotTo(HaveOccurred())
		if wrong[n] {
			counted++
		}
	}
	s.Expect(counted).To(And(BeNumerically(">", 0), BeNumerically("<=", verification.MaxDeliveredTries)))
	for range guesses { // some were refused because others were being compared
		s.confirm(r.ID, otherDigits(s, digits, 1))
	}
	s.Expect(s.confirm(r.ID, digits)).To(Equal("409 request_expired"))
	attacker.mustSend(http.MethodPost, r.PageURL+"/confirm", url.Values{"code": {digits}})
	s.Expect(s.confirm(r.ID, digits)).To(Equal("409 request_expired"))
	for _, got := range attacker.seen {
		s.Expect(got.header+got.body).NotTo(Or(MatchRegexp(`[?&](amp;)?code=`), ContainSubstring(digits)), got.sent)
	}
}

// confuseDigits enters digits of another kind and of other requests. None costs a try of a request that does not take that kind.
func (s *scene) confuseDigits() {
	first, second, third := s.newNumber(), s.newNumber(), s.newNumber()
	coded, link, other := s.initRequest(first, "CODE"), s.initRequest(second, ""), s.initRequest(third, "CODE")
	delivered, others := s.awaitDelivered(first), s.awaitDelivered(third)
	codes, _ := s.proveNumber(s.newPerson(), second, link.WaLink)
	for range verification.MaxConfirmTries {
		s.Expect(s.confirm(coded.ID, codes.Digits)).To(Equal("409 not_proven"), "the chat's digits before a message proved it")
		s.Expect(s.confirm(link.ID, delivered)).To(Equal("400 invalid_code"), "delivered digits for a link")
		s.Expect(s.confirm(coded.ID, delivered[:7])).To(Equal("400 invalid_code"), "seven digits")
	}
	s.Expect(s.confirm(coded.ID, others)).To(Equal("422 wrong_code"))
	s.Expect(s.confirm(other.ID, delivered)).To(Equal("422 wrong_code"))

	own, _ := s.proveNumber(s.newPerson(), first, coded.WaLink) // its user sends the text, too: then both kinds are taken
	s.Expect(own.Digits).NotTo(Equal(delivered[:6]))
	s.Expect(s.confirm(coded.ID, otherDigits(s, own.Digits, 1))).To(Equal("422 wrong_code"))
	s.Expect(s.confirm(coded.ID, own.Digits)).To(Equal("200"))
	s.Expect(s.confirm(link.ID, codes.Digits)).To(Equal("200"))
	s.Expect(s.confirm(other.ID, others)).To(Equal("200"))
}
