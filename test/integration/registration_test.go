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

// hooked starts two replicas of a shop whose messengers call it.
func hooked(ctx context.Context) (*shop, *messengers) {
	GinkgoHelper()
	s := newShop(ctx)
	m := s.newMessengers()
	s.change(ctx, func(p *verifyv1.VerificationProject) {
		p.Spec.BaseURL, p.Spec.WhatsApp.RegisterWebhook = shopHost, nil
		p.Spec.Telegram = &verifyv1.Telegram{
			BotUsername: shopBot, BotTokenSecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "bot-token"},
		}
	})
	m.serve(ctx, s, 2)
	s.registered(ctx)
	return s, m
}

// registered returns when both messengers deliver to the shop, as its status says.
func (s *shop) registered(ctx context.Context) {
	GinkgoHelper()
	s.stands(ctx, verifyv1.ConditionWhatsAppReady, verifyv1.ReasonRegistered)
	s.stands(ctx, verifyv1.ConditionTelegramReady, verifyv1.ReasonRegistered)
}

// verifyBoth proves a number through each messenger.
func (s *shop) verifyBoth(ctx context.Context, c *customer) {
	GinkgoHelper()
	r := s.leader(ctx)
	id, link := s.ask(ctx, r, c, "WHATSAPP")
	c.taps(ctx, link)
	s.isVerified(ctx, id)
	id, link = s.ask(ctx, r, c, "TELEGRAM")
	c.taps(ctx, link)
	c.shares(ctx)
	s.isVerified(ctx, id)
}

