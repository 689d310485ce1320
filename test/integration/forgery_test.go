package integration_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
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
	"github.com/phoneproof/phoneproof/test/system"
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
	callback := "http://" + s.replicas[0].API + whatsapp.Path
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
	before := s.replicas
	r := s.startOne("--simulator-url", s.url)
	s.replicas = slices.Insert(before, 0, r)
	s.api.Store(r.API)
	Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), r.output)
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
	return &replica{Replica: system.Replica{API: strings.TrimPrefix(s.url, "http://")}}
}

// callSimulator calls the simulator's API.
func (s *simulatedShop) callSimulator(ctx context.Context, want int, path, body string) map[string]any {
	GinkgoHelper()
	status, _, answer := s.simulatorReplica().sendCall(ctx, "", http.MethodPost, path, body)
	Expect(status).To(Equal(want), "%s: %v", path, answer)
	return answer
}

// addUser adds a user and returns the user's number.
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

// forgedMessage returns the webhook of a message to the shop's number, whose sender and content are JSON.
func forgedMessage(sender, content string) string {
	return fmt.Sprintf(`{"object":"whatsapp_business_account","entry":[{"id":"101234567890","changes":[{"field":"messages","value":{`+
		`"messaging_product":"whatsapp","metadata":{"display_phone_number":"4915112345670","phone_number_id":"1234567890"},`+
		`"messages":[{%s,"id":"wamid.forged","timestamp":"%d",%s}]}}]}]}`, sender, time.Now().Unix(), content)
}

