package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is the state of a request as people and field selectors see it.
// Verified and Expired are final.
// +kubebuilder:validation:Enum=Pending;Verified;Expired
type Phase string

const (
	// PhasePending means started and not finished.
	PhasePending Phase = "Pending"
	// PhaseVerified means the number was verified.
	PhaseVerified Phase = "Verified"
	// PhaseExpired means the time ran out first.
	PhaseExpired Phase = "Expired"
)

// Assurance is how a number was proved, where it was not the usual way.
// +kubebuilder:validation:Enum=SharedContact;Echo
type Assurance string

const (
	// AssuranceSharedContact means that the messenger hid the sender's number and
	// the user shared their own contact on request: shared_contact in the HTTP API
	// and in webhooks.
	AssuranceSharedContact Assurance = "SharedContact"
	// AssuranceEcho means that the messenger hid the sender's number and the same
	// account answered a message to the claimed number: echo in the HTTP API and
	// in webhooks.
	AssuranceEcho Assurance = "Echo"
)

// Via is what verified a number, where that was no message.
// +kubebuilder:validation:Enum=Code
type Via string

// ViaCode is CODE in the HTTP API.
const ViaCode Via = "Code"

// CodeState is what became of a code.
// +kubebuilder:validation:Enum=Sent;NotSent
type CodeState string

const (
	// CodeStateSent means that the messenger took it, or refused it for a reason
	// that may depend on the number.
	CodeStateSent CodeState = "Sent"
	// CodeStateNotSent means that it was not sent, for a reason that does not
	// depend on the number.
	CodeStateNotSent CodeState = "NotSent"
)

// CodeDelivery is what became of a code.
type CodeDelivery struct {
	// state is Sent or NotSent. Required.
	// +required
	State CodeState `json:"state"`

	// reason is one word in snake_case for what the messenger answered.
	// Default: unset.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z][a-z0-9_]*$')`,message="reason must be one word in snake_case"
	Reason string `json:"reason,omitempty"`
}

// VerificationRequestStatus says how far a request is. All times that matter
// are kept here and never only in memory.
//
// It is written as a whole, by one writer: atomic keeps managedFields, and with
// them each object, small.
// +structType=atomic
type VerificationRequestStatus struct {
	// conditions are Verified, WebhookDelivered, on manual requests Accepted, and
	// for tools that follow kstatus Reconciling and Stalled, which are there only
	// while they are true. "kubectl wait --for=condition=Verified" works.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z'))",message="conditions must have a lastTransitionTime in RFC 3339, for example 2027-01-31T00:00:00Z"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the metadata.generation that this status speaks of;
	// -1 before a server has written a status. The spec never changes, so it is
	// 1 after that.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is Pending, Verified or Expired; the last two are final.
	// Default: Pending, from the moment of creation.
	// +optional
	// +kubebuilder:default=Pending
	Phase Phase `json:"phase,omitempty"`

	// init is what spec.init is on requests made by the API, for manual
	// requests.
	// +optional
	Init *Init `json:"init,omitempty"`

	// expectedText is the text that the user must send. Set on manual
	// requests, and removed when the request is final, because it holds the code.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	ExpectedText string `json:"expectedText,omitempty"`

	// link opens the messenger with the text ready to send. Set on manual
	// requests, and removed when the request is final.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Link string `json:"link,omitempty"`

	// verifiedAt is when the number was verified, RFC 3339 with exactly six
	// digits of a second.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	VerifiedAt *metav1.MicroTime `json:"verifiedAt,omitempty"`

	// provenAt is when the number sent the code of a request with
	// init.assurance Session, which then awaits its confirmation by a client,
	// RFC 3339 with exactly six digits of a second. verifiedBy,
	// actualPhoneNumber and assurance are set with it. Default: unset.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ProvenAt *metav1.MicroTime `json:"provenAt,omitempty"`

	// wrongCodes is how many wrong codes were entered; 5 end the request, and 3
	// one with init.deliver. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5
	WrongCodes int32 `json:"wrongCodes,omitempty"`

	// verifiedBy is the messenger that verified the number, where that is not
	// spec.method. Default: unset.
	// +optional
	// +kubebuilder:validation:Enum=WhatsApp;Telegram
	VerifiedBy Method `json:"verifiedBy,omitempty"`

	// actualPhoneNumber is the number that the messenger reported for the
	// sender, in E.164. It may differ from spec.phoneNumber in form only.
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\+[1-9][0-9]{6,14}$')`,message="actualPhoneNumber must be in E.164, for example +15550100199"
	ActualPhoneNumber string `json:"actualPhoneNumber,omitempty"`

	// assurance is SharedContact where the user had to share their contact, and
	// Echo where they answered a message to the claimed number. Default: unset, the messenger itself reported the sender's number.
	// +optional
	Assurance Assurance `json:"assurance,omitempty"`

	// via is Code where the code that was sent to the number verified it.
	// Default: unset, a message of the user.
	// +optional
	Via Via `json:"via,omitempty"`

	// codeDelivery is what became of the code of a request with init.deliver. Default:
	// unset, that is not known.
	// +optional
	CodeDelivery *CodeDelivery `json:"codeDelivery,omitempty"`

	// contacts are the senders that were asked to share their contact or to
	// confirm, at most 8; the oldest of those that were to share goes first.
	// +optional
	// +listType=map
	// +listMapKey=binding
	// +kubebuilder:validation:MaxItems=8
	Contacts []Contact `json:"contacts,omitempty"`

	// hints are why the request is not verified yet, oldest first and each once.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=24
	Hints []Hint `json:"hints,omitempty"`

	// delivery is how far the webhook is. Unset where none is due.
	// +optional
	Delivery *Delivery `json:"delivery,omitempty"`

	// earlierAttempts are the last attempts to deliver events of this request
	// before the one in delivery, oldest first: at most 4, that one included.
	// Unset while there was one attempt or none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	EarlierAttempts []EarlierAttempt `json:"earlierAttempts,omitempty"`

	// observedRedeliver is the last value of the project's annotation
	// phoneproof.dev/redeliver that was carried out for this request, or api:
	// and a random text after a redelivery by the HTTP API.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ObservedRedeliver string `json:"observedRedeliver,omitempty"`
}

