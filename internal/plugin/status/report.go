package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin"
)

// Reports are several projects.
type Reports struct {
	Items []Report `json:"items"`
}

// Report is what the command prints about a project.
type Report struct {
	Namespace  string    `json:"namespace"`
	Name       string    `json:"name"`
	CreatedAt  time.Time `json:"createdAt"`
	Ready      string    `json:"ready"`
	Reason     string    `json:"reason,omitempty"`
	Message    string    `json:"message,omitempty"`
	Suspended  bool      `json:"suspended,omitempty"`
	ObservedAt int64     `json:"observedGeneration"`
	Generation int64     `json:"generation"`
	Storage    string    `json:"storage"`
	BaseURL    string    `json:"baseURL,omitempty"`
	// Callbacks are what is registered with the messengers.
	WhatsAppCallback string           `json:"whatsAppCallbackURL,omitempty"`
	TelegramCallback string           `json:"telegramCallbackURL,omitempty"`
	WebhookHost      string           `json:"webhookHost,omitempty"`
	Service          string           `json:"service"`
	Keys             []Key            `json:"keys"`
	Replicas         *Replicas        `json:"replicas,omitempty"`
	LeaseHolder      string           `json:"leaseHolder,omitempty"`
	LeaseRenewedAt   time.Time        `json:"leaseRenewedAt,omitzero"`
	StoredRequests   map[string]int64 `json:"storedRequests,omitempty"`
	Problems         []Problem        `json:"problems"`
	Conditions       []Condition      `json:"conditions"`
	// Unknown are what could not be found out, and why.
	Unknown []string `json:"unknown,omitempty"`
}

// Key is an API key, without its value.
type Key struct {
	Name      string           `json:"name"`
	Scopes    []verifyv1.Scope `json:"scopes"`
	ExpiresAt time.Time        `json:"expiresAt,omitzero"`
	Secret    string           `json:"secret"`
	SecretKey string           `json:"secretKey"`
}

// Replicas count the pods.
type Replicas struct {
	Wanted  int32 `json:"wanted"`
	Ready   int32 `json:"ready"`
	Updated int32 `json:"updated"`
}

// Problem is a condition that someone should look at.
type Problem struct {
	Condition string `json:"condition"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
	// Fatal means that the project does not work as declared.
	Fatal bool `json:"fatal"`
	// See is where to read on.
	See string `json:"see"`
}

// Condition is a condition of the project.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

// polarity says which status of a condition is good, and whether any other one keeps the project from being Ready.
type polarity struct {
	good  metav1.ConditionStatus
	fatal bool
}

// polarities are those of the known conditions.
var polarities = map[string]polarity{
	verifyv1.ConditionReady:            {metav1.ConditionTrue, true},
	verifyv1.ConditionAvailable:        {metav1.ConditionTrue, true},
	verifyv1.ConditionSecretsReady:     {metav1.ConditionTrue, true},
	verifyv1.ConditionStorageReady:     {metav1.ConditionTrue, true},
	verifyv1.ConditionWhatsAppReady:    {metav1.ConditionTrue, true},
	verifyv1.ConditionTelegramReady:    {metav1.ConditionTrue, true},
	verifyv1.ConditionWebhookHealthy:   {metav1.ConditionTrue, false},
	verifyv1.ConditionReconciling:      {metav1.ConditionFalse, false},
	verifyv1.ConditionStalled:          {metav1.ConditionFalse, true},
	verifyv1.ConditionSilent:           {metav1.ConditionFalse, false},
	verifyv1.ConditionSimulated:        {metav1.ConditionFalse, false},
	verifyv1.ConditionShared:           {metav1.ConditionFalse, false},
	verifyv1.ConditionLimitsContradict: {metav1.ConditionFalse, false},
	verifyv1.ConditionTestEventsOff:    {metav1.ConditionFalse, false},
	verifyv1.ConditionCodesReady:       {metav1.ConditionTrue, false},
	verifyv1.ConditionCodesLimited:     {metav1.ConditionFalse, false},
	verifyv1.ConditionGatewayReady:     {metav1.ConditionTrue, false},
}

// describeProject returns what the object itself says.
func describeProject(p *verifyv1.VerificationProject, docs plugin.Docs) Report {
	r := Report{
		Namespace: p.Namespace, Name: p.Name, CreatedAt: p.CreationTimestamp.UTC(), Suspended: p.Suspended(),
		ObservedAt: p.Status.ObservedGeneration, Generation: p.Generation, Storage: string(p.Spec.Storage.Type), BaseURL: p.Spec.BaseURL,
		Service: serviceAddress(p), Keys: describeKeys(p), Problems: []Problem{}, Conditions: []Condition{},
		Ready: string(metav1.ConditionUnknown),
	}
	if p.Spec.Webhook != nil {
		r.WebhookHost = hostOf(p.Spec.Webhook.URL)
	}
	if w := p.Status.WhatsApp; w != nil {
		r.WhatsAppCallback = w.CallbackURL
	}
	if t := p.Status.Telegram; t != nil {
		r.TelegramCallback = t.CallbackURL
	}
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		r.Conditions = append(r.Conditions, Condition{
			Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.UTC(),
		})
	}
	if ready := meta.FindStatusCondition(p.Status.Conditions, verifyv1.ConditionReady); ready != nil {
		r.Ready, r.Reason, r.Message = string(ready.Status), ready.Reason, ready.Message
	}
	r.Problems = append(r.Problems, findProblems(p, docs)...)
	return r
}

// findProblems returns the conditions that are not good, in the order of the object. Ready repeats another one, so it comes only if it is
// the only one.
func findProblems(p *verifyv1.VerificationProject, docs plugin.Docs) []Problem {
	var found, ready []Problem
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		known, isKnown := polarities[c.Type]
		if !isKnown || c.Status == known.good {
			continue
		}
		problem := Problem{
			Condition: c.Type, Reason: c.Reason, Message: c.Message, Fatal: known.fatal && c.Status != metav1.ConditionUnknown,
			See: docs.Link("conditions", c.Reason),
		}
		if c.Type == verifyv1.ConditionReady {
			ready = append(ready, problem)
		} else {
			found = append(found, problem)
		}
	}
	if len(found) == 0 {
		found = ready
	}
	if p.Status.ObservedGeneration < p.Generation {
		found = append(found, Problem{
			Condition: verifyv1.ConditionReady, Reason: "NotObserved", See: docs.Link("conditions", verifyv1.ConditionReconciling),
			Message: fmt.Sprintf("the operator acted on generation %d last, and the project is at %d: wait, or see whether the operator runs",
				p.Status.ObservedGeneration, p.Generation),
		})
	}
	return found
}

func describeKeys(p *verifyv1.VerificationProject) []Key {
	keys := make([]Key, 0, len(p.Spec.APIKeys))
	for i := range p.Spec.APIKeys {
		k := &p.Spec.APIKeys[i]
		key := Key{Name: k.Name, Scopes: k.EffectiveScopes(), Secret: k.Secret().Name, SecretKey: k.Secret().Key}
		if k.ExpiresAt != nil {
			key.ExpiresAt = k.ExpiresAt.UTC()
		}
		keys = append(keys, key)
	}
	return keys
}