var _ = Describe("The callbacks of a project", func() {
	It("are registered once, by one replica, remembered, and lead there", func(ctx SpecContext) {
		s, m := hooked(ctx)
		Expect(m.registered(ctx)).To(Equal([]string{whatsAppCallback, telegramCallback}))
		Expect(m.called("setWebhook")).To(Equal(1))
		Expect(m.called("callback")).To(Equal(1))
		status := s.present(ctx).Status
		Expect(status.WhatsApp.CallbackURL).To(Equal(whatsAppCallback))
		Expect(status.Telegram.CallbackURL).To(Equal(telegramCallback))
		s.verifyBoth(ctx, m.customer(ctx, "+4915117000001"))

		By("killing the leader")
		s.leader(ctx).kill()
		s.startOne()
		m.reach(s.replicas)
		s.leader(ctx)
		Eventually(m.called).WithContext(ctx).WithArguments("setWebhook").WithTimeout(patience).
			Should(Equal(2), "Telegram never tells the secret, so the next leader tells it again")
		s.verifyBoth(ctx, m.customer(ctx, "+4915117000002"))
		Expect(m.called("callback")).To(Equal(1), "Meta's stands")
		Expect(s.kubectl("get", "vproj", "shop", "-o", "yaml")).NotTo(MatchRegexp(`sim_[a-z0-9]`))
	}, SpecTimeout(4*time.Minute))

	It("are mended when they drift, followed when the address changes, and never taken from somebody else unasked", func(ctx SpecContext) {
		s, m := hooked(ctx)
		m.webhook(ctx, "")
		m.override(ctx, "")
		s.nudge(ctx)
		Eventually(m.registered).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).
			Should(Equal([]string{whatsAppCallback, telegramCallback}), "mended")

		m.webhook(ctx, telegramCallback) // without our secret
		owner := m.customer(ctx, "+4915117000004")
		_, link := s.ask(ctx, s.replicas[0], owner, "TELEGRAM")
		owner.taps(ctx, link)
		Eventually(func(g Gomega) {
			s.nudge(ctx)
			g.Expect(owner.told(ctx, "asks to confirm")).To(Equal(1), "what was refused comes again, with our secret")
		}).WithContext(ctx).WithTimeout(patience).WithPolling(2 * time.Second).Should(Succeed())

		m.webhook(ctx, foreignHost+"/bot")
		m.override(ctx, foreignHost+"/meta")
		s.nudge(ctx)
		s.stands(ctx, verifyv1.ConditionWhatsAppReady, verifyv1.ReasonCallbackTaken)
		s.stands(ctx, verifyv1.ConditionTelegramReady, verifyv1.ReasonCallbackTaken)
		Expect(m.registered(ctx)).To(Equal([]string{foreignHost + "/meta", foreignHost + "/bot"}), "left alone")
		for _, of := range []string{verifyv1.ConditionWhatsAppReady, verifyv1.ConditionTelegramReady} {
			condition := meta.FindStatusCondition(s.present(ctx).Status.Conditions, of)
			Expect(condition.Message).To(And(ContainSubstring("takeOver"), Not(ContainSubstring("elsewhere"))))
		}

		s.change(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.WhatsApp.TakeOver, p.Spec.Telegram.TakeOver = new(true), new(true)
		})
		s.registered(ctx)
		Expect(m.registered(ctx)).To(Equal([]string{whatsAppCallback, telegramCallback}), "taken over")

		s.change(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.WhatsApp.TakeOver, p.Spec.Telegram.TakeOver = nil, nil
			p.Spec.BaseURL = "https://new.example/verify"
		})
		s.registered(ctx)
		Expect(m.registered(ctx)).To(Equal([]string{"https://new.example/verify/hooks/whatsapp", "https://new.example/verify/hooks/telegram"}),
			"what we registered at the old address is ours")
		s.verifyBoth(ctx, m.customer(ctx, "+4915117000003"))
	}, SpecTimeout(4*time.Minute))

	It("bring contacts to any replica: a wrong sender harms nobody, and the latest of two codes counts", func(ctx SpecContext) {
		s, m := hooked(ctx)
		owner, stranger := m.customer(ctx, "+4915117000011"), m.customer(ctx, "+4915117000012")
		first, firstLink := s.ask(ctx, s.replicas[0], owner, "TELEGRAM")
		second, secondLink := s.ask(ctx, s.replicas[1], owner, "TELEGRAM")
		stranger.taps(ctx, secondLink)
		stranger.shares(ctx)
		Eventually(stranger.told).WithContext(ctx).WithArguments(ctx, "does not match").WithTimeout(patience).Should(Equal(1))
		Expect(s.object(ctx, second).Status.Phase).To(Equal(verifyv1.PhasePending))

		for n, link := range []string{firstLink, secondLink} {
			owner.taps(ctx, link)
			Eventually(owner.told).WithContext(ctx).WithArguments(ctx, "asks to confirm").WithTimeout(patience).Should(Equal(n + 1))
		}
		owner.shares(ctx)
		s.isVerified(ctx, second)
		Eventually(owner.told).WithContext(ctx).WithArguments(ctx, "is confirmed").WithTimeout(patience).Should(Equal(1))
		Expect(s.object(ctx, first).Status.Phase).To(Equal(verifyv1.PhasePending), "one contact proves one request")
	}, SpecTimeout(4*time.Minute))

	It("are registered anew with another secret, and removed with their messenger", func(ctx SpecContext) {
		s, m := hooked(ctx)
		c := m.customer(ctx, "+4915117000004")
		id, link := s.ask(ctx, s.leader(ctx), c, "TELEGRAM")
		c.taps(ctx, link)
		Eventually(c.told).WithContext(ctx).WithArguments(ctx, "asks to confirm").WithTimeout(patience).Should(Equal(1))
		before := m.called("setWebhook")
		s.writeSecret("bot-token", botTokenTwo)
		c.shares(ctx) // whichever secret Telegram still has
		s.isVerified(ctx, id)
		Eventually(m.called).WithContext(ctx).WithArguments("setWebhook").WithTimeout(patience).Should(Equal(before + 1))
		s.verifyBoth(ctx, m.customer(ctx, "+4915117000005"))
		Expect(m.called("setWebhook")).To(Equal(before+1), "once")

		s.change(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Telegram = nil })
		Eventually(m.registered).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).
			Should(Equal([]string{whatsAppCallback, ""}), "only ours, only that")
		Eventually(func() bool {
			status := s.present(ctx).Status
			return status.Telegram == nil && meta.FindStatusCondition(status.Conditions, verifyv1.ConditionTelegramReady) == nil
		}).WithContext(ctx).WithTimeout(patience).Should(BeTrue())
	}, SpecTimeout(4*time.Minute))
})

