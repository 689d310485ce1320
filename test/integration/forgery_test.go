package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
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

// simulatedShop is a project whose messengers are simulated, with one replica on the Kubernetes store.
type simulatedShop struct {
	*shop

	url   string
	users int
	// api is the address that webhooks are routed to; empty before there is a replica.
	api atomic.Value
	// intercept handles the calls to the simulator, which is next; nil passes all of them on.
	intercept atomic.Pointer[func(w http.ResponseWriter, r *http.Request, next http.Handler)]
}

const (
	simBot    = "forged_bot"
	simSecret = "sim_4915112345670:of-the-scene"
	simToken  = "sim_" + simBot + ":of-the-scene"

	// sceneURL is the API's URL for the messengers.
	sceneURL = "https://verify.example.com"
)

// newSimulatedShop starts a replica and a simulator for each other. With webhooks, Telegram posts to the replica; otherwise
// the replica polls.
func newSimulatedShop(ctx context.Context, webhooks bool, edits ...func(*verifyv1.VerificationProjectSpec)) *simulatedShop {
	GinkgoHelper()
	s := &simulatedShop{shop: newShop(ctx)}
	s.api.Store("")
	sim := simulator.New(simulator.Options{
		Redirect: func(callback string) string {
			return strings.Replace(callback, sceneURL, "http://"+s.api.Load().(string), 1)
		},
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if intercept := s.intercept.Load(); intercept != nil {
			(*intercept)(w, r, sim)
			return
		}
		sim.ServeHTTP(w, r)
	}))
	DeferCleanup(server.Close)
	s.url = server.URL
	runInBackground(sim.Start)
	s.useSimulator(ctx, webhooks, edits)
	s.startNext(ctx)
	callback := "http://" + s.replicas[0].api + whatsapp.Path
	if webhooks {
		callback = sceneURL + whatsapp.Path
	}
	Expect(sim.AddWhatsApp(simulator.WhatsAppAccount{
		PhoneNumberID: "1234567890", Number: "+4915112345670", AppSecret: simSecret, Callback: callback,
	})).To(Succeed())
	bot := simulator.TelegramAccount{Username: simBot, Token: simToken}
	if webhooks { // as the replica itself registers it, but at once
		bot.Callback = sceneURL + telegram.HookPath
		bot.Secret = telegram.WebhookSecret([]byte(simToken), s.namespace+"/shop")
	}
	Expect(sim.AddTelegram(bot)).To(Succeed())
	return s
}

// startNext starts another replica, waits until it is ready, and routes webhooks and the spec's own calls to it.
func (s *simulatedShop) startNext(ctx context.Context) {
	GinkgoHelper()
	r := startReplica(append([]string{
		"--project", s.namespace + "/shop", "--kubeconfig", s.kubeconfig, "--secrets-dir", s.secrets, "--log-level=debug",
		"--simulator-url", s.url, "--whatsapp-url=http://127.0.0.1:1", "--telegram-url=http://127.0.0.1:1",
	}, leaseFlags...)...)
	s.replicas = slices.Insert(s.replicas, 0, r)
	s.api.Store(r.api)
	Eventually(r.isReady).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), r.output)
}

// runInBackground runs start until the spec ends.
func runInBackground(start func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
}

// useSimulator gives the project accounts of the simulator.
func (s *simulatedShop) useSimulator(ctx context.Context, webhooks bool, edits []func(*verifyv1.VerificationProjectSpec)) {
	GinkgoHelper()
	s.writeSecret("access-token", simSecret)
	s.writeSecret("app-secret", simSecret)
	s.writeSecret("bot-token", simToken)
	project := &verifyv1.VerificationProject{}
	Expect(s.admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "shop"}, project)).To(Succeed())
	project.Spec.WhatsApp.HiddenNumbers = verifyv1.HiddenNumbersSharedContact
	project.Spec.Telegram = &verifyv1.Telegram{BotUsername: simBot, BotTokenSecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "bot-token"}}
	if webhooks {
		project.Spec.BaseURL = sceneURL
	}
	for _, edit := range edits {
		edit(&project.Spec)
	}
	Expect(s.admin.Update(ctx, project)).To(Succeed())
}

// simulatorReplica returns the simulator as something to call.
func (s *simulatedShop) simulatorReplica() *replica {
	return &replica{api: strings.TrimPrefix(s.url, "http://")}
}

// callSimulator calls the simulator's API.
func (s *simulatedShop) callSimulator(ctx context.Context, want int, path, body string) map[string]any {
	GinkgoHelper()
	status, _, answer := s.simulatorReplica().sendCall(ctx, "", http.MethodPost, path, body)
	Expect(status).To(Equal(want), "%s: %v", path, answer)
	return answer
}

// addUser adds a user and returns the user's number. Each attack has its own attacker and victim, so that no limit of one
// sender hides the outcome of the others.
func (s *simulatedShop) addUser(ctx context.Context) string {
	GinkgoHelper()
	s.users++
	number := fmt.Sprintf("+4915155%06d", s.users)
	s.callSimulator(ctx, http.StatusCreated, "/sim/users", fmt.Sprintf(`{"name": "Ada", "phone": %q}`, number))
	return number
}