// signForged signs a webhook as Meta does.
func signForged(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// postForged posts a webhook with a header that is to say who sent it, and returns the status. An answer of 503 decides nothing:
// the messenger would post it again.
func (s *simulatedShop) postForged(ctx context.Context, path, header, value, body string) (status int) {
	GinkgoHelper()
	headers := http.Header{}
	if value != "" {
		headers.Set(header, value)
	}
	Eventually(func() int {
		status, _, _ = sendRequest(ctx, http.MethodPost, "http://"+s.replicas[0].API+path, headers, body)
		return status
	}).WithContext(ctx).ShouldNot(BeElementOf(0, http.StatusServiceUnavailable))
	return status
}

// tapAs posts a tap on a button that its sender was not shown, signed by Meta.
func (s *simulatedShop) tapAs(ctx context.Context, sender, button string) {
	GinkgoHelper()
	tap := forgedMessage(sender, fmt.Sprintf(`"type":"interactive","interactive":{"type":"button_reply","button_reply":{"id":%q,"title":"Confirm"}}`, button))
	Expect(s.postForged(ctx, whatsapp.Path, "X-Hub-Signature-256", signForged(simSecret, tap), tap)).To(Equal(http.StatusOK))
}

// readButton returns the id of the first button that a user is shown, once there is one.
func (s *simulatedShop) readButton(ctx context.Context, number string) (id string) {
	GinkgoHelper()
	var answer struct {
		Chats []struct {
			Replies []struct {
				ID string `json:"id"`
			} `json:"replies"`
		} `json:"chats"`
	}
	Eventually(func(g Gomega) {
		g.Expect(json.Unmarshal([]byte(s.readChats(ctx, number)), &answer)).To(Succeed())
		g.Expect(answer.Chats).To(ContainElement(HaveField("Replies", Not(BeEmpty()))))
	}).WithContext(ctx).Should(Succeed())
	for _, chat := range answer.Chats {
		for _, button := range chat.Replies {
			return button.ID
		}
	}
	return ""
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

var _ = Describe("A forgery", func() {
	It("of a WhatsApp message changes nothing in the store, and the owner of the number can still prove it", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true)
		victim := s.addUser(ctx)
		id, link := s.startRequest(ctx, "WHATSAPP", victim)
		parsed, err := url.Parse(link)
		Expect(err).NotTo(HaveOccurred())
		message := forgedMessage(fmt.Sprintf(`"from":%q`, victim[1:]), fmt.Sprintf(`"type":"text","text":{"body":%q}`, parsed.Query().Get("text")))
		stored := s.readRequest(ctx, id).ResourceVersion
		for name, signature := range map[string]string{
			"unsigned": "", "signed for another project": signForged("sim_another_project", message),
			"with the signature of another": signForged(simSecret, message+" "),
		} {
			Expect(s.postForged(ctx, whatsapp.Path, "X-Hub-Signature-256", signature, message)).To(Equal(http.StatusForbidden), name)
		}
		Expect(s.readStatus(ctx, id)).To(Equal("PENDING"))
		Expect(s.readRequest(ctx, id).ResourceVersion).To(Equal(stored))

		By("the owner forwarding it, which is no message of theirs, and then sending it")
		s.callSimulator(ctx, http.StatusAccepted, "/sim/users/"+victim+"/send", fmt.Sprintf(`{"link": %q, "forwarded": true}`, link))
		s.expectAnswer(ctx, id, "status", "PENDING", "hint", "TEXT_REFUSED")
		s.verifyByOwner(ctx, victim, id, link)
		Eventually(s.receiver.deliveries).WithContext(ctx).Should(HaveLen(1), "one event, for the owner")
	}, SpecTimeout(hang))

	It("of a Telegram message changes nothing in the store, and the owner of the number can still prove it", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true)
		victim := s.addUser(ctx)
		id, link := s.startRequest(ctx, "TELEGRAM", victim)
		parsed, err := url.Parse(link)
		Expect(err).NotTo(HaveOccurred())
		stored := s.readRequest(ctx, id).ResourceVersion
		update := fmt.Sprintf(`{"update_id":1,"message":{"message_id":1,"from":{"id":9,"is_bot":false,"first_name":"Eve"},`+
			`"chat":{"id":9,"type":"private"},"date":%d,"text":%q}}`, time.Now().Unix(), "/start "+parsed.Query().Get("start"))
		for _, secret := range []string{"", "guessed", simToken, telegram.WebhookSecret([]byte(simToken), s.namespace+"/other")} {
			Expect(s.postForged(ctx, telegram.HookPath, "X-Telegram-Bot-Api-Secret-Token", secret, update)).To(Equal(http.StatusUnauthorized))
		}
		Expect(s.readRequest(ctx, id).ResourceVersion).To(Equal(stored))
		s.verifyByOwner(ctx, victim, id, link)
	}, SpecTimeout(hang))

	It("by a link that is passed on with another text is asked about, once, and only the owner's answer counts", func(ctx SpecContext) {
		s := newSimulatedShop(ctx, true)
		victim, attacker := s.addUser(ctx), s.addUser(ctx)
		id, link := s.startRequest(ctx, "WHATSAPP", victim)
		chat, prepared, _ := strings.Cut(link, "?text=")
		relayed := chat + "?text=Please%20release%20my%20parcel%20no.%20" + prepared[len(prepared)-len("XXXX-XXXX-XXXX-XXXX"):]
		s.sendText(ctx, victim, relayed)
		Eventually(func() int { return len(s.readRequest(ctx, id).Status.Contacts) }).WithContext(ctx).Should(Equal(1))
		Expect(s.readStatus(ctx, id)).To(Equal("PENDING"))
		s.tapAs(ctx, fmt.Sprintf(`"from":%q`, attacker[1:]), s.readButton(ctx, victim))
		Expect(s.readStatus(ctx, id)).To(Equal("PENDING"), "the attacker taps the victim's button")

		s.sendText(ctx, victim, relayed)
		s.tapButton(ctx, victim, "Confirm")
		Eventually(s.readStatus).WithContext(ctx).WithArguments(id).Should(Equal("VERIFIED"))
		Expect(s.readRequest(ctx, id).Status.Contacts).To(HaveLen(1))
	}, SpecTimeout(hang))
})