var _ = Describe("Telegram's updates", func() {
	It("are fetched by whoever leads: none is lost or counts twice when it is killed, and when the way changes", func(ctx SpecContext) {
		s := newShop(ctx)
		m := s.newMessengers()
		s.change(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.Telegram = &verifyv1.Telegram{
				BotUsername: shopBot, BotTokenSecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "bot-token"},
			}
		})
		m.webhook(ctx, foreignHost+"/bot")
		m.serve(ctx, s, 2)
		s.stands(ctx, verifyv1.ConditionTelegramReady, verifyv1.ReasonCallbackTaken)
		Expect(m.registered(ctx)[1]).To(Equal(foreignHost + "/bot"))
		s.change(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Telegram.TakeOver = new(true) })
		s.stands(ctx, verifyv1.ConditionTelegramReady, verifyv1.ReasonPolling)
		Expect(m.registered(ctx)[1]).To(BeEmpty())
		s.change(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Telegram.TakeOver = nil })

		By("killing the leader while people write")
		crowd := s.crowd(ctx, m, 24)
		for range 2 {
			s.leader(ctx).kill()
			s.startOne()
		}
		m.reach(s.replicas)
		crowd.allVerified(ctx)

		By("going from polling to a webhook and back while people write")
		for round, baseURL := range []string{shopHost, "http://shop.internal"} {
			crowd := s.crowd(ctx, m, 12)
			s.change(ctx, func(p *verifyv1.VerificationProject) { p.Spec.BaseURL = baseURL })
			s.stands(ctx, verifyv1.ConditionTelegramReady, []string{verifyv1.ReasonRegistered, verifyv1.ReasonPolling}[round])
			Expect(m.registered(ctx)[1]).To(Equal([]string{telegramCallback, ""}[round]))
			crowd.allVerified(ctx)
		}
		for _, r := range s.replicas {
			if r.running() {
				status, _ := r.call(ctx, "", http.MethodPost, "/hooks/telegram", "{}")
				Expect(status).To(Equal(http.StatusNotFound), "nobody may post what is fetched")
			}
		}
	}, SpecTimeout(6*time.Minute))
})

// crowd are customers who prove their numbers through Telegram at the same time.
type crowd struct {
	shop      *shop
	customers []*customer
	ids       []string
	all       sync.WaitGroup
}

func (s *shop) crowd(ctx context.Context, m *messengers, n int) *crowd {
	GinkgoHelper()
	c := &crowd{shop: s, ids: make([]string, n)}
	for range n {
		c.customers = append(c.customers, m.customer(ctx, fmt.Sprintf("+49151%08d", s.verified.Add(1))))
	}
	through := s.leader(ctx)
	links := make([]string, n)
	for i, customer := range c.customers {
		c.ids[i], links[i] = s.ask(ctx, through, customer, "TELEGRAM")
	}
	for i, customer := range c.customers {
		c.all.Go(func() {
			defer GinkgoRecover()
			customer.taps(ctx, links[i])
			customer.shares(ctx)
		})
	}
	return c
}

// allVerified expects one verification and one event for each, and at most one reply that says so.
func (c *crowd) allVerified(ctx context.Context) {
	GinkgoHelper()
	c.all.Wait()
	for _, id := range c.ids {
		c.shop.isVerified(ctx, id)
	}
	c.shop.allDelivered(ctx, c.ids, 1)
	got := c.shop.receiver.byRequest(webhookSecret)
	for i, customer := range c.customers {
		Expect(got).To(HaveKey(c.ids[i]))
		Expect(customer.told(ctx, "is confirmed")).To(BeNumerically("<=", 1))
	}
}
