package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
)

// askByEcho has the project ask claimed numbers, and send every event.
func askByEcho(spec *verifyv1.VerificationProjectSpec) {
	spec.WhatsApp.HiddenNumbers = verifyv1.HiddenNumbersEcho
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
	Eventually(s.readAnswer).WithContext(ctx).WithArguments(id).Should(SatisfyAll(matchers...))
}

// startLapsed starts a verification that is over at once, and returns its id and link once it is EXPIRED.
func (s *simulatedShop) startLapsed(ctx context.Context, number string) (id, link string) {
	GinkgoHelper()
	id, code, err := s.storeRequestOf(ctx, number, 100*time.Millisecond)
	Expect(err).NotTo(HaveOccurred())
	canaries.addText(code.Grouped())
	s.expectAnswer(ctx, id, "status", "EXPIRED", "hint", nil)
	return id, whatsapp.Link("+4915112345670", code.Grouped())
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
		Eventually(s.listEvents).WithArguments(id).WithContext(ctx).
			Should(Equal([]string{"verification.attention OTHER_NUMBER"}))
		s.sendText(ctx, owner, link)
		s.expectAnswer(ctx, id, "status", "PENDING", "hint", "AWAITING_CONFIRMATION")
		Eventually(s.listEvents).WithArguments(id).WithContext(ctx).Should(HaveLen(2))

		s.tapButton(ctx, owner, "Confirm")
		s.expectAnswer(ctx, id, "status", "VERIFIED", "assurance", "echo", "actualPhoneNumber", owner, "hint", nil)
		Eventually(s.listEvents).WithArguments(id).WithContext(ctx).Should(Equal([]string{
			"verification.attention OTHER_NUMBER", "verification.attention AWAITING_CONFIRMATION", "verification.success ",
		}))
	}, SpecTimeout(hang))

	It("learns that the text was changed, and goes on with the button", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, sendEveryEvent)
		owner := s.addUser(ctx)
		id, link := s.startRequest(ctx, "WHATSAPP", owner)
		parsed, err := url.Parse(link)
		Expect(err).NotTo(HaveOccurred())
		_, code, found := strings.Cut(parsed.Query().Get("text"), "Code: ")
		Expect(found).To(BeTrue())
		s.callSimulator(ctx, http.StatusAccepted, "/sim/users/"+owner+"/send", fmt.Sprintf(`{"link": %q, "text": "For my parcel: %s"}`, link, code))
		s.expectAnswer(ctx, id, "status", "PENDING", "hint", "TEXT_CHANGED")
		Eventually(s.listEvents).WithArguments(id).WithContext(ctx).
			Should(Equal([]string{"verification.attention TEXT_CHANGED"}))
		s.tapButton(ctx, owner, "Confirm")
		s.expectAnswer(ctx, id, "status", "VERIFIED", "hint", nil)
		Eventually(s.listEvents).WithArguments(id).WithContext(ctx).
			Should(Equal([]string{"verification.attention TEXT_CHANGED", "verification.success "}))
	}, SpecTimeout(hang))

	It("learns that a request expired, and that its text came too late", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, sendEveryEvent)
		owner := s.addUser(ctx)
		id, link := s.startLapsed(ctx, owner)
		Eventually(s.listEvents).WithArguments(id).WithContext(ctx).Should(Equal([]string{"verification.expired "}))
		s.sendText(ctx, owner, link)
		s.expectAnswer(ctx, id, "status", "EXPIRED", "hint", "TOO_LATE")
		Expect(s.listEvents(id)).To(HaveLen(1), "what comes after the end is no event")
	}, SpecTimeout(hang))

	It("learns that the owner of a number declined", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, askByEcho)
		owner := s.addHiddenUser(ctx)
		id, link := s.startRequest(ctx, "WHATSAPP", owner)
		s.sendText(ctx, owner, link)
		s.tapButton(ctx, owner, "Not me")
		s.expectAnswer(ctx, id, "status", "EXPIRED", "hint", "DECLINED")
		Eventually(s.listEvents).WithArguments(id).WithContext(ctx).
			Should(ContainElement("verification.declined DECLINED"))
		s.sendText(ctx, owner, link)
		Consistently(s.readStatus).WithContext(ctx).WithArguments(id).WithTimeout(time.Second).Should(Equal("EXPIRED"))
	}, SpecTimeout(hang))

	It("learns that WhatsApp hides the number, and what Telegram waits for", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, func(spec *verifyv1.VerificationProjectSpec) {
			spec.WhatsApp.HiddenNumbers = ""
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
	}, SpecTimeout(hang))
})

