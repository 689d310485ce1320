package integration_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/simulator"
)

// startEcho has a user who hides the number send the code of a request for it, and returns the request's id and link once the number
// is being asked.
func (s *simulatedShop) startEcho(ctx context.Context, number string) (id, link string) {
	GinkgoHelper()
	id, link = s.startRequest(ctx, "WHATSAPP", number)
	s.sendText(ctx, number, link)
	s.expectAnswer(ctx, id, "status", "PENDING", "hint", "AWAITING_CONFIRMATION")
	return id, link
}

// attackEcho runs an attack on the echo to a number as soon as what it needs is there.
func (s *simulatedShop) attackEcho(ctx context.Context, a *simulator.Attack, number, link string) {
	GinkgoHelper()
	expectStatuses(s.runAttack(ctx, a.Name, s.addUser(ctx), number, link), a.Expect)
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
	s.replicas[0].kill()
	s.intercept.Store(nil)
}

// setAccount sets rules of the WhatsApp account at the simulator.
func (s *simulatedShop) setAccount(ctx context.Context, rules string) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, s.url+"/sim/accounts/whatsapp/1234567890", strings.NewReader(rules))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	Expect(response.StatusCode).To(Equal(http.StatusNoContent))
}

var _ = Describe("An echo", func() {
	It("is answered by its own sender alone", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, askByEcho)
		var later []simulator.Attack // on a number that was asked before, which one replica does once a day
		tried := 0
		for _, a := range simulator.Attacks() {
			switch a.Needs {
			case "echo", "otherEcho":
			case "olderEcho", "echoTap":
				later = append(later, a)
				continue
			default:
				Expect(a.Name).NotTo(HavePrefix("echo-"), "an attack on the echo that this spec does not run")
				continue
			}
			tried++
			By(a.Name)
			if a.Needs == "otherEcho" {
				s.startEcho(ctx, s.addHiddenUser(ctx))
			}
			owner := s.addHiddenUser(ctx)
			id, link := s.startEcho(ctx, owner)
			s.attackEcho(ctx, &a, owner, link)
			Expect(s.readStatus(ctx, id)).To(Equal("PENDING"), a.Name)
			s.tapButton(ctx, owner, "Confirm")
			s.expectAnswer(ctx, id, "status", "VERIFIED", "assurance", "echo")
		}
		Expect(tried).To(BeNumerically(">=", 14))

		firsts, owners := make([]string, len(later)), make([]string, len(later))
		for i, a := range later {
			owners[i] = s.addHiddenUser(ctx)
			firsts[i], _ = s.startEcho(ctx, owners[i])
			if a.Needs == "echoTap" {
				s.tapButton(ctx, owners[i], "Confirm")
				s.expectAnswer(ctx, firsts[i], "status", "VERIFIED")
			}
		}
		s.startNext(ctx)
		for i, a := range later {
			By(a.Name)
			before := s.readAnswer(ctx, firsts[i])
			id, link := s.startEcho(ctx, owners[i])
			s.attackEcho(ctx, &a, owners[i], link)
			Expect(s.readStatus(ctx, id)).To(Equal("PENDING"), a.Name)
			if a.Needs == "echoTap" {
				Expect(s.readAnswer(ctx, firsts[i])).To(Equal(before), "the tap counted once")
			} else {
				s.expectAnswer(ctx, firsts[i], "status", "VERIFIED") // the older button is good for its own request, and no other
			}
			s.tapButton(ctx, owners[i], "Confirm")
			s.expectAnswer(ctx, id, "status", "VERIFIED", "assurance", "echo")
		}
		Expect(later).To(HaveLen(2))
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
		s.replicas[0].kill()
		Expect(s.readRequest(ctx, id).Status.Contacts).To(Equal(stored))
		s.startNext(ctx)
		s.tapButton(ctx, owner, "Confirm")
		s.expectAnswer(ctx, id, "status", "VERIFIED", "assurance", "echo", "actualPhoneNumber", owner)
	}, SpecTimeout(hang))

	It("waits, and says why in the metrics, where Meta opens the window for the user id alone", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, askByEcho)
		s.setAccount(ctx, `{"windowByBSUIDOnly": true}`)
		owner := s.addHiddenUser(ctx)
		id, _ := s.startEcho(ctx, owner)
		failed := func() float64 {
			return s.replicas[0].readMetric(ctx, "phoneproof_whatsapp_messages_failed_total", map[string]string{"reason": "no_window"})
		}
		Eventually(failed).WithContext(ctx).Should(BeEquivalentTo(1))
		Expect(s.replicas[0].readMetric(ctx, "phoneproof_messages_total", map[string]string{"method": "WHATSAPP", "outcome": "need_echo"})).
			To(BeEquivalentTo(1))
		Expect(s.readChats(ctx, owner)).NotTo(ContainSubstring("asks to confirm"))
		s.expectAnswer(ctx, id, "status", "PENDING", "hint", "AWAITING_CONFIRMATION") // the same as where the question arrived

		By("asking again on the same day, because the question did not arrive")
		s.setAccount(ctx, `{"windowByBSUIDOnly": false}`)
		id, _ = s.startEcho(ctx, owner)
		s.tapButton(ctx, owner, "Confirm")
		s.expectAnswer(ctx, id, "status", "VERIFIED", "assurance", "echo")
	}, SpecTimeout(hang))

	It("is answered with the number, and not needed again, where Meta shows it after the first message", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true, askByEcho)
		s.setAccount(ctx, `{"numberAfterMessage": true}`)
		owner := s.addHiddenUser(ctx)
		id, _ := s.startEcho(ctx, owner)
		s.tapButton(ctx, owner, "Confirm")
		s.expectAnswer(ctx, id, "status", "VERIFIED", "assurance", "echo", "actualPhoneNumber", owner)

		id, link := s.startRequest(ctx, "WHATSAPP", owner)
		s.sendText(ctx, owner, link)
		s.expectAnswer(ctx, id, "status", "VERIFIED", "assurance", nil, "actualPhoneNumber", owner)
	}, SpecTimeout(hang))
})
