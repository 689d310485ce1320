package integration_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// startEcho has a user who hides the number send the code of a request for it, and returns the request's id once the number is being
// asked.
func (s *simulatedShop) startEcho(ctx context.Context, number string) string {
	GinkgoHelper()
	id, link := s.startRequest(ctx, "WHATSAPP", number)
	s.sendText(ctx, number, link)
	s.expectAnswer(ctx, id, "status", "PENDING", "hint", "AWAITING_CONFIRMATION")
	return id
}

// killAtQuestion kills the replica, like kill -9, while it sends the message that start has it send. The message reaches the simulator
// only if sent is set, and the replica does not learn of it.
func (s *simulatedShop) killAtQuestion(ctx context.Context, sent bool, start func()) {
	GinkgoHelper()
	reached := make(chan struct{})
	var first sync.Once
	stop := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/messages") {
			next.ServeHTTP(w, r)
			return
		}
		first.Do(func() {
			defer close(reached)
			if sent {
				next.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
		_, _ = io.Copy(io.Discard, r.Body) // without that, the end of the connection is not seen
		<-r.Context().Done()
	}
	s.intercept.Store(&stop)
	start()
	Eventually(reached).WithContext(ctx).Should(BeClosed())
	s.replicas[0].Kill()
	s.intercept.Store(nil)
}

// setAccount sets rules of the WhatsApp account at the simulator.
func (s *simulatedShop) setAccount(ctx context.Context, rules string) {
	GinkgoHelper()
	status, _, _ := sendRequest(ctx, http.MethodPut, s.url+"/sim/accounts/whatsapp/1234567890",
		http.Header{"Content-Type": {"application/json"}}, rules)
	Expect(status).To(Equal(http.StatusNoContent))
}

var _ = Describe("An echo", func() {
	It("is answered by its own sender alone", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, askByEcho)
		owner := s.addHiddenUser(ctx)
		id := s.startEcho(ctx, owner)
		button := s.readButton(ctx, owner)
		for _, sender := range []string{`"from_user_id":"DE.4711471147114711471"`, fmt.Sprintf(`"from":%q`, owner[1:])} {
			s.tapAs(ctx, sender, button)
			Expect(s.readStatus(ctx, id)).To(Equal("PENDING"), sender)
		}
		s.tapButton(ctx, owner, "Confirm")
		s.expectAnswer(ctx, id, "status", "VERIFIED", "assurance", "echo")
	}, SpecTimeout(hang))

	It("survives kill -9 before the question is sent, after it was sent, and before the tap", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, askByEcho)
		owner := s.addHiddenUser(ctx)

		By("before the question is sent: the call is stopped on its way to Meta")
		var id string
		s.killAtQuestion(ctx, false, func() {
			var link string
			id, link = s.startRequest(ctx, "WHATSAPP", owner)
			s.sendText(ctx, owner, link)
		})
		Expect(s.countSent(ctx)).To(BeZero())
		stored := s.readRequest(ctx, id).Status.Contacts
		Expect(stored).To(ConsistOf(HaveField("Nonce", HaveLen(32))), "it is stored before anything is sent")

		By("after it was sent: Meta's answer never arrives")
		s.killAtQuestion(ctx, true, func() { s.startNext(ctx) })
		Expect(s.countSent(ctx)).To(BeEquivalentTo(1))

		By("before the tap: the code comes again, and the same question is asked once more")
		s.startNext(ctx)
		Eventually(s.countSent).WithContext(ctx).Should(BeEquivalentTo(2))
		s.replicas[0].Kill()
		Expect(s.readRequest(ctx, id).Status.Contacts).To(Equal(stored))
		s.startNext(ctx)
		s.tapButton(ctx, owner, "Confirm")
		s.expectAnswer(ctx, id, "status", "VERIFIED", "assurance", "echo", "actualPhoneNumber", owner)
	}, SpecTimeout(hang))

	It("waits, and says why in the metrics, where Meta opens the window for the user id alone", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, askByEcho)
		s.setAccount(ctx, `{"failWith": 131047}`)
		owner := s.addHiddenUser(ctx)
		id := s.startEcho(ctx, owner)
		failed := func() float64 {
			return s.replicas[0].readMetric(ctx, "phoneproof_whatsapp_messages_failed_total", map[string]string{"reason": "no_window"})
		}
		Eventually(failed).WithContext(ctx).Should(BeEquivalentTo(1))
		Expect(s.replicas[0].readMetric(ctx, "phoneproof_messages_total", map[string]string{"method": "WHATSAPP", "outcome": "need_echo"})).
			To(BeEquivalentTo(1))
		Expect(s.readChats(ctx, owner)).NotTo(ContainSubstring("asks to confirm"))
		s.expectAnswer(ctx, id, "status", "PENDING", "hint", "AWAITING_CONFIRMATION") // the same as where the question arrived

		By("asking again on the same day, because the question did not arrive")
		s.setAccount(ctx, `{"failWith": 0}`)
		id = s.startEcho(ctx, owner)
		s.tapButton(ctx, owner, "Confirm")
		s.expectAnswer(ctx, id, "status", "VERIFIED", "assurance", "echo")
	}, SpecTimeout(hang))
})