var _ = Describe("A user", func() {
	It("reads and sends texts in their own language, from the link to the reply", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, askByEcho, func(spec *verifyv1.VerificationProjectSpec) {
			spec.Texts = []verifyv1.Texts{{Locale: "ar", Verified: "شكرًا من {name}"}}
		})
		begin := func(number, method, locale string) (id, expected, link string) {
			GinkgoHelper()
			answer := s.replicas[0].mustCall(ctx, s.key, http.MethodPost, "/api/verify/init",
				fmt.Sprintf(`{"phoneNumber": %q, "method": %q, "locale": %q}`, number, method, locale))
			canaries.addText(answer["expectedText"].(string))
			link, ok := answer["waLink"].(string)
			if !ok {
				link = answer["tgLink"].(string)
			}
			return answer["requestId"].(string), answer["expectedText"].(string), link
		}
		for _, user := range []struct{ locale, expected, verified, asked, echo, confirm, notMe, declined string }{
			{
				"es-MX", "Confirmo mi número de teléfono a ", "Su número de teléfono ha quedado confirmado para ", "pide confirmar su número",
				"pide confirmar que este número", "Confirmar", "No soy yo", "No se ha confirmado nada.",
			},
			{
				"ar", "أؤكد رقم هاتفي لدى ", "شكرًا من ", "تأكيد رقم هاتفك",
				"تأكيد أن رقم الهاتف هذا لك", "تأكيد", "لست أنا", "لم يتم تأكيد أي شيء.",
			},
		} {
			By(user.locale)
			owner := s.addUser(ctx)
			id, expected, link := begin(owner, "WHATSAPP", user.locale)
			Expect(expected).To(HavePrefix(user.expected))
			s.sendText(ctx, owner, link)
			s.expectAnswer(ctx, id, "status", "VERIFIED")
			Eventually(s.readChats).WithArguments(owner).WithContext(ctx).Should(ContainSubstring(user.verified))

			id, _, link = begin(owner, "TELEGRAM", user.locale)
			s.sendText(ctx, owner, link)
			s.callSimulator(ctx, http.StatusAccepted, "/sim/users/"+owner+"/share-contact", `{"wait": "30s"}`)
			s.expectAnswer(ctx, id, "status", "VERIFIED")
			Expect(s.readChats(ctx, owner)).To(ContainSubstring(user.asked))

			// One who hides the number is asked by buttons.
			confirms, declines := s.addHiddenUser(ctx), s.addHiddenUser(ctx)
			id, _, link = begin(confirms, "WHATSAPP", user.locale)
			s.sendText(ctx, confirms, link)
			s.tapButton(ctx, confirms, user.confirm)
			s.expectAnswer(ctx, id, "status", "VERIFIED", "assurance", "echo")
			Expect(s.readChats(ctx, confirms)).To(ContainSubstring(user.echo))
			Eventually(s.readChats).WithArguments(confirms).WithContext(ctx).Should(ContainSubstring(user.verified))
			id, _, link = begin(declines, "WHATSAPP", user.locale)
			s.sendText(ctx, declines, link)
			s.tapButton(ctx, declines, user.notMe)
			s.expectAnswer(ctx, id, "status", "EXPIRED", "hint", "DECLINED")
			Eventually(s.readChats).WithArguments(declines).WithContext(ctx).Should(ContainSubstring(user.declined))
		}
	}, SpecTimeout(hang))
})

// readChats returns all that a user sees, as JSON.
func (s *simulatedShop) readChats(ctx context.Context, number string) string {
	GinkgoHelper()
	answer := s.simulatorReplica().mustCall(ctx, "", http.MethodGet, "/sim/users/"+number+"/chats", "")
	text, err := json.Marshal(answer)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
