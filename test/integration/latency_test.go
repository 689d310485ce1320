package integration_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/server"
)

var _ = Describe("An authentic message", func() {
	for _, store := range []string{server.StoreMemory, server.StoreKubernetes} {
		It("is answered after its changes are stored: "+store, func(ctx SpecContext) {
			const messages = 50
			s := newShop(ctx)
			m := s.newMessengers()
			bot := &verifyv1.Telegram{BotUsername: shopBot, BotTokenSecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "bot-token"}}
			if store == server.StoreMemory {
				project := s.newProject()
				project.TypeMeta = metav1.TypeMeta{APIVersion: verifyv1.GroupVersion.String(), Kind: verifyv1.VerificationProjectKind}
				project.Spec.BaseURL, project.Spec.Telegram = shopHost, bot
				s.startAlone(ctx, project, m)
			} else {
				s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.BaseURL, p.Spec.Telegram = shopHost, bot })
				m.startServing(ctx, s, 1)
			}
			p := &platformPost{shop: s, replica: s.replicas[0]}
			for n := range messages {
				p.verifyWhatsApp(ctx, n)
				p.verifyTelegram(ctx, n)
			}
			for what, took := range p.took {
				slices.Sort(took)
				AddReportEntry(store+", "+what, fmt.Sprintf("p50 %s, p99 %s of %d", took[len(took)/2].Round(10*time.Microsecond),
					took[len(took)*99/100].Round(10*time.Microsecond), len(took)))
			}
		}, SpecTimeout(hang))
	}
})

// startAlone starts a replica without a cluster, with the memory store.
func (s *shop) startAlone(ctx context.Context, project *verifyv1.VerificationProject, m *messengers) {
	GinkgoHelper()
	r := startReplica("--project-file", writeProject(project), "--secrets-dir", s.secrets, "--simulator-url="+m.url)
	s.replicas = append(s.replicas, r)
	m.routeTo(s.replicas)
	Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), r.output)
}

// platformPost posts to one replica like both platforms, and records how long each answer takes.
type platformPost struct {
	shop    *shop
	replica *replica
	took    map[string][]time.Duration
}

// verifyWhatsApp verifies a number by a signed message.
func (p *platformPost) verifyWhatsApp(ctx context.Context, n int) {
	GinkgoHelper()
	number := fmt.Sprintf("49151%08d", n)
	id, text := p.initRequest(ctx, number, "WHATSAPP")
	body, err := json.Marshal(map[string]any{
		"object": "whatsapp_business_account",
		"entry": []any{map[string]any{"id": "1", "changes": []any{map[string]any{"field": "messages", "value": map[string]any{
			"messaging_product": "whatsapp",
			"metadata":          map[string]any{"display_phone_number": "4915112345670", "phone_number_id": shopNumberID},
			"contacts":          []any{map[string]any{"profile": map[string]any{"name": "Zoë"}, "wa_id": number}},
			"messages": []any{map[string]any{
				"from": number, "id": "wamid." + strconv.Itoa(n), "timestamp": strconv.FormatInt(time.Now().Unix(), 10),
				"type": "text", "text": map[string]any{"body": text},
			}},
		}}}}},
	})
	Expect(err).NotTo(HaveOccurred())
	mac := hmac.New(sha256.New, []byte(simulatedKey))
	mac.Write(body)
	p.postTimed(ctx, "WhatsApp message", "/hooks/whatsapp", "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)), body)
	p.expectVerified(ctx, id)
}

// verifyTelegram verifies a number by a code, which is answered with a prompt, and a contact.
func (p *platformPost) verifyTelegram(ctx context.Context, n int) {
	GinkgoHelper()
	number := fmt.Sprintf("49151%08d", n)
	id, text := p.initRequest(ctx, number, "TELEGRAM")
	secret := telegram.WebhookSecret([]byte(botTokenOne), p.projectName())
	update := func(id int, content string) []byte {
		return fmt.Appendf(nil, `{"update_id":%d,"message":{"message_id":1,"from":{"id":%d,"is_bot":false,"first_name":"Z"},`+
			`"chat":{"id":%d,"type":"private"},"date":%d,%s}}`, id, 9000+n, 9000+n, time.Now().Unix(), content)
	}
	const header = "X-Telegram-Bot-Api-Secret-Token"
	p.postTimed(ctx, "Telegram code, with its prompt", "/hooks/telegram", header, secret, update(2*n+1, fmt.Sprintf(`"text":%q`, text)))
	p.postTimed(ctx, "Telegram contact", "/hooks/telegram", header, secret,
		update(2*n+2, fmt.Sprintf(`"contact":{"phone_number":%q,"first_name":"Z","user_id":%d}`, number, 9000+n)))
	p.expectVerified(ctx, id)
}

func (p *platformPost) projectName() string { return p.shop.namespace + "/shop" }

func (p *platformPost) initRequest(ctx context.Context, number, method string) (id, text string) {
	GinkgoHelper()
	answer := p.replica.mustCall(ctx, p.shop.key, http.MethodPost, "/api/verify/init",
		fmt.Sprintf(`{"phoneNumber": "+%s", "method": %q}`, number, method))
	text, _ = answer["expectedText"].(string)
	canaries.addText(text)
	return answer["requestId"].(string), text
}

// expectVerified reads the status right after the answer: acknowledged means stored.
func (p *platformPost) expectVerified(ctx context.Context, id string) {
	GinkgoHelper()
	answer := p.replica.mustCall(ctx, p.shop.key, http.MethodGet, "/api/verify/status?id="+id, "")
	Expect(answer).To(HaveKeyWithValue("status", "VERIFIED"))
}

func (p *platformPost) postTimed(ctx context.Context, what, path, header, value string, body []byte) {
	GinkgoHelper()
	headers := http.Header{"Content-Type": {"application/json"}, header: {value}}
	begun := time.Now()
	status, _, _ := sendRequest(ctx, http.MethodPost, "http://"+p.replica.API+path, headers, string(body))
	if p.took == nil {
		p.took = map[string][]time.Duration{}
	}
	p.took[what] = append(p.took[what], time.Since(begun))
	if status == http.StatusServiceUnavailable { // the store timed out, so the platform sends it again
		p.postTimed(ctx, what, path, header, value, body)
		return
	}
	Expect(status).To(Equal(http.StatusOK), what)
}