// EarlierAttempt is an attempt to deliver an event.
type EarlierAttempt struct {
	// at is when it was made, RFC 3339 with exactly six digits of a second.
	// Required.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	At metav1.MicroTime `json:"at"`

	// event is the kind of event. Default: unset, the kind that the request's
	// event has now.
	// +optional
	Event Event `json:"event,omitempty"`

	// code is the HTTP status of the receiver's answer. Default: unset, there
	// was no answer.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=599
	Code int32 `json:"code,omitempty"`

	// reason is why it failed, one word in snake_case. Default: unset, it
	// delivered the event.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z][a-z0-9_]*$')`,message="reason must be one word in snake_case"
	Reason string `json:"reason,omitempty"`
}

// ContactKind is what a sender was asked for.
// +kubebuilder:validation:Enum=Share;Confirm;Echo
type ContactKind string

const (
	// ContactKindShare is their contact, because their number was not known.
	ContactKindShare ContactKind = "Share"
	// ContactKindConfirm is a confirmation, because they sent another text than
	// the prepared one.
	ContactKindConfirm ContactKind = "Confirm"
	// ContactKindEcho is an answer to a message to the claimed number, because
	// their own is hidden.
	ContactKindEcho ContactKind = "Echo"
)

// Hint is why a request is not verified yet.
type Hint struct {
	// kind is the hint as the HTTP API answers it. Required.
	// +required
	Kind HintKind `json:"kind"`

	// at is when it happened, RFC 3339 with exactly six digits of a
	// second. Required.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	At metav1.MicroTime `json:"at"`
}

// HintKind is a hint.
// +kubebuilder:validation:Enum=NUMBER_HIDDEN;OTHER_NUMBER;TOO_LATE;AWAITING_CONTACT;AWAITING_CONFIRMATION;TEXT_CHANGED;TEXT_REFUSED;CONTACT_REFUSED;NUMBER_ANONYMOUS;NO_QUESTION;DECLINED;WRONG_CODE;CANCELED;NUMBER_WRONG;CODE_NOT_SENT
type HintKind string

// Contact is one sender who was asked for more than the code.
type Contact struct {
	// binding is a keyed hash of account and sender, in lower-case hex; the
	// messenger's own ids are not kept. Required.
	// +required
	// +kubebuilder:validation:MinLength=16
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[0-9a-f]+$')`,message="binding must be 16 to 64 lower-case hexadecimal digits"
	Binding string `json:"binding"`

	// boundAt is when the sender was asked, RFC 3339 with exactly six digits of
	// a second. Required.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	BoundAt metav1.MicroTime `json:"boundAt"`

	// kind is what the sender was asked for: Share, Confirm or Echo.
	// Default: unset, which means Share.
	// +optional
	Kind ContactKind `json:"kind,omitempty"`

	// nonce is what the buttons of an Echo are made from, with the app secret.
	// 32 lower-case hexadecimal digits. Unset for other kinds.
	// +optional
	// +kubebuilder:validation:MinLength=32
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[0-9a-f]+$')`,message="nonce must be 32 lower-case hexadecimal digits"
	Nonce string `json:"nonce,omitempty"`
}

// Delivery is how far the webhook of a request is. One attempt is recorded
// here before the next is planned.
type Delivery struct {
	// attempts is how often the event was sent. Default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Attempts int32 `json:"attempts,omitempty"`

	// nextAttemptAt is when the event is sent next, RFC 3339 with exactly six
	// digits of a second. Unset when it is delivered or given up.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	NextAttemptAt *metav1.MicroTime `json:"nextAttemptAt,omitempty"`

	// lastAttemptAt is when the event was sent last, RFC 3339 with exactly six
	// digits of a second.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	LastAttemptAt *metav1.MicroTime `json:"lastAttemptAt,omitempty"`

	// lastStatusCode is the HTTP status that the receiver answered last. Unset
	// where it gave no answer; lastReason then says why.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=599
	LastStatusCode int32 `json:"lastStatusCode,omitempty"`

	// lastReason is one word in snake_case for why the last attempt failed, for
	// example timeout or http_500; metrics and logs use the same words. It never
	// holds the URL or the answer.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z][a-z0-9_]*$')`,message="lastReason must be one word in snake_case"
	LastReason string `json:"lastReason,omitempty"`

	// deliveredAt is when the receiver took the event, RFC 3339 with exactly
	// six digits of a second.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	DeliveredAt *metav1.MicroTime `json:"deliveredAt,omitempty"`

	// exhaustedAt is when sending was given up, RFC 3339 with exactly six
	// digits of a second.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ExhaustedAt *metav1.MicroTime `json:"exhaustedAt,omitempty"`

	// extraFrom is the earliest time of an attempt beside the schedule, which
	// an event that waits has when its receiver was repaired, RFC 3339 with
	// exactly six digits of a second. Default: unset, any time.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ExtraFrom *metav1.MicroTime `json:"extraFrom,omitempty"`
}
