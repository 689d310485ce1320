package settings

import (
	"crypto/sha256"
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// signingSecret is as Supabase shows one.
const signingSecret = "v1,whsec_" + canary + "+signing+secret+of+the+login=="

func signingProject() *verifyv1.VerificationProject {
	p, first, second := newProject(), ref("shop", "login"), ref("shop", "login-2")
	for name, ref := range map[string]*verifyv1.SecretKeyRef{"login": &first, "login-2": &second} {
		p.Spec.APIKeys = append(p.Spec.APIKeys, verifyv1.APIKey{Name: name, SigningSecretRef: ref, Scopes: []verifyv1.Scope{verifyv1.ScopeDeliver}})
	}
	return p
}

// TestKeys_FindSigner: a signing secret counts for its entry alone, and never as an API key.
func TestKeys_FindSigner(t *testing.T) {
	g, p, values := NewWithT(t), signingProject(), newValues()
	values["login"], values["login-2"] = signingSecret, "the-signing-key-of-a-ZITADEL-0001"
	all := listUses(&p.Spec)
	before := Secrets{}.applyReadings(all, readingsOf(values), start)
	keyOf := func(secret string) func([]byte) bool {
		want, err := WebhookKey([]byte(strings.TrimPrefix(secret, supabasePrefix)))
		g.Expect(err).NotTo(HaveOccurred())
		return func(key []byte) bool { return string(key) == string(want) }
	}
	find := func(keys Keys, name, secret string) (Key, bool, error) {
		found, err := keys.FindSigner(name, start)
		return found, err == nil && found.IdentifySigner(start, keyOf(secret)), err
	}
	keys := FromProject(p, before).Keys
	for name, secret := range map[string]string{"login": signingSecret, "login-2": values["login-2"]} {
		found, isSigner, err := find(keys, name, secret)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(isSigner).To(BeTrue())
		g.Expect(found).To(And(HaveField("Name", name), HaveField("Scopes", ScopeDeliver)))
		g.Expect(found.Hash).To(Equal(sha256.Sum256([]byte(strings.TrimPrefix(secret, supabasePrefix)))))
		for _, presented := range []string{secret, strings.TrimPrefix(secret, supabasePrefix)} {
			_, err = keys.Find(presented, start)
			g.Expect(err).To(MatchError(ErrKeyUnknown))
		}
		for _, other := range []string{"login", "login-2", "backend", ""} {
			if _, isSigner, err := find(keys, other, secret); other != name {
				g.Expect(isSigner).To(BeFalse(), other)
				g.Expect(err == nil).To(Equal(strings.HasPrefix(other, "login")), other)
			}
		}
	}
	g.Expect(keys.DeliverNames()).To(And(HaveLen(2), HaveKey("login")), "each has its share of the sender")

	values["login"] = "the-signing-key-of-a-ZITADEL-0002"
	after := before.applyReadings(all, readingsOf(values), start)
	replaced, err := FromProject(p, after).Keys.FindSigner("login", start)
	g.Expect(err).NotTo(HaveOccurred())
	for at, want := range map[time.Duration]bool{0: true, Overlap: false} {
		g.Expect(replaced.IdentifySigner(start.Add(at), keyOf(signingSecret))).To(Equal(want), "for as long as a replaced API key")
	}
	former, _, _ := find(keys, "login", signingSecret)
	g.Expect(replaced.IdentifySigner(start, func([]byte) bool { return true })).To(BeTrue())
	g.Expect(replaced.Hash).To(Equal(former.Hash), "signed with both, as a replica identifies it that knows the former one alone")

	values["login"] = "REPLACE-with-the-signing-key-of-it"
	_, isSigner, _ := find(FromProject(p, after.applyReadings(all, readingsOf(values), start)).Keys, "login", "the-signing-key-of-a-ZITADEL-0002")
	g.Expect(isSigner).To(BeTrue(), "a mistake is no revocation")
	values["login"] = "-"
	_, _, err = find(FromProject(p, after.applyReadings(all, readingsOf(values), start)).Keys, "login", signingSecret)
	g.Expect(err).To(MatchError(ErrKeysUnavailable))
}

// TestSecrets_signing: what is too short, or what others know, signs nothing.
func TestSecrets_signing(t *testing.T) {
	for name, tc := range map[string]struct {
		value string
		other map[string]string
		want  Reason
	}{
		"of Supabase":               {signingSecret, nil, ""},
		"without its version":       {signingSecret[3:], nil, ""},
		"of ZITADEL":                {strings.Repeat("k", 24), nil, ""},
		"too short":                 {strings.Repeat("k", 23), nil, ReasonWebhookSecretTooShort},
		"too short after v1,":       {"v1," + strings.Repeat("k", 23), nil, ReasonWebhookSecretTooShort},
		"no base64":                 {"v1,whsec_!", nil, ReasonNotBase64},
		"placeholder":               {"REPLACE-with-the-signing-key-of-it", nil, ReasonPlaceholder},
		"an API key":                {apiKey("monitor"), nil, ReasonKnownToOthers},
		"the webhook secret":        {goodWebhook, nil, ReasonKnownToOthers},
		"the former webhook secret": {goodPrevious, nil, ReasonKnownToOthers},
		"of another entry":          {signingSecret, map[string]string{"login-2": signingSecret[3:]}, ReasonKnownToOthers},
		"with v1, at the webhook":   {signingSecret, map[string]string{"webhook": signingSecret}, ReasonKnownToOthers},
	} {
		t.Run(name, func(t *testing.T) {
			g, values := NewWithT(t), newValues()
			values["login"], values["login-2"] = tc.value, "the-signing-key-of-a-ZITADEL-0001"
			maps.Copy(values, tc.other)
			problems := settingsOf(signingProject(), values).Problems
			if tc.want == "" {
				g.Expect(problems).To(BeEmpty())
				return
			}
			g.Expect(problems).To(HaveExactElements(And(
				HaveField("Field", HavePrefix("spec.apiKeys[login")), HaveField("Field", HaveSuffix("].signingSecretRef")), HaveField("Reason", tc.want))))
		})
	}
	g, values := NewWithT(t), newValues()
	values["login"], values["login-2"] = goodAppSecret, "the-signing-key-of-a-ZITADEL-0001"
	g.Expect(settingsOf(signingProject(), values).Problems).To(Equal([]Problem{problem(fieldAppSecret, "app", ReasonKnownToOthers)}),
		"an identity server could write messages from any sender")
}
