package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VerificationProjectStatus reports what is true of the running API. The
// operator and serve each apply their own conditions by server-side apply.
type VerificationProjectStatus struct {
	// conditions say what works and what does not: Ready, Reconciling, Stalled,
	// Available, SecretsReady, StorageReady, WhatsAppReady, TelegramReady,
	// WebhookHealthy, Silent, Simulated, Shared, LimitsContradict, TestEventsOff,
	// CodesReady, CodesLimited. "kubectl wait --for=condition=Ready" works.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z'))",message="conditions must have a lastTransitionTime in RFC 3339, for example 2027-01-31T00:00:00Z"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the metadata.generation that the operator acted on
	// last; -1 before the first time. While it is lower than
	// metadata.generation, Ready speaks of an older spec.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// claims say since when each messenger account has stood in the spec. Among
	// the projects of a namespace that name the same account, the one with the
	// oldest claim keeps it. Written by the operator.
	// +optional
	// +listType=map
	// +listMapKey=account
	// +kubebuilder:validation:MaxItems=8
	Claims []AccountClaim `json:"claims,omitempty"`

	// whatsapp reports what is registered with Meta for the number.
	// +optional
	WhatsApp *ChannelStatus `json:"whatsapp,omitempty"`

	// telegram reports what is registered with Telegram for the bot.
	// +optional
	Telegram *ChannelStatus `json:"telegram,omitempty"`

	// observedRedeliver is the last value of the annotation
	// phoneproof.dev/redeliver that was carried out or refused. A malformed one
	// stands here as the word malformed with a hash.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ObservedRedeliver string `json:"observedRedeliver,omitempty"`
}

// AccountClaim says since when a messenger account has stood in a spec.
type AccountClaim struct {
	// account is whatsapp: and the phoneNumberID, or telegram: and the bot's
	// username in lower case.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Account string `json:"account"`

	// since is when the operator first saw the account in the spec, or, where an
	// operator that kept no claims had acted on the project, when it was created.
	// RFC 3339 with exactly six digits of a second.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Since metav1.MicroTime `json:"since"`
}

// ChannelStatus reports one messenger.
type ChannelStatus struct {
	// callbackURL is the callback that PhoneProof registered last. A callback
	// found at the messenger that equals it is ours and may be replaced, even
	// after baseURL changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	CallbackURL string `json:"callbackURL,omitempty"`
}
