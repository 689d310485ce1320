package settings

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// TestInspectSecrets_likeAServer reads Secrets that are given as bytes by the rules for mounted files.
func TestInspectSecrets_likeAServer(t *testing.T) {
	g := NewWithT(t)
	ref := func(key string) verifyv1.SecretKeyRef { return verifyv1.SecretKeyRef{Name: "shop", Key: key} }
	project := &verifyv1.VerificationProject{Spec: verifyv1.VerificationProjectSpec{
		APIKeys: []verifyv1.APIKey{{Name: "backend", SecretRef: ref("api-key")}},
		Webhook: &verifyv1.Webhook{URL: "https://shop.example.com", SecretRef: new(ref("webhook"))},
		Telegram: &verifyv1.Telegram{
			BotUsername: "ada_books_bot", BotTokenSecretRef: ref("bot-token"),
		},
	}}
	contents := map[string]string{"api-key": "0123456789abcdef0123456789abcdef\n", "webhook": "whsec_?"}
	secrets := InspectSecrets(project, func(r verifyv1.SecretKeyRef) ([]byte, bool) {
		content, found := contents[r.Key]
		return []byte(content), found
	}, time.Now())
	s := FromProject(project, secrets)
	g.Expect(s.Problems).To(Equal([]Problem{
		{Field: "spec.telegram.botTokenSecretRef", Secret: "shop", Key: "bot-token", Reason: ReasonMissing},
		{Field: "spec.webhook.secretRef", Secret: "shop", Key: "webhook", Reason: ReasonNotBase64},
	}))
	_, err := s.Keys.Find("0123456789abcdef0123456789abcdef", time.Now())
	g.Expect(err).NotTo(HaveOccurred(), "one newline at the end is ignored")
	g.Expect(SecretFields(&project.Spec)).To(Equal([]SecretField{
		{Field: "spec.apiKeys[backend].secretRef", Ref: ref("api-key"), Text: true},
		{Field: "spec.webhook.secretRef", Ref: ref("webhook"), Text: true},
		{Field: "spec.telegram.botTokenSecretRef", Ref: ref("bot-token"), Text: true},
	}))
}