// startRequest starts a verification of a number and returns its id and link.
func (s *simulatedShop) startRequest(ctx context.Context, method, number string) (id, link string) {
	GinkgoHelper()
	answer := s.replicas[0].mustCall(ctx, s.key, http.MethodPost, "/api/verify/init",
		fmt.Sprintf(`{"phoneNumber": %q, "method": %q}`, number, method))
	canaries.addText(answer["expectedText"].(string))
	link, ok := answer["waLink"].(string)
	if !ok {
		link = answer["tgLink"].(string)
	}
	return answer["requestId"].(string), link
}

// runAttack attacks the link of a victim as soon as what it needs is there, and returns the answers. An answer of 503 means that nothing
// was decided, because the store was late: then it comes again, as the messenger would deliver it again.
func (s *simulatedShop) runAttack(ctx context.Context, name, by, victim, link string) []any {
	GinkgoHelper()
	var answers []any
	Eventually(func(g Gomega) {
		status, _, answer := s.simulatorReplica().sendCall(ctx, "", http.MethodPost,
			"/sim/users/"+by+"/attack/"+name, fmt.Sprintf(`{"link": %q, "phone": %q}`, link, victim))
		g.Expect(status).To(Equal(http.StatusOK), "%v", answer)
		answers = answer["deliveries"].([]any)
		g.Expect(answers).NotTo(ContainElement(HaveKeyWithValue("status", BeEquivalentTo(http.StatusServiceUnavailable))))
	}).WithContext(ctx).Should(Succeed(), name)
	return answers
}

// expectStatuses expects every request of an attack to be answered with a status.
func expectStatuses(deliveries []any, status int) {
	GinkgoHelper()
	Expect(deliveries).NotTo(BeEmpty())
	for _, d := range deliveries {
		Expect(d).To(HaveKeyWithValue("status", BeEquivalentTo(status)))
	}
}

func (s *simulatedShop) readStatus(ctx context.Context, id string) string {
	GinkgoHelper()
	return s.replicas[0].mustCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")["status"].(string)
}

// verifyByOwner sends the text as the owner of the number, and expects it to verify despite earlier attacks.
func (s *simulatedShop) verifyByOwner(ctx context.Context, owner, id, link string) {
	GinkgoHelper()
	s.callSimulator(ctx, http.StatusAccepted, "/sim/users/"+owner+"/send", fmt.Sprintf(`{"link": %q}`, link))
	if strings.HasPrefix(link, "https://t.me/") {
		s.callSimulator(ctx, http.StatusAccepted, "/sim/users/"+owner+"/share-contact", `{"wait": "30s"}`)
	}
	Eventually(s.readStatus).WithContext(ctx).WithArguments(id).Should(Equal("VERIFIED"))
}

// attacksOn returns the attacks on a messenger that contain no honest message.
func attacksOn(platform string) []simulator.Attack {
	GinkgoHelper()
	var all []simulator.Attack
	for _, a := range simulator.Attacks() {
		if a.Platform == platform && !a.Honest && a.Needs == "" { // nothing must have come before them
			all = append(all, a)
		}
	}
	Expect(len(all)).To(BeNumerically(">", 12), "attacks to try")
	return all
}

