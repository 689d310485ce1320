package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/simulator"
)

// askByEcho has the project ask claimed numbers, and send every event.
func askByEcho(spec *verifyv1.VerificationProjectSpec) {
	spec.WhatsApp.AcceptSharedContact, spec.WhatsApp.HiddenNumbers = nil, verifyv1.HiddenNumbersEcho
	sendEveryEvent(spec)
}

func sendEveryEvent(spec *verifyv1.VerificationProjectSpec) {
	spec.Webhook.Events = []verifyv1.Event{verifyv1.EventSuccess, verifyv1.EventExpired, verifyv1.EventDeclined, verifyv1.EventAttention}
}

// addHiddenUser adds a user whose number WhatsApp hides, and returns the number.
func (s *simulatedShop) addHiddenUser(ctx context.Context) string {
	GinkgoHelper()
	s.users++
	number := fmt.Sprintf("+4915155%06d", s.users)
	s.callSimulator(ctx, http.StatusCreated, "/sim/users",
		fmt.Sprintf(`{"name": "Noa", "phone": %q, "username": "noa_%d", "hidesNumber": true}`, number, s.users))
	return number
}

// sendText has a user open a link and send its text.
func (s *simulatedShop) sendText(ctx context.Context, number, link string) {
	GinkgoHelper()
	s.callSimulator(ctx, http.StatusAccepted, "/sim/users/"+number+"/send", fmt.Sprintf(`{"link": %q}`, link))
}

// tapButton has a user tap a button as soon as there is one.
func (s *simulatedShop) tapButton(ctx context.Context, number, title string) {
	GinkgoHelper()
	s.callSimulator(ctx, http.StatusAccepted, "/sim/users/"+number+"/tap", fmt.Sprintf(`{"title": %q, "wait": "30s"}`, title))
}

func (s *simulatedShop) readAnswer(ctx context.Context, id string) map[string]any {
	GinkgoHelper()
	return s.replicas[0].mustCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")
}

// expectAnswer waits until status answers what is wanted.
func (s *simulatedShop) expectAnswer(ctx context.Context, id string, want ...any) {
	GinkgoHelper()
	var matchers []types.GomegaMatcher
	for i := 0; i < len(want); i += 2 {
		if want[i+1] == nil {
			matchers = append(matchers, Not(HaveKey(want[i])))
			continue
		}
		matchers = append(matchers, HaveKeyWithValue(want[i], want[i+1]))
	}
	Eventually(s.readAnswer).WithContext(ctx).WithArguments(id).WithTimeout(patience).Should(SatisfyAll(matchers...))
}

// listEvents returns the kinds and hints of the events about a request, in their order.
func (s *simulatedShop) listEvents(id string) []string {
	GinkgoHelper()
	var got []string
	for _, d := range s.receiver.deliveries() {
		var body struct {
			Event     string `json:"event"`
			RequestID string `json:"requestId"`
			Hint      string `json:"hint"`
		}
		Expect(json.Unmarshal([]byte(d.body), &body)).To(Succeed())
		if body.RequestID == id {
			got = append(got, body.Event+" "+body.Hint)
		}
	}
	return got
}

var _ = Describe("A caller", func() {
	It("learns why a number is not verified, by status and by event", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, askByEcho)
		owner, stranger := s.addHiddenUser(ctx), s.addUser(ctx)
		id, link := s.startRequest(ctx, "WHATSAPP", owner)
		s.expectAnswer(ctx, id, "status", "PENDING", "hint", nil)
		s.sendText(ctx, stranger, link)
		s.expectAnswer(ctx, id, "status", "PENDING", "hint", "OTHER_NUMBER")
		Eventually(s.listEvents).WithArguments(id).WithContext(ctx).WithTimeout(patience).
			Should(Equal([]string{"verification.attention OTHER_NUMBER"}))
		s.sendText(ctx, owner, link)
		s.expectAnswer(ctx, id, "status", "PENDING", "hint", "AWAITING_CONFIRMATION")
		Eventually(s.listEvents).WithArguments(id).WithContext(ctx).WithTimeout(patience).Should(HaveLen(2))

		s.tapButton(ctx, owner, "Confirm")
		s.expectAnswer(ctx, id, "status", "VERIFIED", "assurance", "echo", "actualPhoneNumber", owner, "hint", nil)
		Eventually(s.listEvents).WithArguments(id).WithContext(ctx).WithTimeout(patience).Should(Equal([]string{
			"verification.attention OTHER_NUMBER", "verification.attention AWAITING_CONFIRMATION", "verification.success ",
		}))
	}, SpecTimeout(2*time.Minute))

	It("learns that the owner of a number declined", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, askByEcho)
		owner := s.addHiddenUser(ctx)
		id, link := s.startRequest(ctx, "WHATSAPP", owner)
		s.sendText(ctx, owner, link)
		s.tapButton(ctx, owner, "Not me")
		s.expectAnswer(ctx, id, "status", "EXPIRED", "hint", "DECLINED")
		Eventually(s.listEvents).WithArguments(id).WithContext(ctx).WithTimeout(patience).
			Should(ContainElement("verification.declined DECLINED"))
		s.sendText(ctx, owner, link)
		Consistently(s.readStatus).WithContext(ctx).WithArguments(id).WithTimeout(time.Second).Should(Equal("EXPIRED"))
	}, SpecTimeout(2*time.Minute))

	It("learns that WhatsApp hides the number, and what Telegram waits for", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, func(spec *verifyv1.VerificationProjectSpec) {
			spec.WhatsApp.AcceptSharedContact = nil
			sendEveryEvent(spec)
		})
		hidden := s.addHiddenUser(ctx)
		id, link := s.startRequest(ctx, "WHATSAPP", hidden)
		s.sendText(ctx, hidden, link)
		s.expectAnswer(ctx, id, "status", "PENDING", "hint", "NUMBER_HIDDEN")

		id, link = s.startRequest(ctx, "TELEGRAM", hidden)
		s.sendText(ctx, hidden, link)
		s.expectAnswer(ctx, id, "status", "PENDING", "hint", "AWAITING_CONTACT")
		s.callSimulator(ctx, http.StatusAccepted, "/sim/users/"+hidden+"/share-contact", `{"wait": "30s"}`)
		s.expectAnswer(ctx, id, "status", "VERIFIED", "hint", nil)
	}, SpecTimeout(2*time.Minute))
})

