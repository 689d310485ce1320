package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var (
	whatsAppCallback = shopHost + "/hooks/whatsapp"
	telegramCallback = shopHost + "/hooks/telegram"
)

// startRegisteredShop starts two replicas of a shop whose messengers deliver to it.
func startRegisteredShop(ctx context.Context) (*shop, *messengers) {
	GinkgoHelper()
	s := newShop(ctx)
	m := s.newMessengers()
	s.editProject(ctx, func(p *verifyv1.VerificationProject) {
		p.Spec.BaseURL, p.Spec.WhatsApp.RegisterWebhook = shopHost, nil
		p.Spec.Telegram = &verifyv1.Telegram{
			BotUsername: shopBot, BotTokenSecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "bot-token"},
		}
	})
	m.startServing(ctx, s, 2)
	s.awaitRegistered(ctx)
	return s, m
}

// awaitRegistered waits until both messengers deliver to the shop, according to its status.
func (s *shop) awaitRegistered(ctx context.Context) {
	GinkgoHelper()
	s.awaitReason(ctx, verifyv1.ConditionWhatsAppReady, verifyv1.ReasonRegistered)
	s.awaitReason(ctx, verifyv1.ConditionTelegramReady, verifyv1.ReasonRegistered)
}

// countTerms counts how often a replica began to lead. A loaded machine can cost a leader its lease.
func (s *shop) countTerms() int {
	terms := 0
	for _, r := range s.replicas {
		terms += r.countTerms()
	}
	return terms
}

// verifyBoth verifies a number through each messenger.
func (s *shop) verifyBoth(ctx context.Context, c *customer) {
	GinkgoHelper()
	r := s.findLeader(ctx)
	id, link := s.initFor(ctx, r, c, "WHATSAPP")
	c.openLink(ctx, link)
	s.awaitVerified(ctx, id)
	id, link = s.initFor(ctx, r, c, "TELEGRAM")
	c.openLink(ctx, link)
	c.shareContact(ctx)
	s.awaitVerified(ctx, id)
}

