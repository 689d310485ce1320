package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/simulator"
)

// scene is a project whose messengers are simulated, with one replica on the Kubernetes store.
type scene struct {
	*shop

	url   string
	users int
}

const (
	simBot    = "forged_bot"
	simSecret = "sim_4915112345670:of-the-scene"
	simToken  = "sim_" + simBot + ":of-the-scene"

	// sceneURL is what the messengers know the API by.
	sceneURL = "https://verify.example.com"
)

// newScene starts a replica and a simulator that know each other. By webhooks, Telegram posts to the replica; else the
// replica fetches.
func newScene(ctx context.Context, webhooks bool) *scene {
	GinkgoHelper()
	s := &scene{shop: newShop(ctx)}
	var api atomic.Value // the API's address, once there is one
	api.Store("")
	sim := simulator.New(simulator.Options{
		Retry: 100 * time.Millisecond,
		Redirect: func(callback string) string {
			return strings.Replace(callback, sceneURL, "http://"+api.Load().(string), 1)
		},
	})
	server := httptest.NewServer(sim)
	DeferCleanup(server.Close)
	s.url = server.URL
	background(sim.Start)
	s.simulated(ctx, webhooks)
	r := startReplica(append([]string{
		"--project", s.namespace + "/shop", "--kubeconfig", s.kubeconfig, "--secrets-dir", s.secrets, "--log-level=debug",
		"--simulator-url", s.url, "--whatsapp-url=http://127.0.0.1:1", "--telegram-url=http://127.0.0.1:1",
	}, leaseFlags...)...)
	s.replicas = append(s.replicas, r)
	api.Store(r.api)
	Eventually(r.ready).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).Should(BeTrue(), r.printed)
	callback := "http://" + r.api + whatsapp.Path
	if webhooks {
		callback = sceneURL + whatsapp.Path
	}
	Expect(sim.AddWhatsApp(simulator.WhatsAppAccount{
		PhoneNumberID: "1234567890", Number: "+4915112345670", AppSecret: simSecret, Callback: callback,
	})).To(Succeed())
	bot := simulator.TelegramAccount{Username: simBot, Token: simToken}
	if webhooks { // as the replica registers it by itself, but at once
		bot.Callback = sceneURL + telegram.HookPath
		bot.Secret = telegram.WebhookSecret([]byte(simToken), s.namespace+"/shop")
	}
	Expect(sim.AddTelegram(bot)).To(Succeed())
	return s
}

// background runs something until the spec ends.
func background(start func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
}

// simulated gives the project accounts of the simulator.
func (s *scene) simulated(ctx context.Context, webhooks bool) {
	GinkgoHelper()
	s.writeSecret("access-token", simSecret)
	s.writeSecret("app-secret", simSecret)
	s.writeSecret("bot-token", simToken)
	project := &verifyv1.VerificationProject{}
	Expect(s.admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "shop"}, project)).To(Succeed())
	project.Spec.WhatsApp.AcceptSharedContact = new(true)
	project.Spec.Telegram = &verifyv1.Telegram{BotUsername: simBot, BotTokenSecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "bot-token"}}
	if webhooks {
		project.Spec.BaseURL = sceneURL
	}
	Expect(s.admin.Update(ctx, project)).To(Succeed())
}

// sim calls the simulator's API.
func (s *scene) sim(ctx context.Context, want int, path, body string) map[string]any {
	GinkgoHelper()
	status, _, answer := (&replica{api: strings.TrimPrefix(s.url, "http://")}).exchange(ctx, "", http.MethodPost, path, body)
	Expect(status).To(Equal(want), "%s: %v", path, answer)
	return answer
}

// person adds a user and returns his number. Each attack has an attacker and a victim of its own, so that no limit on one
// sender hides what becomes of the others.
func (s *scene) person(ctx context.Context) string {
	GinkgoHelper()
	s.users++
	number := fmt.Sprintf("+4915155%06d", s.users)
	s.sim(ctx, http.StatusCreated, "/sim/users", fmt.Sprintf(`{"name": "Somebody", "phone": %q}`, number))
	return number
}

// begin starts a verification of a number and returns its id and link.
func (s *scene) begin(ctx context.Context, method, number string) (id, link string) {
	GinkgoHelper()
	answer := s.replicas[0].serves(ctx, s.key, http.MethodPost, "/api/verify/init",
		fmt.Sprintf(`{"phoneNumber": %q, "method": %q}`, number, method))
	canaries.addText(answer["expectedText"].(string))
	link, ok := answer["waLink"].(string)
	if !ok {
		link = answer["tgLink"].(string)
	}
	return answer["requestId"].(string), link
}

