package doctor

import (
	"slices"
	"strings"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/projectstatus"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// The fields whose Secrets sign events, real ones and those of test keys.
const (
	fieldWebhookSecret = "spec.webhook.secretRef"     //nolint:gosec // a path
	fieldWebhookTest   = "spec.webhook.testSecretRef" //nolint:gosec // a path
)

const (
	createSecret = "`kubectl -n NAMESPACE create secret generic SECRET --from-file=KEY=FILE`, with the value alone in the file; if the Secret exists, " +
		"put the key into it by `kubectl -n NAMESPACE edit secret SECRET` (`base64 -w0 FILE` writes the value)"
	makeSecret = "make one with `phoneproof keygen --webhook`, and give it to the receiver, too"
)

// secretChecks are about the values of Secrets, or, where these may not be read, about what the pods report of them.
func secretChecks() []check {
	return []check{
		{
			name: "SecretMissing", problem: "a Secret that the project names, or the key in it, does not exist",
			remedy: createSecret,
			find:   onSecrets(verifyv1.ReasonSecretMissing, func(p settings.Problem) bool { return p.Reason == settings.ReasonMissing }),
		},
		{
			name: "WebhookSecretMalformed", problem: "the secret that signs events is not in its form, so events wait unsent",
			remedy: makeSecret,
			find:   onSecrets("", isWebhookSecret),
		},
		{
			name: "SecretInvalid", problem: "the value in a Secret cannot be used",
			remedy: createSecret,
			find: onSecrets(verifyv1.ReasonSecretInvalid, func(p settings.Problem) bool {
				return p.Reason != settings.ReasonMissing && !isWebhookSecret(p)
			}),
		},
		{
			name: "SecretWithBlanks", problem: "the value in a Secret begins or ends with a blank or a line break, which belongs to it",
			remedy: createSecret,
			find:   findBlanks,
		},
		{
			name: "SigningSecretUnusable", problem: "`spec.webhook.secretRef` is set and cannot be used, so events wait unsent",
			remedy: makeSecret,
			find: func(f *Facts) []evidence {
				if f.Secrets.Read { // then a check above has said more
					return nil
				}
				return findReasons(f, verifyv1.ConditionWebhookHealthy, verifyv1.ReasonSigningSecretMissing)
			},
		},
	}
}

func isWebhookSecret(p settings.Problem) bool {
	return (p.Field == fieldWebhookSecret || p.Field == fieldWebhookTest) &&
		(p.Reason == settings.ReasonNotBase64 || p.Reason == settings.ReasonWebhookSecretTooShort)
}

// onSecrets returns the problems that match, or, where the Secrets were not read, the condition with that reason.
func onSecrets(reason string, matches func(settings.Problem) bool) func(*Facts) []evidence {
	return func(f *Facts) []evidence {
		if !f.Secrets.Read {
			if reason == "" {
				return nil
			}
			return findReasons(f, verifyv1.ConditionSecretsReady, reason)
		}
		var found []evidence
		for _, p := range f.Secrets.Value.Problems {
			if matches(p) && !isBlank(f, p) {
				e := evidence{text: projectstatus.DescribeProblem(p)}
				if !isWebhookSecret(p) {
					e.remedy = nameSecret(f, p.Secret, p.Key)
				}
				found = append(found, e)
			}
		}
		return found
	}
}

// findBlanks returns the secrets with blanks.
func findBlanks(f *Facts) []evidence {
	var found []evidence
	for _, b := range f.Secrets.Value.Blanks {
		found = append(found, evidence{
			text:   b.Field + ": Secret " + b.Ref.Name + ", key " + b.Ref.Key,
			remedy: nameSecret(f, b.Ref.Name, b.Ref.Key),
		})
	}
	return found
}

// isBlank reports whether blanks are what is wrong with a secret, so that it is one finding and not two.
func isBlank(f *Facts, p settings.Problem) bool {
	return (p.Reason == settings.ReasonInvalid || p.Reason == settings.ReasonNotBase64 || p.Reason == settings.ReasonNotAppSecret) &&
		slices.ContainsFunc(f.Secrets.Value.Blanks, func(b settings.SecretField) bool { return b.Field == p.Field })
}

// nameSecret returns the command that puts a value into that key.
func nameSecret(f *Facts, secret, key string) string {
	return strings.NewReplacer("NAMESPACE", f.Project.Namespace, "SECRET", secret, "KEY", key).Replace(createSecret)
}
