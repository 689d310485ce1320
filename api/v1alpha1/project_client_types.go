package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Scope is what an API key may do.
// +kubebuilder:validation:Enum=Init;Status;Read;Redeliver;Deliver
type Scope string

const (
	// ScopeInit allows starting, confirming and canceling verifications.
	ScopeInit Scope = "Init"
	// ScopeStatus allows asking for the status of verifications.
	ScopeStatus Scope = "Status"
	// ScopeRead allows listing all verifications of the project, with the phone
	// numbers and the attempts to deliver their events.
	ScopeRead Scope = "Read"
	// ScopeRedeliver allows sending the event of a verification once more.
	ScopeRedeliver Scope = "Redeliver"
	// ScopeDeliver allows having codes sent to phone numbers, which costs money.
	ScopeDeliver Scope = "Deliver"
)

// KeyMode is what the requests of an API key are.
// +kubebuilder:validation:Enum=Live;Test
type KeyMode string

const (
	// KeyModeLive is for verifications of real numbers.
	KeyModeLive KeyMode = "Live"
	// KeyModeTest is for tests of clients: it takes only test numbers.
	KeyModeTest KeyMode = "Test"
)

// APIKey is one caller of the API.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.signingSecretRef)",message="set secretRef for an API key, or signingSecretRef for an identity server that signs, and not both",fieldPath=".secretRef"
// +kubebuilder:validation:XValidation:rule="!has(self.signingSecretRef) || has(self.scopes) && self.scopes == ['Deliver']",message="signingSecretRef needs scopes: [Deliver]: a signature is accepted for deliveries alone",fieldPath=".scopes"
type APIKey struct {
	// name of this key, unique within the project; it appears in logs, metrics
	// and stored requests in the key's place. Lower-case letters, digits and
	// '-', at most 63. Example: shop-backend. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,message="name must consist of lower-case letters, digits and '-', and begin and end with a letter or digit"
	Name string `json:"name"`

	// secretRef names the Secret key that holds the API key itself, 32
	// characters or longer ("phoneproof keygen" makes one). Required, unless
	// there is signingSecretRef.
	// +optional
	SecretRef SecretKeyRef `json:"secretRef,omitzero"`

	// signingSecretRef names the secret that an identity server signs its calls
	// of /api/verify/deliver?format= with, in place of an API key: the signing
	// key of ZITADEL's SMS provider, or Supabase's secret v1,whsec_ as it is
	// shown. 24 bytes or more, and no value that another secret of this project
	// has. Needs scopes: [Deliver]. Default: unset, the entry is an API key.
	// +optional
	SigningSecretRef *SecretKeyRef `json:"signingSecretRef,omitempty"`

	// codeLetters lets codes that are delivered with this key have letters
	// beside digits, as ZITADEL's do by default. Default: false.
	// +optional
	CodeLetters *bool `json:"codeLetters,omitempty"`

	// scopes is what this key may do: Init (start, confirm and cancel
	// verifications), Status (ask for one by its id), Read (list all, with their
	// phone numbers), Redeliver (send an event once more) and Deliver (have codes
	// sent to numbers, which costs money).
	// Default: Init and Status.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	Scopes []Scope `json:"scopes,omitempty"`

	// mode is Live for verifications of real numbers, and Test for tests of
	// clients: a test key takes only the numbers of docs/testing.md, each with an
	// outcome of its own, meets no messenger, and sees no request of other keys;
	// its events go to webhook.testURL. Default: Live.
	// +optional
	Mode KeyMode `json:"mode,omitempty"`

	// expiresAt is the time from which this key is refused, in RFC 3339. A time
	// in the past is allowed, so that an expired key can stay in the YAML.
	// Default: unset, the key does not expire. Example: 2027-01-31T00:00:00Z.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=35
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// Event is a kind of event.
// +kubebuilder:validation:Enum=verification.success;verification.expired;verification.declined;verification.attention
type Event string

const (
	// EventSuccess reports that a number was verified.
	EventSuccess Event = "verification.success"
	// EventExpired reports that a request's time ran out.
	EventExpired Event = "verification.expired"
	// EventDeclined reports that the owner of the number declined.
	EventDeclined Event = "verification.declined"
	// EventAttention reports what a pending request waits for.
	EventAttention Event = "verification.attention"
)

// Webhook is the client's receiver of events.
//
// +kubebuilder:validation:XValidation:rule="!has(self.previousSecretRef) || has(self.secretRef)",message="previousSecretRef needs secretRef, the secret that replaces it; set secretRef too",fieldPath=".previousSecretRef"
// +kubebuilder:validation:XValidation:rule="!has(self.testURL) || self.testURL != self.url",message="testURL is url, which receives real events; remove testURL or name another receiver",fieldPath=".testURL"
type Webhook struct {
	// url receives an HTTP POST for every verified number. http or https with a
	// host, without user info or fragment. Addresses inside private networks
	// are refused unless the cluster's administrator allows them, and plain http
	// is for those only. Example: https://shop.example.com/hooks/phone. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?)*)(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?(/([-A-Za-z0-9._~!$&()*+,;=:@/]|%[2-9A-Fa-f][0-9A-Fa-f])*)?(\?([-A-Za-z0-9._~!$&()*+,;=:@/?]|%[2-9A-Fa-f][0-9A-Fa-f])*)?$')`,message="url must be an http:// or https:// URL with a host (international names in punycode), without user info, fragment, spaces or control characters, for example https://shop.example.com/hooks/phone"
	URL string `json:"url"`

	// testURL receives the events of test keys, named test.verification.*, and
	// nothing else. It cannot be url. The rules, the timeout and the authorities
	// are those of url; testSecretRef is the secret, and without it no event is
	// sent. Default: unset, test keys have no events. Example:
	// https://staging.example.com/hooks/phone.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?)*)(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?(/([-A-Za-z0-9._~!$&()*+,;=:@/]|%[2-9A-Fa-f][0-9A-Fa-f])*)?(\?([-A-Za-z0-9._~!$&()*+,;=:@/?]|%[2-9A-Fa-f][0-9A-Fa-f])*)?$')`,message="testURL must be an http:// or https:// URL with a host (international names in punycode), without user info, fragment, spaces or control characters, for example https://staging.example.com/hooks/phone"
	TestURL string `json:"testURL,omitempty"`

	// testSecretRef names the secret that signs the events of test keys, and
	// nothing else, in the form of secretRef's. A value that signs real events is
	// refused. While it cannot be used, events of test keys wait.
	// Default: unset, no event of a test key is sent.
	// +optional
	TestSecretRef *SecretKeyRef `json:"testSecretRef,omitempty"`

	// secretRef names the secret that signs every real event (x-webhook-signature
	// and webhook-signature): 24 bytes or more, or whsec_ and the base64 of as
	// many ("phoneproof keygen --webhook" makes one). While it is set but cannot
	// be used, events wait; they are never sent unsigned. If a good value is
	// replaced by one of another form, pods that have read the good one sign
	// with it for ten more minutes.
	// Default: unset, events are not signed.
	// +optional
	SecretRef *SecretKeyRef `json:"secretRef,omitempty"`

	// previousSecretRef names the secret that secretRef replaced. While it is
	// set, webhook-signature carries a second signature made with it, so that
	// receivers can move over in their own time. Needs secretRef.
	// Default: unset.
	// +optional
	PreviousSecretRef *SecretKeyRef `json:"previousSecretRef,omitempty"`

	// events are what is sent: verification.success, verification.expired,
	// verification.declined (the owner of the number answered "Not me") and
	// verification.attention (a pending request waits for its user, or a message
	// did not verify it; hint is why). Of one request the latest event is sent:
	// what happens later replaces an event that was not delivered yet.
	// Default: [verification.success].
	// +optional
	// +listType=set
	// +kubebuilder:default={"verification.success"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Events []Event `json:"events,omitempty"`

	// timeout is how long one attempt may take, from dialling to the end of the
	// answer. 1s to 30s. Default: 15s.
	// +optional
	// +kubebuilder:default="15s"
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}h)?([0-9]{1,6}m)?([0-9]{1,7}s)?$') && duration(self) >= duration('1s') && duration(self) <= duration('30s')`,message="timeout must be a duration between 1s and 30s, for example 15s"
	Timeout Duration `json:"timeout,omitempty"`

	// caBundle is one or more PEM certificates of authorities that are trusted
	// for url, in place of the public ones: PEM itself, not its base64 as in
	// a Secret. At most 65536 characters. Default: unset, the public
	// authorities. Example: what kubectl get secret NAME -o
	// jsonpath='{.data.ca\.crt}' | base64 --decode prints for a cert-manager
	// Certificate.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule=`self.contains('-----BEGIN CERTIFICATE-----') && self.contains('-----END CERTIFICATE-----') && self.matches(r'^[\t\n\r -~]*$')`,message="caBundle must hold certificates in PEM form, from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----; what begins with LS0t is the base64 of that: base64 --decode <FILE"
	CABundle string `json:"caBundle,omitempty"`
}
