package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VerificationRequest is one verification of one phone number. serve makes one
// for every init call while its project's storage is Kubernetes. One made with
// kubectl (projectRef, phoneNumber, method) is completed by serve, which puts
// the text and the link into its status.
//
// A subject that may write these objects can verify any number.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=verificationrequests,singular=verificationrequest,shortName=vreq,categories=phoneproof
// +kubebuilder:selectablefield:JSONPath=`.spec.projectRef.name`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.projectRef.name`,description="The project that this request belongs to."
// +kubebuilder:printcolumn:name="Method",type=string,JSONPath=`.spec.method`,description="The messenger that the user sends the text with; TestWhatsApp or TestTelegram for a request of a test key."
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Pending, Verified or Expired."
// +kubebuilder:printcolumn:name="Delivered",type=string,JSONPath=`.status.conditions[?(@.type=="WebhookDelivered")].status`,description="Whether the receiver took the event."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Attempts",type=integer,JSONPath=`.status.delivery.attempts`,priority=1,description="How often the event was sent."
// +kubebuilder:printcolumn:name="Next attempt",type=string,JSONPath=`.status.delivery.nextAttemptAt`,priority=1,description="When the event is sent next."
// +kubebuilder:printcolumn:name="Code",type=string,JSONPath=`.status.codeDelivery.state`,priority=1,description="Whether a code was sent to the number: Sent or NotSent."
type VerificationRequest struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata. The name is the requestId of
	// a request that was made by the API.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is to be verified. It is immutable: make another request
	// instead. Required.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable; create another VerificationRequest instead"
	Spec VerificationRequestSpec `json:"spec"`

	// status says how far it is. Written by PhoneProof only. Until a server has
	// written it, it is {observedGeneration: -1, phase: Pending}.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status VerificationRequestStatus `json:"status,omitzero"`
}

// Method is the messenger that a request is verified with.
type Method string

const (
	// MethodWhatsApp is WHATSAPP in the HTTP API.
	MethodWhatsApp Method = "WhatsApp"
	// MethodTelegram is TELEGRAM in the HTTP API.
	MethodTelegram Method = "Telegram"
	// MethodTestWhatsApp is WHATSAPP of a test key: no message verifies it.
	MethodTestWhatsApp Method = "TestWhatsApp"
	// MethodTestTelegram is TELEGRAM of a test key.
	MethodTestTelegram Method = "TestTelegram"
)

// VerificationRequestSpec says what is to be verified. It never changes.
//
// It is written as a whole, by one writer: atomic keeps managedFields, and with
// them each object, small.
// +structType=atomic
//
// +kubebuilder:validation:XValidation:rule="has(self.init) || !self.method.startsWith('Test')",message="method must be WhatsApp or Telegram in a manual request: the others are for requests that a test key made by the API",fieldPath=".method"
type VerificationRequestSpec struct {
	// projectRef names the VerificationProject, in this namespace, that the
	// request belongs to. Required.
	// +required
	ProjectRef ProjectRef `json:"projectRef"`

	// phoneNumber is the number to verify, in E.164. Example: +15550100199.
	// Required.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\+[1-9][0-9]{6,14}$')`,message="phoneNumber must be in E.164: '+', country code and number, digits only, for example +15550100199"
	PhoneNumber string `json:"phoneNumber"`

	// method is the messenger that the user sends the text with: WhatsApp or
	// Telegram. The project must have it. TestWhatsApp and TestTelegram are
	// those of a test key, whose requests no message verifies. Default: WhatsApp.
	// +optional
	// +kubebuilder:default=WhatsApp
	// +kubebuilder:validation:Enum=WhatsApp;Telegram;TestWhatsApp;TestTelegram
	Method Method `json:"method,omitempty"`

	// reference is the client's own name for the request: status and events
	// return it. 1 to 128 characters, without control characters. Default: unset.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\p{Cc}\x{2028}\x{2029}\x{202A}-\x{202E}\x{2066}-\x{2069}]*$')`,message="reference must be one line of plain text, without control characters or text-direction overrides"
	Reference string `json:"reference,omitempty"`

	// metadata are the client's own pairs: status and events return them. At most
	// 16; keys of 1 to 64 letters, digits, '_', '.' and '-', values without
	// control characters, and at most 1024 bytes in all. Default: unset.
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule=`self.all(k, size(k) <= 64 && k.matches(r'^[A-Za-z0-9_.-]+$'))`,message="metadata must have keys of 1 to 64 letters, digits, '_', '.' and '-'"
	// +kubebuilder:validation:XValidation:rule=`self.all(k, self[k].matches(r'^\P{Cc}*$'))`,message="metadata must have values without control characters"
	// +kubebuilder:validation:XValidation:rule=`self.map(k, size(bytes(k)) + size(bytes(self[k]))).sum() <= 1024`,message="metadata must have at most 1024 bytes in all keys and values"
	Metadata map[string]MetadataValue `json:"metadata,omitempty"`

	// locale is the language of the texts for the user, a BCP 47 tag. A language
	// that neither PhoneProof nor spec.texts of the project has is the same as
	// none. At most 35 characters. Default: unset, the project's own texts.
	// Example: es.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=35
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$')`,message="locale must be a BCP 47 language tag, for example es or pt-BR"
	Locale string `json:"locale,omitempty"`

	// init is set by serve on requests that the API made. Leave it out of
	// manual requests: serve then writes status.init.
	// +optional
	Init *Init `json:"init,omitempty"`
}