// attack has somebody attack the link of a victim, and returns what was answered.
func (s *scene) attack(ctx context.Context, name, by, victim, link string) []any {
	GinkgoHelper()
	return s.sim(ctx, http.StatusOK, "/sim/users/"+by+"/attack/"+name, fmt.Sprintf(`{"link": %q, "phone": %q}`, link, victim))["deliveries"].([]any)
}

// answers expects every request of an attack to be answered with a status.
func answers(deliveries []any, status int) {
	GinkgoHelper()
	Expect(deliveries).NotTo(BeEmpty())
	for _, d := range deliveries {
		Expect(d).To(HaveKeyWithValue("status", BeEquivalentTo(status)))
	}
}

func (s *scene) status(ctx context.Context, id string) string {
	GinkgoHelper()
	return s.replicas[0].serves(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")["status"].(string)
}

// proves has the owner of the number send the text, and expects that to count: what came before did no harm.
func (s *scene) proves(ctx context.Context, owner, id, link string) {
	GinkgoHelper()
	s.sim(ctx, http.StatusAccepted, "/sim/users/"+owner+"/send", fmt.Sprintf(`{"link": %q}`, link))
	if strings.HasPrefix(link, "https://t.me/") {
		s.sim(ctx, http.StatusAccepted, "/sim/users/"+owner+"/share-contact", `{"wait": "30s"}`)
	}
	Eventually(s.status).WithContext(ctx).WithArguments(id).WithTimeout(patience).Should(Equal("VERIFIED"))
}

// ours returns the attacks on a messenger that an honest message is no part of.
func ours(platform string) []simulator.Attack {
	GinkgoHelper()
	var all []simulator.Attack
	for _, a := range simulator.Attacks() {
		// These two need something genuine before them.
		if a.Platform == platform && !a.Honest && a.Name != "replay" && a.Name != "foreign-tap" {
			all = append(all, a)
		}
	}
	Expect(len(all)).To(BeNumerically(">", 12), "attacks that would be tried")
	return all
}

var _ = Describe("A forgery", func() {
	It("of a WhatsApp message changes nothing in the store, and the owner of the number can still prove it", func(ctx SpecContext) {
		s := newScene(ctx, true)
		victim := s.person(ctx)
		id, link := s.begin(ctx, "WHATSAPP", victim)
		stored := s.object(ctx, id).ResourceVersion
		for _, a := range ours("whatsapp") {
			By(a.Name)
			answers(s.attack(ctx, a.Name, s.person(ctx), victim, link), a.Expect)
			Expect(s.status(ctx, id)).To(Equal("PENDING"), a.Name)
			now := s.object(ctx, id)
			if a.Asks && len(now.Status.Contacts) == 1 { // noted once, that the owner was asked
				stored = now.ResourceVersion
			}
			Expect(now.ResourceVersion).To(Equal(stored), a.Name)
		}
		s.proves(ctx, victim, id, link)
		Eventually(s.receiver.deliveries).WithContext(ctx).WithTimeout(patience).Should(HaveLen(1), "one event, for the owner")
	}, SpecTimeout(3*time.Minute))

	It("of a Telegram message verifies nothing, and the owner of the number can still prove it", func(ctx SpecContext) {
		s := newScene(ctx, true)
		for _, a := range ours("telegram") {
			By(a.Name)
			victim := s.person(ctx)
			id, link := s.begin(ctx, "TELEGRAM", victim)
			stored := s.object(ctx, id).ResourceVersion
			answers(s.attack(ctx, a.Name, s.person(ctx), victim, link), a.Expect)
			Expect(s.status(ctx, id)).To(Equal("PENDING"), a.Name)
			if a.Expect != http.StatusOK {
				Expect(s.object(ctx, id).ResourceVersion).To(Equal(stored), a.Name)
			}
			Expect(s.object(ctx, id).Status.ActualPhoneNumber).To(BeEmpty(), a.Name)
			s.proves(ctx, victim, id, link)
		}
	}, SpecTimeout(5*time.Minute))

	It("among updates that are fetched verifies nothing either", func(ctx SpecContext) {
		s := newScene(ctx, false)
		for _, a := range ours("telegram") {
			if a.Expect != http.StatusOK {
				continue // nothing is posted, so there is nothing to authenticate
			}
			By(a.Name)
			victim := s.person(ctx)
			id, link := s.begin(ctx, "TELEGRAM", victim)
			for _, d := range s.attack(ctx, a.Name, s.person(ctx), victim, link) {
				Expect(d).To(HaveKeyWithValue("queued", true))
			}
			// The owner's updates come after those of the attack, so by then those are dealt with.
			s.proves(ctx, victim, id, link)
			Expect(s.object(ctx, id).Status.ActualPhoneNumber).To(Equal(victim), a.Name)
		}
	}, SpecTimeout(5*time.Minute))

	It("by a link that is passed on with another text is asked about, once, and only the owner's answer counts", func(ctx SpecContext) {
		s := newScene(ctx, true)
		victim, attacker := s.person(ctx), s.person(ctx)
		id, link := s.begin(ctx, "WHATSAPP", victim)
		chat, prepared, _ := strings.Cut(link, "?text=")
		relayed := chat + "?text=Please%20release%20my%20parcel%20no.%20" + prepared[len(prepared)-len("XXXX-XXXX-XXXX-XXXX"):]
		s.sim(ctx, http.StatusAccepted, "/sim/users/"+victim+"/send", fmt.Sprintf(`{"link": %q}`, relayed))
		Eventually(func() int { return len(s.object(ctx, id).Status.Contacts) }).WithContext(ctx).WithTimeout(patience).Should(Equal(1))
		Expect(s.status(ctx, id)).To(Equal("PENDING"))
		var answered []any
		Eventually(func() error { // once the prompt has come
			status, _, answer := (&replica{api: strings.TrimPrefix(s.url, "http://")}).exchange(ctx, "", http.MethodPost,
				"/sim/users/"+attacker+"/attack/foreign-tap", fmt.Sprintf(`{"link": %q, "phone": %q}`, link, victim))
			if status != http.StatusOK {
				return fmt.Errorf("%v", answer)
			}
			answered = answer["deliveries"].([]any)
			return nil
		}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
		answers(answered, http.StatusOK)
		Expect(s.status(ctx, id)).To(Equal("PENDING"), "the attacker taps the victim's button")

		s.sim(ctx, http.StatusAccepted, "/sim/users/"+victim+"/send", fmt.Sprintf(`{"link": %q}`, relayed))
		s.sim(ctx, http.StatusAccepted, "/sim/users/"+victim+"/tap", `{"wait": "30s"}`)
		Eventually(s.status).WithContext(ctx).WithArguments(id).WithTimeout(patience).Should(Equal("VERIFIED"))
		Expect(s.object(ctx, id).Status.Contacts).To(HaveLen(1))
	}, SpecTimeout(2*time.Minute))

	It("that repeats a genuine webhook does nothing a second time, and nothing for another request", func(ctx SpecContext) {
		s := newScene(ctx, true)
		for _, method := range []string{"WHATSAPP", "TELEGRAM"} {
			victim := s.person(ctx)
			id, link := s.begin(ctx, method, victim)
			s.proves(ctx, victim, id, link)
			Eventually(func() error {
				status, _, answer := (&replica{api: strings.TrimPrefix(s.url, "http://")}).exchange(ctx, "", http.MethodPost,
					"/sim/users/"+victim+"/attack/replay", fmt.Sprintf(`{"link": %q}`, link))
				if status != http.StatusOK {
					return fmt.Errorf("%v", answer)
				}
				answers(answer["deliveries"].([]any), http.StatusOK)
				return nil
			}).WithContext(ctx).WithTimeout(patience).Should(Succeed(), "once the first was taken")
			other, link := s.begin(ctx, method, victim)
			answers(s.attack(ctx, "replay", victim, victim, link), http.StatusOK)
			Expect(s.status(ctx, id)).To(Equal("VERIFIED"))
			Expect(s.status(ctx, other)).To(Equal("PENDING"))
		}
		Eventually(s.receiver.deliveries).WithContext(ctx).WithTimeout(patience).Should(HaveLen(2))
		Consistently(s.receiver.deliveries).WithContext(ctx).WithTimeout(3*time.Second).Should(HaveLen(2), "one event for each request")
	}, SpecTimeout(2*time.Minute))

	It("around a genuine message does not spoil it: in a batch of 1,000, and between malformed ones", func(ctx SpecContext) {
		s, tried := newScene(ctx, true), 0
		for _, a := range simulator.Attacks() {
			if !a.Honest {
				continue
			}
			tried++
			By(a.Name)
			owner := s.person(ctx)
			id, link := s.begin(ctx, "WHATSAPP", owner)
			answers(s.attack(ctx, a.Name, owner, owner, link), http.StatusOK)
			Expect(s.status(ctx, id)).To(Equal("VERIFIED"), a.Name)
		}
		Expect(tried).To(BeNumerically(">", 1))
	}, SpecTimeout(2*time.Minute))
})
