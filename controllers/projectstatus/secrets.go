package projectstatus

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// maxNamed is how many secrets a message names. More than that have one cause, and the Secret itself shows it.
const maxNamed = 10

// problemTexts describe what is wrong with a secret.
var problemTexts = map[settings.Reason]string{
	settings.ReasonMissing:        "is missing",
	settings.ReasonNotMounted:     "is not mounted into this pod yet",
	settings.ReasonUnreadable:     "cannot be read",
	settings.ReasonEmpty:          "is empty",
	settings.ReasonPlaceholder:    "is a placeholder of the samples: put the real value in its place",
	settings.ReasonTooShort:       "is too short, an API key has 32 characters or more",
	settings.ReasonTooLong:        "is too long",
	settings.ReasonInvalid:        "is not in the form of such a secret, perhaps for a space or line break inside",
	settings.ReasonRepeated:       "is the same API key as another one",
	settings.ReasonNoCertificate:  "holds no certificate in PEM form",
	settings.ReasonMixedSimulator: "is for the simulator and the account's other one is not, or the other way round",
	settings.ReasonNotAppSecret: "is not in the form of an app secret, 32 digits of 0-9 and a-f in lower case, not all alike: " +
		"the App Dashboard of Meta shows it under App settings, Basic",
	settings.ReasonSignsLive: "signs real events, too, so the receiver of test events could forge them: " +
		"phoneproof keygen --webhook makes another one",
	settings.ReasonKnownToOthers: "is also an API key, a signing secret or a webhook secret of this project, so others know it: give each its own value",
	settings.ReasonNotBase64:     "is not base64 after whsec_: phoneproof keygen --webhook makes one that is",
	settings.ReasonWebhookSecretTooShort: "is too short, a webhook secret has 24 bytes or more (after whsec_ as base64): " +
		"phoneproof keygen --webhook makes one",
}

// secretsReady judges the secrets. Missing ones come first, because they explain most other problems; those that wait for a
// rollout are not known to be wrong at all.
func secretsReady(problems []settings.Problem) metav1.Condition {
	if len(problems) == 0 {
		return conditionTrue(verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretsRead, "every referenced Secret and key can be used")
	}
	found := map[settings.Reason]bool{}
	for _, p := range problems {
		found[p.Reason] = true
	}
	condition := conditionFalse(verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretInvalid, describeProblems(problems))
	switch {
	case found[settings.ReasonMissing]:
		condition.Reason = verifyv1.ReasonSecretMissing
	case len(found) == 1 && found[settings.ReasonNotMounted]:
		condition.Status, condition.Reason = metav1.ConditionUnknown, verifyv1.ReasonAwaitingRollout
	}
	return condition
}

// describeProblems lists secrets in the order of the settings.
func describeProblems(problems []settings.Problem) string {
	var texts []string
	for _, p := range problems[:min(len(problems), maxNamed)] {
		texts = append(texts, DescribeProblem(p))
	}
	if more := len(problems) - maxNamed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// DescribeProblem returns the text of a problem for the project's owner. It names field, Secret and key, and never a value.
func DescribeProblem(p settings.Problem) string {
	return fmt.Sprintf("%s: Secret %s, key %s %s", p.Field, p.Secret, p.Key, problemTexts[p.Reason])
}