// Deliver is what is sent to the number of a request.
// +kubebuilder:validation:Enum=Code;Given
type Deliver string

const (
	// DeliverCode is CODE in the HTTP API.
	DeliverCode Deliver = "Code"
	// DeliverGiven is for the client's own code: the request is a delivery.
	DeliverGiven Deliver = "Given"
)

// MetadataValue is a value of metadata.
// +kubebuilder:validation:MaxLength=1024
type MetadataValue string

// ProjectRef names a VerificationProject in the object's own namespace.
type ProjectRef struct {
	// name of the VerificationProject. Example: shop. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message="name must be the name of a VerificationProject: lower-case letters, digits, '-' and '.'"
	Name string `json:"name"`
}

// Init is what was decided when the request was accepted. Times have
// microseconds, because a message's time is compared with them.
//
// +kubebuilder:validation:XValidation:rule="self.expiresAt > self.createdAt",message="expiresAt must be later than createdAt",fieldPath=".expiresAt"
type Init struct {
	// createdAt is when the request was accepted, RFC 3339 with exactly six
	// digits of a second. Example: 2027-01-31T09:30:00.000000Z. Required.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	CreatedAt metav1.MicroTime `json:"createdAt"`

	// expiresAt is when the request expires, RFC 3339 with exactly six digits
	// of a second. Example: 2027-01-31T09:40:00.000000Z. Required.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ExpiresAt metav1.MicroTime `json:"expiresAt"`

	// keyName is the name of the API key that made the request; the request
	// counts against that key's limit. Default: unset, a manual request.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,message="keyName must be the name of an API key: lower-case letters, digits and '-'"
	KeyName string `json:"keyName,omitempty"`

	// bodyHash is the beginning of the lower-case hex SHA-256 of the body, which
	// a repeated Idempotency-Key must come with, or, with deliver Given, of an
	// HMAC-SHA256 under the caller's secret. Default: unset, the request had no
	// Idempotency-Key.
	// +optional
	// +kubebuilder:validation:MinLength=32
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[0-9a-f]{32,64}$')`,message="bodyHash must be 32 to 64 lower-case hexadecimal digits of a SHA-256"
	BodyHash string `json:"bodyHash,omitempty"`

	// displayName is the name of the project in the text that was prepared for
	// the user, who may send it after the project's name was changed.
	// 1 to 253 characters. Default: unset, the project's present one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\p{C}\p{Z}]([^\p{Cc}\x{2028}\x{2029}\x{202A}-\x{202E}\x{2066}-\x{2069}]*[^\p{C}\p{Z}])?$')`,message="displayName must be one line of plain text, without control characters, text-direction overrides, or spaces at either end"
	DisplayName string `json:"displayName,omitempty"`

	// subjectHash is a keyed hash of the subject that the client named, for
	// rateLimit.perSubject. Default: unset, the project has no such limit or the
	// request is a manual one.
	// +optional
	// +kubebuilder:validation:MinLength=24
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[0-9a-f]{24}$')`,message="subjectHash must be 24 lower-case hexadecimal digits"
	SubjectHash string `json:"subjectHash,omitempty"`

	// otherMethods are the messengers that the page offers beside spec.method: a
	// message through one of them verifies the number, too. Default: unset, none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=WhatsApp;Telegram
	OtherMethods []Method `json:"otherMethods,omitempty"`

	// returnURL is where the page leads back to. At most 2048 characters.
	// Default: unset, nowhere.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^https?://[^\s\p{C}]+$')`,message="returnURL must be an https URL, or an http one of this machine"
	ReturnURL string `json:"returnURL,omitempty"`

	// assurance is Session where a client must confirm the request with a session
	// code after the number was proven. Default: unset, a message from the number
	// is enough.
	// +optional
	// +kubebuilder:validation:Enum=Session
	Assurance AssuranceLevel `json:"assurance,omitempty"`

	// purpose is the name of the purpose, of spec.purposes of the project, that
	// the user reads. Default: unset, none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,message="purpose must be the name of a purpose: lower-case letters, digits and '-'"
	Purpose string `json:"purpose,omitempty"`

	// browser is what the user began in, in fixed words that the user reads:
	// BROWSER/SYSTEM. Default: unset, not known. Example: CHROME/WINDOWS.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Z]+/[A-Z]+$')`,message="browser must be two words in capitals, for example CHROME/WINDOWS"
	Browser string `json:"browser,omitempty"`

	// deliver is Code where a code is sent to the number through WhatsApp, and
	// Given where that is the client's own, which no request holds: nothing
	// verifies such a request, and it counts as Expired from its start.
	// Default: unset, nothing is sent.
	// +optional
	Deliver Deliver `json:"deliver,omitempty"`

	// creator is a random number of the call that made a request with deliver:
	// only that call sends the code. 16 lower-case hexadecimal digits.
	// Default: unset, nothing is sent.
	// +optional
	// +kubebuilder:validation:MinLength=16
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[0-9a-f]{16}$')`,message="creator must be 16 lower-case hexadecimal digits"
	Creator string `json:"creator,omitempty"`
}

// VerificationRequestList is a list of VerificationRequests.
// +kubebuilder:object:root=true
type VerificationRequestList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VerificationRequest `json:"items"`
}