var _ = Describe("A forgery", func() {
	It("of a WhatsApp message changes nothing in the store, and the owner of the number can still prove it", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true)
		victim := s.addUser(ctx)
		id, link := s.startRequest(ctx, "WHATSAPP", victim)
		stored, hints := s.readRequest(ctx, id).ResourceVersion, 0
		for _, a := range attacksOn("whatsapp") {
			By(a.Name)
			expectStatuses(s.runAttack(ctx, a.Name, s.addUser(ctx), victim, link), a.Expect)
			Expect(s.readStatus(ctx, id)).To(Equal("PENDING"), a.Name)
			now := s.readRequest(ctx, id)
			if a.Asks && len(now.Status.Contacts) == 1 { // recorded once: the owner was asked
				stored = now.ResourceVersion
			}
			if n := len(now.Status.Hints); n > hints { // recorded once for each kind
				stored, hints = now.ResourceVersion, n
			}
			Expect(now.ResourceVersion).To(Equal(stored), a.Name)
		}
		Eventually(func() (kinds []string) { // the status of the question to the owner, who never wrote, comes in its own time
			for _, h := range s.readRequest(ctx, id).Status.Hints {
				kinds = append(kinds, string(h.Kind))
			}
			return kinds
		}).WithContext(ctx).Should(ConsistOf("OTHER_NUMBER", "TEXT_REFUSED", "TOO_LATE", "TEXT_CHANGED", "NO_QUESTION"))
		s.verifyByOwner(ctx, victim, id, link)
		Eventually(s.receiver.deliveries).WithContext(ctx).Should(HaveLen(1), "one event, for the owner")
	}, SpecTimeout(hang))

	It("of a Telegram message verifies nothing, and the owner of the number can still prove it", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true)
		for _, a := range attacksOn("telegram") {
			By(a.Name)
			victim := s.addUser(ctx)
			id, link := s.startRequest(ctx, "TELEGRAM", victim)
			stored := s.readRequest(ctx, id).ResourceVersion
			expectStatuses(s.runAttack(ctx, a.Name, s.addUser(ctx), victim, link), a.Expect)
			Expect(s.readStatus(ctx, id)).To(Equal("PENDING"), a.Name)
			if a.Expect != http.StatusOK {
				Expect(s.readRequest(ctx, id).ResourceVersion).To(Equal(stored), a.Name)
			}
			Expect(s.readRequest(ctx, id).Status.ActualPhoneNumber).To(BeEmpty(), a.Name)
			s.verifyByOwner(ctx, victim, id, link)
		}
	}, SpecTimeout(hang))

	It("among updates that are fetched verifies nothing either", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, false)
		for _, a := range attacksOn("telegram") {
			if a.Expect != http.StatusOK {
				continue // nothing is posted, so there is nothing to authenticate
			}
			By(a.Name)
			victim := s.addUser(ctx)
			id, link := s.startRequest(ctx, "TELEGRAM", victim)
			for _, d := range s.runAttack(ctx, a.Name, s.addUser(ctx), victim, link) {
				Expect(d).To(HaveKeyWithValue("queued", true))
			}
			// The owner's updates come after those of the attack, so that those have been handled by then.
			s.verifyByOwner(ctx, victim, id, link)
			Expect(s.readRequest(ctx, id).Status.ActualPhoneNumber).To(Equal(victim), a.Name)
		}
	}, SpecTimeout(hang))

	It("by a link that is passed on with another text is asked about, once, and only the owner's answer counts", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true)
		victim, attacker := s.addUser(ctx), s.addUser(ctx)
		id, link := s.startRequest(ctx, "WHATSAPP", victim)
		chat, prepared, _ := strings.Cut(link, "?text=")
		relayed := chat + "?text=Please%20release%20my%20parcel%20no.%20" + prepared[len(prepared)-len("XXXX-XXXX-XXXX-XXXX"):]
		s.callSimulator(ctx, http.StatusAccepted, "/sim/users/"+victim+"/send", fmt.Sprintf(`{"link": %q}`, relayed))
		Eventually(func() int { return len(s.readRequest(ctx, id).Status.Contacts) }).WithContext(ctx).Should(Equal(1))
		Expect(s.readStatus(ctx, id)).To(Equal("PENDING"))
		expectStatuses(s.runAttack(ctx, "foreign-tap", attacker, victim, link), http.StatusOK)
		Expect(s.readStatus(ctx, id)).To(Equal("PENDING"), "the attacker taps the victim's button")

		s.callSimulator(ctx, http.StatusAccepted, "/sim/users/"+victim+"/send", fmt.Sprintf(`{"link": %q}`, relayed))
		s.callSimulator(ctx, http.StatusAccepted, "/sim/users/"+victim+"/tap", `{"wait": "30s"}`)
		Eventually(s.readStatus).WithContext(ctx).WithArguments(id).Should(Equal("VERIFIED"))
		Expect(s.readRequest(ctx, id).Status.Contacts).To(HaveLen(1))
	}, SpecTimeout(hang))

	It("that repeats a genuine webhook has no effect, neither on its own request nor on another one", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true)
		for _, method := range []string{"WHATSAPP", "TELEGRAM"} {
			victim := s.addUser(ctx)
			id, link := s.startRequest(ctx, method, victim)
			s.verifyByOwner(ctx, victim, id, link)
			expectStatuses(s.runAttack(ctx, "replay", victim, victim, link), http.StatusOK)
			other, link := s.startRequest(ctx, method, victim)
			expectStatuses(s.runAttack(ctx, "replay", victim, victim, link), http.StatusOK)
			Expect(s.readStatus(ctx, id)).To(Equal("VERIFIED"))
			Expect(s.readStatus(ctx, other)).To(Equal("PENDING"))
		}
		Eventually(s.receiver.deliveries).WithContext(ctx).Should(HaveLen(2))
		Consistently(s.receiver.deliveries).WithContext(ctx).WithTimeout(3*time.Second).Should(HaveLen(2), "one event for each request")
	}, SpecTimeout(hang))

	It("around a genuine message does not invalidate it: in a batch of 1,000, and between malformed ones", func(ctx SpecContext) {
		s, tried := newSimulatedShop(ctx, true), 0
		for _, a := range simulator.Attacks() {
			if !a.Honest {
				continue
			}
			tried++
			By(a.Name)
			owner := s.addUser(ctx)
			id, link := s.startRequest(ctx, "WHATSAPP", owner)
			expectStatuses(s.runAttack(ctx, a.Name, owner, owner, link), http.StatusOK)
			Expect(s.readStatus(ctx, id)).To(Equal("VERIFIED"), a.Name)
		}
		Expect(tried).To(BeNumerically(">", 1))
	}, SpecTimeout(hang))
})