var _ = Describe("A user", func() {
	It("reads and sends texts in their own language, from the link to the reply", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, func(spec *verifyv1.VerificationProjectSpec) {
			spec.Texts = []verifyv1.Texts{{Locale: "ar", Verified: "شكرًا من {name}"}}
		})
		for _, user := range []struct{ locale, expected, verified, asked string }{
			{"es-MX", "Confirmo mi número de teléfono a ", "Su número de teléfono ha quedado confirmado para ", "pide confirmar su número"},
			{"ar", "أؤكد رقم هاتفي لدى ", "شكرًا من ", "تأكيد رقم هاتفك"},
		} {
			By(user.locale)
			owner := s.addUser(ctx)
			answer := s.replicas[0].mustCall(ctx, s.key, http.MethodPost, "/api/verify/init",
				fmt.Sprintf(`{"phoneNumber": %q, "method": "WHATSAPP", "locale": %q}`, owner, user.locale))
			canaries.addText(answer["expectedText"].(string))
			Expect(answer["expectedText"]).To(HavePrefix(user.expected))
			s.sendText(ctx, owner, answer["waLink"].(string))
			s.expectAnswer(ctx, answer["requestId"].(string), "status", "VERIFIED")
			Eventually(s.readChats).WithArguments(owner).WithContext(ctx).WithTimeout(patience).Should(ContainSubstring(user.verified))

			answer = s.replicas[0].mustCall(ctx, s.key, http.MethodPost, "/api/verify/init",
				fmt.Sprintf(`{"phoneNumber": %q, "method": "TELEGRAM", "locale": %q}`, owner, user.locale))
			canaries.addText(answer["expectedText"].(string))
			s.sendText(ctx, owner, answer["tgLink"].(string))
			s.callSimulator(ctx, http.StatusAccepted, "/sim/users/"+owner+"/share-contact", `{"wait": "30s"}`)
			s.expectAnswer(ctx, answer["requestId"].(string), "status", "VERIFIED")
			Expect(s.readChats(ctx, owner)).To(ContainSubstring(user.asked))
		}
	}, SpecTimeout(2*time.Minute))
})

// readChats returns all that a user sees, as JSON.
func (s *simulatedShop) readChats(ctx context.Context, number string) string {
	GinkgoHelper()
	answer := s.simulatorReplica().mustCall(ctx, "", http.MethodGet, "/sim/users/"+number+"/chats", "")
	text, err := json.Marshal(answer)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

var _ = Describe("An echo", func() {
	It("is answered by its own sender alone", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, askByEcho)
		tried := 0
		for _, a := range simulator.Attacks() {
			if a.Needs != "echo" && a.Needs != "otherEcho" {
				continue
			}
			tried++
			By(a.Name)
			if a.Needs == "otherEcho" {
				other := s.addHiddenUser(ctx)
				id, link := s.startRequest(ctx, "WHATSAPP", other)
				s.sendText(ctx, other, link)
				s.expectAnswer(ctx, id, "hint", "AWAITING_CONFIRMATION")
			}
			owner := s.addHiddenUser(ctx)
			id, link := s.startRequest(ctx, "WHATSAPP", owner)
			s.sendText(ctx, owner, link)
			s.expectAnswer(ctx, id, "hint", "AWAITING_CONFIRMATION")
			attacker := s.addUser(ctx)
			var answered []any
			Eventually(func() error { // once the question has arrived
				status, _, answer := s.simulatorReplica().sendCall(ctx, "", http.MethodPost,
					"/sim/users/"+attacker+"/attack/"+a.Name, fmt.Sprintf(`{"link": %q, "phone": %q}`, link, owner))
				if status != http.StatusOK {
					return fmt.Errorf("%v", answer)
				}
				answered = answer["deliveries"].([]any)
				return nil
			}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
			expectStatuses(answered, a.Expect)
			Expect(s.readStatus(ctx, id)).To(Equal("PENDING"), a.Name)
			s.tapButton(ctx, owner, "Confirm")
			s.expectAnswer(ctx, id, "status", "VERIFIED", "assurance", "echo")
		}
		Expect(tried).To(BeNumerically(">=", 10))
	}, SpecTimeout(4*time.Minute))
})
