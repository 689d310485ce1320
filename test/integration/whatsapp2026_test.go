package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
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
}

// neverAsk has the project ask no user anything by WhatsApp.
func neverAsk(send verifyv1.SendReplies) func(*verifyv1.VerificationProjectSpec) {
	return func(spec *verifyv1.VerificationProjectSpec) {
		spec.WhatsApp.AcceptSharedContact, spec.WhatsApp.AcceptAnyText = nil, new(true)
		spec.Replies = &verifyv1.Replies{Send: send}
	}
}

var _ = Describe("A project that pays for replies", func() {
	It("sends not one message if replies.send is Never, and verifies all the same", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, neverAsk(verifyv1.SendRepliesNever))
		s.sendEverything(ctx)
		s.replicas[0].sendSignal(syscall.SIGTERM) // it sends what still waits
		Eventually(s.replicas[0].isRunning).WithContext(ctx).WithTimeout(patience).Should(BeFalse())
		Expect(s.countSent(ctx)).To(BeZero())
	}, SpecTimeout(2*time.Minute))

	It("sends several for the same messages if it is Always", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, neverAsk(verifyv1.SendRepliesAlways))
		s.sendEverything(ctx)
		Eventually(s.countSent).WithContext(ctx).WithTimeout(patience).Should(BeNumerically(">=", 3))
	}, SpecTimeout(2*time.Minute))
})

var _ = Describe("A project whose app is not subscribed", func() {
	It("is not ready and names what to type, until it is subscribed", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true)
		s.setSubscribed(ctx, false)
		s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.DisplayName = "Asked again" })
		s.awaitReason(ctx, verifyv1.ConditionWhatsAppReady, verifyv1.ReasonNotSubscribed)
		condition := meta.FindStatusCondition(s.readProject(ctx).Status.Conditions, verifyv1.ConditionWhatsAppReady)
		Expect(condition.Message).To(ContainSubstring("subscribed_apps"))
		Expect(condition.Message).NotTo(ContainSubstring(simSecret))

		s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.WhatsApp.RegisterWebhook = nil })
		s.awaitReason(ctx, verifyv1.ConditionWhatsAppReady, verifyv1.ReasonRegistered)
		owner := s.addUser(ctx)
		id, link := s.startRequest(ctx, "WHATSAPP", owner)
		s.verifyByOwner(ctx, owner, id, link)
	}, SpecTimeout(2*time.Minute))
})

// setSubscribed subscribes the app to the business account, or unsubscribes it.
func (s *simulatedShop) setSubscribed(ctx context.Context, subscribed bool) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, s.url+"/sim/accounts/whatsapp/1234567890",
		strings.NewReader(fmt.Sprintf(`{"subscribed": %t}`, subscribed)))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	Expect(response.StatusCode).To(Equal(http.StatusNoContent))
}
