package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VerificationProject is a running phone verification API: who may call it
// (apiKeys), which messengers verify a number (whatsapp, telegram), which
// receiver is notified (webhook), where requests are kept (storage) and how it runs (server, expose).
//
// The smallest useful project has one API key and one messenger.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=verificationprojects,singular=verificationproject,shortName=vproj,categories=phoneproof
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the verification API works as declared."
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is ready, or not."
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.baseURL`,description="The address that clients and messengers use."
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Whether at least one pod answers."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=`.spec.storage.type`,priority=1,description="Where requests are kept."
// +kubebuilder:printcolumn:name="Webhook",type=string,JSONPath=`.status.conditions[?(@.type=="WebhookHealthy")].reason`,priority=1,description="Whether the webhook's receiver takes events, or why not; empty without a webhook."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="What to do if it is not ready."
type VerificationProject struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata. Any name that Kubernetes
	// allows will do; names of child objects are shortened where they must be.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec declares the verification API. Required.
	// +required
	Spec VerificationProjectSpec `json:"spec"`

	// status reports what is true of the running API. Written by PhoneProof only.
	// Until the operator has seen the project, it is {observedGeneration: -1}.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status VerificationProjectStatus `json:"status,omitzero"`
}

// VerificationProjectSpec declares one verification API.
//
// +kubebuilder:validation:XValidation:rule="has(self.whatsapp) || has(self.telegram)",message="whatsapp or telegram must be set, or both: without a messenger no number can be verified"
// +kubebuilder:validation:XValidation:rule="has(self.projectID) == has(oldSelf.projectID) && (!has(self.projectID) || self.projectID == oldSelf.projectID)",message="projectID is immutable, whether set or unset: receivers of webhooks know the project by it; create a new VerificationProject instead",fieldPath=".projectID"
// +kubebuilder:validation:XValidation:rule="!has(self.telegram) || !has(self.telegram.updates) || self.telegram.updates != 'Webhook' || (has(self.baseURL) && self.baseURL.startsWith('https://'))",message="telegram.updates: Webhook needs a baseURL that begins with https://; set baseURL, or use Polling",fieldPath=".telegram.updates"
// +kubebuilder:validation:XValidation:rule="!has(self.whatsapp) || !has(self.whatsapp.registerWebhook) || !self.whatsapp.registerWebhook || (has(self.baseURL) && self.baseURL.startsWith('https://'))",message="whatsapp.registerWebhook needs a baseURL that begins with https://; set baseURL, or set registerWebhook to false and register the callback by hand",fieldPath=".whatsapp.registerWebhook"
// +kubebuilder:validation:XValidation:rule="!has(self.replies) || !has(self.replies.send) || self.replies.send != 'Never' || !has(self.whatsapp) || (has(self.whatsapp.acceptAnyText) && self.whatsapp.acceptAnyText && (!has(self.whatsapp.hiddenNumbers) || self.whatsapp.hiddenNumbers == 'Refuse'))",message="replies.send: Never needs whatsapp.acceptAnyText: true and whatsapp.hiddenNumbers: Refuse: otherwise WhatsApp users are asked by messages; set them so, or use OnTrouble",fieldPath=".replies.send"
// +kubebuilder:validation:XValidation:rule="!has(self.whatsapp) || !has(self.whatsapp.silentAfter) || duration(self.whatsapp.silentAfter) <= duration(self.request.ttl) + (has(self.request.retention) ? duration(self.request.retention) : duration(self.storage.type == 'PostgreSQL' ? '24h' : '1h'))",message="whatsapp.silentAfter must not be longer than request.retention (unset: 1h with Kubernetes, 24h with PostgreSQL) and request.ttl together: deleted requests show no silence; shorten it, or raise request.retention",fieldPath=".whatsapp.silentAfter"
// +kubebuilder:validation:XValidation:rule=`!has(self.page) || (has(self.baseURL) && self.baseURL.matches(r'^(https://|http://(localhost|127\.0\.0\.1|\[::1\])([:/]|$))'))`,message="page needs a baseURL that begins with https://, or with http:// and the name of this machine: pageURL is below it",fieldPath=".page"
// +kubebuilder:validation:XValidation:rule="!has(self.assurance) || !has(self.assurance.level) || self.assurance.level != 'Session' || !has(self.replies) || !has(self.replies.send) || self.replies.send != 'Never'",message="assurance.level: Session needs replies: they bring the session code; set replies.send to Always or OnTrouble",fieldPath=".replies.send"
// +kubebuilder:validation:XValidation:rule="!has(self.assurance) || (has(self.request.retention) ? duration(self.request.retention) : duration(self.storage.type == 'PostgreSQL' ? '24h' : '1h')) >= duration(has(self.assurance.declineCooldown) ? self.assurance.declineCooldown : '1h')",message="assurance.declineCooldown must not be longer than request.retention (unset: 1h with Kubernetes, 24h with PostgreSQL): deleted requests show no answer; raise request.retention or shorten declineCooldown",fieldPath=".assurance.declineCooldown"
// +kubebuilder:validation:XValidation:rule="!has(self.page) || !has(self.page.methods) || self.page.methods.all(m, m == 'WhatsApp' ? has(self.whatsapp) : has(self.telegram))",message="page.methods must name messengers that the project has; set whatsapp or telegram, or leave the other one out",fieldPath=".page.methods"
// +kubebuilder:validation:XValidation:rule="!has(self.expose) || !has(self.expose.ingress) || has(self.expose.ingress.host) || has(self.baseURL)",message="expose.ingress needs a host: set expose.ingress.host, or set baseURL, whose host is then used",fieldPath=".expose.ingress"
// +kubebuilder:validation:XValidation:rule="!has(self.request.retention) || self.storage.type != 'Kubernetes' || duration(self.request.retention) <= duration('168h')",message="request.retention must be at most 168h (7 days) with storage.type Kubernetes; shorten it, or use PostgreSQL",fieldPath=".request.retention"
// +kubebuilder:validation:XValidation:rule="!has(self.rateLimit.perKey) || (has(self.request.retention) ? duration(self.request.retention) : duration(self.storage.type == 'PostgreSQL' ? '24h' : '1h')) >= duration(self.rateLimit.perKey.period)",message="rateLimit.perKey.period must not be longer than request.retention (unset: 1h with Kubernetes, 24h with PostgreSQL): deleted requests cannot be counted; raise request.retention or shorten the period",fieldPath=".rateLimit.perKey.period"
// +kubebuilder:validation:XValidation:rule="(has(self.request.retention) ? duration(self.request.retention) : duration(self.storage.type == 'PostgreSQL' ? '24h' : '1h')) >= duration(self.rateLimit.perPhoneNumber.period)",message="rateLimit.perPhoneNumber.period must not be longer than request.retention (unset: 1h with Kubernetes, 24h with PostgreSQL): deleted requests cannot be counted; raise request.retention or shorten the period",fieldPath=".rateLimit.perPhoneNumber.period"
// +kubebuilder:validation:XValidation:rule="!has(self.rateLimit.perPrefix) || (has(self.request.retention) ? duration(self.request.retention) : duration(self.storage.type == 'PostgreSQL' ? '24h' : '1h')) >= duration(self.rateLimit.perPrefix.period)",message="rateLimit.perPrefix.period must not be longer than request.retention (unset: 1h with Kubernetes, 24h with PostgreSQL): deleted requests cannot be counted; raise request.retention or shorten the period",fieldPath=".rateLimit.perPrefix.period"
// +kubebuilder:validation:XValidation:rule="!has(self.rateLimit.perSubject) || (has(self.request.retention) ? duration(self.request.retention) : duration(self.storage.type == 'PostgreSQL' ? '24h' : '1h')) >= duration(self.rateLimit.perSubject.period)",message="rateLimit.perSubject.period must not be longer than request.retention (unset: 1h with Kubernetes, 24h with PostgreSQL): deleted requests cannot be counted; raise request.retention or shorten the period",fieldPath=".rateLimit.perSubject.period"
// +kubebuilder:validation:XValidation:rule="(!has(self.whatsapp) || !has(self.whatsapp.codes)) && (!has(self.telegram) || !has(self.telegram.codes)) || duration(self.request.ttl) <= duration('15m')",message="request.ttl must be at most 15m with whatsapp.codes or telegram.codes: an older code must not be of use to those who find it; shorten it",fieldPath=".request.ttl"
// +kubebuilder:validation:XValidation:rule="(!has(self.whatsapp) || !has(self.whatsapp.codes)) && (!has(self.telegram) || !has(self.telegram.codes)) || (has(self.rateLimit.perPrefix) && has(self.rateLimit.perSubject))",message="whatsapp.codes and telegram.codes need rateLimit.perPrefix and rateLimit.perSubject: each code costs money; set both, for example digits: 6, requests: 100, period: 10m and requests: 5, period: 1h",fieldPath=".rateLimit"
// +kubebuilder:validation:XValidation:rule="self.storage.type != 'Kubernetes' || ((has(self.whatsapp) && has(self.whatsapp.codes) ? self.whatsapp.codes.maxPerDay : 0) + (has(self.telegram) && has(self.telegram.codes) ? self.telegram.codes.maxPerDay : 0)) * 2 <= self.request.maxStored",message="request.maxStored must be at least twice the maxPerDay of whatsapp.codes and telegram.codes together with storage.type Kubernetes: these requests are kept for 24h; raise it, lower maxPerDay, or use PostgreSQL",fieldPath=".request.maxStored"
// +kubebuilder:validation:XValidation:rule="!has(self.whatsapp) || !has(self.whatsapp.codes) || self.apiKeys.filter(k, has(k.scopes) && 'Deliver' in k.scopes && (!has(k.mode) || k.mode != 'Test')).size() * 6 <= self.whatsapp.codes.maxPerDay",message="whatsapp.codes.maxPerDay must be at least six for each of the apiKeys with the scope Deliver, which share it and use a sixth of their share in an hour; raise it, or take the scope from a key",fieldPath=".whatsapp.codes.maxPerDay"
// +kubebuilder:validation:XValidation:rule="!has(self.telegram) || !has(self.telegram.codes) || self.apiKeys.filter(k, has(k.scopes) && 'Deliver' in k.scopes && (!has(k.mode) || k.mode != 'Test')).size() * 6 <= self.telegram.codes.maxPerDay",message="telegram.codes.maxPerDay must be at least six for each of the apiKeys with the scope Deliver, which share it and use a sixth of their share in an hour; raise it, or take the scope from a key",fieldPath=".telegram.codes.maxPerDay"
// +kubebuilder:validation:XValidation:rule="(!has(self.whatsapp) || !has(self.whatsapp.codes)) && (!has(self.telegram) || !has(self.telegram.codes)) || !has(self.replies) || !has(self.replies.send) || self.replies.send != 'Never'",message="whatsapp.codes and telegram.codes need replies: a user who sends the text instead gets the session code by them; set replies.send to Always or OnTrouble",fieldPath=".replies.send"
type VerificationProjectSpec struct {
	// projectID is the id by which webhooks (field projectId) name this project
	// to their receiver. It is a label for clients only and selects nothing.
	// Immutable, also from set to unset and back. Default: unset, and
	// NAMESPACE/NAME of this object is sent. Example: shop-production.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z0-9]([-A-Za-z0-9._:/]*[A-Za-z0-9])?$')`,message="projectID must consist of letters, digits, '-', '_', '.', ':' and '/', and begin and end with a letter or digit"
	ProjectID string `json:"projectID,omitempty"`

	// displayName is the name that end users read in the text they send and in
	// replies: "... to confirm my number for DISPLAYNAME". At most 64
	// characters, no control characters, no space at either end. Default: unset,
	// and the object's own name is shown. Example: Ada's Bookshop.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\p{C}\p{Z}]([^\p{Cc}\x{2028}\x{2029}\x{202A}-\x{202E}\x{2066}-\x{2069}]*[^\p{C}\p{Z}])?$')`,message="displayName must be one line of plain text, without control characters, text-direction overrides, or spaces at either end"
	DisplayName string `json:"displayName,omitempty"`

	// baseURL is the public address of this API: what clients call and where
	// messengers deliver. A path is a prefix of every route; a slash at the end
	// makes no difference. No user info, query or fragment. https is needed for
	// the messengers' webhooks. Default: unset, the API is reachable inside the
	// cluster only, Telegram is polled, and WhatsApp's callback must be
	// registered by hand. Example: https://verify.example.com.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^https?://(\[[0-9A-Fa-f:.]+\]|[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*)(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?$')`,message="baseURL must be an http:// or https:// URL with a lower-case host (international names in punycode), an optional port and plain path, and without user info, query or fragment, for example https://verify.example.com"
	BaseURL string `json:"baseURL,omitempty"`

	// suspend, while true, stops the API: no pod runs, requests stay stored and
	// due webhooks wait. Default: false.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// apiKeys lists who may call the API. To rotate a key add the new one under
	// another name, move the clients, then remove the old one; a removed key is
	// refused within a second. 1 to 32 entries, each name once. Required.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	APIKeys []APIKey `json:"apiKeys"`

	// webhook is the receiver that is notified of verified numbers.
	// Default: unset, and clients ask the status operation.
	// +optional
	Webhook *Webhook `json:"webhook,omitempty"`

	// whatsapp is the WhatsApp Business account that receives the users'
	// messages. At least one of whatsapp and telegram is required.
	// +optional
	WhatsApp *WhatsApp `json:"whatsapp,omitempty"`

	// telegram is the Telegram bot that receives the users' messages. At least
	// one of whatsapp and telegram is required.
	// +optional
	Telegram *Telegram `json:"telegram,omitempty"`

	// replies say which messages of end users are answered, and by which texts.
	// Default: unset, and all are answered by built-in texts, in the language of
	// the request.
	// +optional
	Replies *Replies `json:"replies,omitempty"`

	// texts are texts for end users by language, for requests that name a locale.
	// Built in are ar, de, en, es, fr, hi, id, it, pt, ru, tr and zh. At most 24.
	// Default: unset, the texts of replies, else the built-in ones.
	// +optional
	// +listType=map
	// +listMapKey=locale
	// +kubebuilder:validation:MaxItems=24
	Texts []Texts `json:"texts,omitempty"`

	// page offers a page of its own to each request: pageURL of init. It leads the
	// user through the messenger and back. Default: unset, no page.
	// +optional
	Page *Page `json:"page,omitempty"`

	// assurance says what it takes to verify a number. Default: unset, a message
	// from the number is enough, and a number whose owner answers "Not me" may be
	// asked again at once.
	// +optional
	Assurance *AssuranceSettings `json:"assurance,omitempty"`

	// purposes are what verifications of this project are for. A client names one
	// in the field purpose of init, and the user reads its title before the
	// session code. At most 16. Default: unset, none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Purposes []Purpose `json:"purposes,omitempty"`

	// request says how long a request may take and how long it is kept.
	// +optional
	// +kubebuilder:default={}
	Request RequestSettings `json:"request,omitzero"`

	// rateLimit bounds how many requests may be started.
	// +optional
	// +kubebuilder:default={}
	RateLimit RateLimit `json:"rateLimit,omitzero"`

	// storage says where requests are kept.
	// +optional
	// +kubebuilder:default={type: Kubernetes}
	Storage Storage `json:"storage,omitzero"`

	// server says how the pods of this API run.
	// +optional
	// +kubebuilder:default={}
	Server Server `json:"server,omitzero"`

	// expose says how the API is reached from outside its pods.
	// +optional
	// +kubebuilder:default={}
	Expose Expose `json:"expose,omitzero"`

	// networkPolicy, when present, even as {}, makes a NetworkPolicy that lets
	// only the named peers reach the pods. Default: unset, no NetworkPolicy.
	// +optional
	NetworkPolicy *NetworkPolicy `json:"networkPolicy,omitempty"`
}

// VerificationProjectList is a list of VerificationProjects.
// +kubebuilder:object:root=true
type VerificationProjectList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VerificationProject `json:"items"`
}