var _ = Describe("The callbacks of a project", func() {
	It("are registered once, by one replica, and recorded, and reach the replicas", func(ctx SpecContext) {
		s, m := startRegisteredShop(ctx)
		Expect(m.listRegistered(ctx)).To(Equal([]string{whatsAppCallback, telegramCallback}))
		Expect(m.countCalls("setWebhook")).To(And(BeNumerically(">=", 1), BeNumerically("<=", s.countTerms())), "once in each term")
		Expect(m.countCalls("callback")).To(Equal(1))
		status := s.readProject(ctx).Status
		Expect(status.WhatsApp.CallbackURL).To(Equal(whatsAppCallback))
		Expect(status.Telegram.CallbackURL).To(Equal(telegramCallback))
		s.verifyBoth(ctx, m.newCustomer(ctx, "+4915117000001"))

		By("killing the leader")
		before := m.countCalls("setWebhook")
		s.findLeader(ctx).Kill()
		s.startOne()
		m.routeTo(s.replicas)
		s.findLeader(ctx)
		Eventually(m.countCalls).WithContext(ctx).WithArguments("setWebhook").
			Should(BeNumerically(">", before), "Telegram never returns the secret, so the next leader sets it again")
		s.verifyBoth(ctx, m.newCustomer(ctx, "+4915117000002"))
		Expect(m.countCalls("setWebhook")).To(BeNumerically("<=", s.countTerms()), "once in each term")
		Expect(m.countCalls("callback")).To(Equal(1), "Meta's registration is kept")
		Expect(s.runKubectl("get", "vproj", "shop", "-o", "yaml")).NotTo(MatchRegexp(`sim_[a-z0-9]`))
	}, SpecTimeout(hang))

	It("are repaired when they drift, updated when the address changes, and never taken from another system by default", func(ctx SpecContext) {
		s, m := startRegisteredShop(ctx)
		m.setBotWebhook(ctx, "")
		m.setMetaCallback(ctx, "")
		s.touchProject(ctx)
		Eventually(m.listRegistered).WithContext(ctx).WithArguments(ctx).
			Should(Equal([]string{whatsAppCallback, telegramCallback}), "repaired")

		m.setBotWebhook(ctx, telegramCallback) // without our secret
		owner := m.newCustomer(ctx, "+4915117000004")
		_, link := s.initFor(ctx, s.replicas[0], owner, "TELEGRAM")
		owner.openLink(ctx, link)
		Eventually(func(g Gomega) {
			s.touchProject(ctx)
			g.Expect(owner.countReplies(ctx, "asks to confirm")).To(Equal(1), "the refused update is sent again, with our secret")
		}).WithContext(ctx).WithPolling(2 * time.Second).Should(Succeed())

		m.setBotWebhook(ctx, foreignHost+"/bot")
		m.setMetaCallback(ctx, foreignHost+"/meta")
		s.touchProject(ctx)
		s.awaitReason(ctx, verifyv1.ConditionWhatsAppReady, verifyv1.ReasonCallbackTaken)
		s.awaitReason(ctx, verifyv1.ConditionTelegramReady, verifyv1.ReasonCallbackTaken)
		Expect(m.listRegistered(ctx)).To(Equal([]string{foreignHost + "/meta", foreignHost + "/bot"}), "left alone")
		for _, of := range []string{verifyv1.ConditionWhatsAppReady, verifyv1.ConditionTelegramReady} {
			condition := meta.FindStatusCondition(s.readProject(ctx).Status.Conditions, of)
			Expect(condition.Message).To(And(ContainSubstring("takeOver"), Not(ContainSubstring("elsewhere"))))
		}

		s.editProject(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.WhatsApp.TakeOver, p.Spec.Telegram.TakeOver = new(true), new(true)
		})
		s.awaitRegistered(ctx)
		Expect(m.listRegistered(ctx)).To(Equal([]string{whatsAppCallback, telegramCallback}), "taken over")

		s.editProject(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.WhatsApp.TakeOver, p.Spec.Telegram.TakeOver = nil, nil
			p.Spec.BaseURL = "https://new.example/verify"
		})
		s.awaitRegistered(ctx)
		Expect(m.listRegistered(ctx)).To(Equal([]string{"https://new.example/verify/hooks/whatsapp", "https://new.example/verify/hooks/telegram"}),
			"our registration at the old address is ours")
		s.verifyBoth(ctx, m.newCustomer(ctx, "+4915117000003"))
	}, SpecTimeout(hang))

	It("deliver contacts to any replica: a wrong sender has no effect, and the latest of two codes counts", func(ctx SpecContext) {
		s, m := startRegisteredShop(ctx)
		owner, stranger := m.newCustomer(ctx, "+4915117000011"), m.newCustomer(ctx, "+4915117000012")
		first, firstLink := s.initFor(ctx, s.replicas[0], owner, "TELEGRAM")
		second, secondLink := s.initFor(ctx, s.replicas[1], owner, "TELEGRAM")
		stranger.openLink(ctx, secondLink)
		stranger.shareContact(ctx)
		Eventually(stranger.countReplies).WithContext(ctx).WithArguments(ctx, "does not match").Should(Equal(1))
		Expect(s.readRequest(ctx, second).Status.Phase).To(Equal(verifyv1.PhasePending))

		for n, link := range []string{firstLink, secondLink} {
			owner.openLink(ctx, link)
			Eventually(owner.countReplies).WithContext(ctx).WithArguments(ctx, "asks to confirm").Should(Equal(n + 1))
		}
		owner.shareContact(ctx)
		s.awaitVerified(ctx, second)
		Eventually(owner.countReplies).WithContext(ctx).WithArguments(ctx, "is confirmed").Should(Equal(1))
		Expect(s.readRequest(ctx, first).Status.Phase).To(Equal(verifyv1.PhasePending), "one contact verifies one request")
	}, SpecTimeout(hang))

	It("are registered again with a new secret, and removed with their messenger", func(ctx SpecContext) {
		s, m := startRegisteredShop(ctx)
		c := m.newCustomer(ctx, "+4915117000004")
		id, link := s.initFor(ctx, s.findLeader(ctx), c, "TELEGRAM")
		c.openLink(ctx, link)
		Eventually(c.countReplies).WithContext(ctx).WithArguments(ctx, "asks to confirm").Should(Equal(1))
		before := m.countCalls("setWebhook")
		s.writeSecret("bot-token", botTokenTwo)
		c.shareContact(ctx) // whichever secret Telegram has
		s.awaitVerified(ctx, id)
		Eventually(m.countCalls).WithContext(ctx).WithArguments("setWebhook").Should(BeNumerically(">", before))
		s.verifyBoth(ctx, m.newCustomer(ctx, "+4915117000005"))
		Expect(m.countCalls("setWebhook")).To(BeNumerically("<=", s.countTerms()+1), "once, besides once in each term")

		s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Telegram = nil })
		Eventually(m.listRegistered).WithContext(ctx).WithArguments(ctx).
			Should(Equal([]string{whatsAppCallback, ""}), "only our own callback is removed")
		Eventually(func() bool {
			status := s.readProject(ctx).Status
			return status.Telegram == nil && meta.FindStatusCondition(status.Conditions, verifyv1.ConditionTelegramReady) == nil
		}).WithContext(ctx).Should(BeTrue())
	}, SpecTimeout(hang))
})

