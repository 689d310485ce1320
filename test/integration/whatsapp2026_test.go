package integration_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
)

// countSent returns how many messages the business sent, by the simulator's ledger.
func (s *simulatedShop) countSent(ctx context.Context) float64 {
	GinkgoHelper()
	return s.simulatorReplica().mustCall(ctx, "", http.MethodGet, "/sim/sent", "")["total"].(float64)
}

// sendEverything sends what a project answers otherwise: the right text, that of another number, one from a hidden number, a text
// without a code and one that came too late for its request.
func (s *simulatedShop) sendEverything(ctx context.Context) {
	GinkgoHelper()
	owner, stranger, hidden := s.addUser(ctx), s.addUser(ctx), s.addHiddenUser(ctx)
	id, link := s.startRequest(ctx, "WHATSAPP", owner)
	s.sendText(ctx, stranger, link)
	s.expectAnswer(ctx, id, "hint", "OTHER_NUMBER")
	s.sendText(ctx, hidden, link)
	s.expectAnswer(ctx, id, "hint", "NUMBER_HIDDEN")
	s.callSimulator(ctx, http.StatusAccepted, "/sim/users/"+stranger+"/send", `{"text": "hello"}`)
	s.sendText(ctx, owner, link)
	s.expectAnswer(ctx, id, "status", "VERIFIED")
	s.sendText(ctx, stranger, link)
	late, lateLink := s.startLapsed(ctx, owner)
	s.sendText(ctx, owner, lateLink)
	s.expectAnswer(ctx, late, "hint", "TOO_LATE")
}

// neverAsk has the project ask no user anything by WhatsApp.
func neverAsk(send verifyv1.SendReplies) func(*verifyv1.VerificationProjectSpec) {
	return func(spec *verifyv1.VerificationProjectSpec) {
		spec.WhatsApp.HiddenNumbers, spec.WhatsApp.AcceptAnyText = "", new(true)
		spec.Replies = &verifyv1.Replies{Send: send}
	}
}

var _ = Describe("A project that pays for replies", func() {
	It("sends not one message if replies.send is Never, and verifies all the same", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, neverAsk(verifyv1.SendRepliesNever))
		s.sendEverything(ctx)
		Expect(s.replicas[0].Terminate()).To(Succeed()) // it sends what still waits
		Expect(s.countSent(ctx)).To(BeZero())
	}, SpecTimeout(hang))

	It("sends several for the same messages if it is Always", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, neverAsk(verifyv1.SendRepliesAlways))
		s.sendEverything(ctx)
		Eventually(s.countSent).WithContext(ctx).Should(BeNumerically(">=", 5))
	}, SpecTimeout(hang))
})

var _ = Describe("A project whose app is not subscribed", func() {
	It("is not Ready and says what to type, which subscribes it", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true)
		startOperator(ctx, s.shop)
		s.becomeReady(ctx)
		s.setAccount(ctx, `{"subscribed": false}`)
		s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.DisplayName = "Asked again" })
		s.awaitReason(ctx, verifyv1.ConditionReady, verifyv1.ReasonNotSubscribed)
		subscribedApps := "/" + whatsapp.GraphVersion + "/101234567890/subscribed_apps"
		for _, condition := range []string{verifyv1.ConditionReady, verifyv1.ConditionWhatsAppReady} {
			Expect(s.readCondition(ctx, condition)).To(And(HaveField("Status", metav1.ConditionFalse),
				HaveField("Message", HaveSuffix(" or run: curl -X POST -H 'Authorization: Bearer ACCESS_TOKEN' "+s.url+subscribedApps))), condition)
		}

		By("typing it")
		s.simulatorReplica().mustCall(ctx, simSecret, http.MethodPost, subscribedApps, "")
		s.awaitReason(ctx, verifyv1.ConditionReady, verifyv1.ReasonReady)

		By("having PhoneProof do it")
		s.setAccount(ctx, `{"subscribed": false}`)
		s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.WhatsApp.RegisterWebhook = nil })
		s.awaitReason(ctx, verifyv1.ConditionWhatsAppReady, verifyv1.ReasonRegistered)
		owner := s.addUser(ctx)
		id, link := s.startRequest(ctx, "WHATSAPP", owner)
		s.verifyByOwner(ctx, owner, id, link)
	}, SpecTimeout(hang))

	It("is not subscribed to the business account of another number", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true)
		s.simulatorReplica().mustCall(ctx, "sim_4915112345671", http.MethodGet, "/"+whatsapp.GraphVersion+"/987654321", "")
		s.setAccount(ctx, `{"subscribed": false}`)
		s.editProject(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.WhatsApp.RegisterWebhook, p.Spec.WhatsApp.BusinessAccountID = nil, "10987654321"
		})
		s.awaitReason(ctx, verifyv1.ConditionWhatsAppReady, verifyv1.ReasonAccountMismatch)
		Expect(s.readCondition(ctx, verifyv1.ConditionWhatsAppReady)).To(And(HaveField("Status", metav1.ConditionFalse),
			HaveField("Message", ContainSubstring("spec.whatsapp.businessAccountID"))))

		s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.WhatsApp.BusinessAccountID = "101234567890" })
		s.awaitReason(ctx, verifyv1.ConditionWhatsAppReady, verifyv1.ReasonRegistered)
		owner := s.addUser(ctx)
		id, link := s.startRequest(ctx, "WHATSAPP", owner)
		s.verifyByOwner(ctx, owner, id, link)
	}, SpecTimeout(hang))
})