var _ = Describe("Telegram's updates", func() {
	It("are polled by the leader: none is lost or handled twice when it is killed, or when delivery changes", func(ctx SpecContext) {
		s := newShop(ctx)
		m := s.newMessengers()
		s.editProject(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.Telegram = &verifyv1.Telegram{
				BotUsername: shopBot, BotTokenSecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "bot-token"},
			}
		})
		m.setBotWebhook(ctx, foreignHost+"/bot")
		m.startServing(ctx, s, 2)
		s.awaitReason(ctx, verifyv1.ConditionTelegramReady, verifyv1.ReasonCallbackTaken)
		Expect(m.listRegistered(ctx)[1]).To(Equal(foreignHost + "/bot"))
		s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Telegram.TakeOver = new(true) })
		s.awaitReason(ctx, verifyv1.ConditionTelegramReady, verifyv1.ReasonPolling)
		Expect(m.listRegistered(ctx)[1]).To(BeEmpty())
		s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Telegram.TakeOver = nil })

		By("killing the leader while users send messages")
		crowd := s.startCrowd(ctx, m, 24)
		for range 2 {
			s.findLeader(ctx).Kill()
			s.startOne()
		}
		m.routeTo(s.replicas)
		crowd.expectVerified(ctx)

		By("changing from polling to a webhook and back while users send messages")
		for round, baseURL := range []string{shopHost, "http://shop.internal"} {
			crowd := s.startCrowd(ctx, m, 12)
			s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.BaseURL = baseURL })
			s.awaitReason(ctx, verifyv1.ConditionTelegramReady, []string{verifyv1.ReasonRegistered, verifyv1.ReasonPolling}[round])
			Expect(m.listRegistered(ctx)[1]).To(Equal([]string{telegramCallback, ""}[round]))
			crowd.expectVerified(ctx)
		}
		for _, r := range s.replicas {
			if r.Running() {
				status, _ := r.callAPI(ctx, "", http.MethodPost, "/hooks/telegram", "{}")
				Expect(status).To(Equal(http.StatusNotFound), "no posts while updates are polled")
			}
		}
	}, SpecTimeout(hang))
})

// crowd is a set of customers who verify their numbers through Telegram at the same time.
type crowd struct {
	shop      *shop
	customers []*customer
	ids       []string
	all       sync.WaitGroup
}

func (s *shop) startCrowd(ctx context.Context, m *messengers, n int) *crowd {
	GinkgoHelper()
	c := &crowd{shop: s, ids: make([]string, n)}
	for range n {
		c.customers = append(c.customers, m.newCustomer(ctx, fmt.Sprintf("+49151%08d", s.verified.Add(1))))
	}
	through := s.findLeader(ctx)
	links := make([]string, n)
	for i, customer := range c.customers {
		c.ids[i], links[i] = s.initFor(ctx, through, customer, "TELEGRAM")
	}
	for i, customer := range c.customers {
		c.all.Go(func() {
			defer GinkgoRecover()
			customer.openLink(ctx, links[i])
			customer.shareContact(ctx)
		})
	}
	return c
}

// expectVerified expects one verification and one event for each, and at most one confirmation reply.
func (c *crowd) expectVerified(ctx context.Context) {
	GinkgoHelper()
	c.all.Wait()
	for _, id := range c.ids {
		c.shop.awaitVerified(ctx, id)
	}
	c.shop.awaitDelivered(ctx, c.ids, 1)
	got := c.shop.receiver.byRequest(webhookSecret)
	for i, customer := range c.customers {
		Expect(got).To(HaveKey(c.ids[i]))
		Expect(customer.countReplies(ctx, "is confirmed")).To(BeNumerically("<=", 1))
	}
}
