package v1alpha1

// AssuranceLevel is what it takes to verify a number.
type AssuranceLevel string

const (
	// AssuranceLevelPossession means that a message from the number is enough.
	AssuranceLevelPossession AssuranceLevel = "Possession"
	// AssuranceLevelSession means that, after the message, a client must redeem a
	// session code from the session that began the request.
	AssuranceLevelSession AssuranceLevel = "Session"
)

// AssuranceSettings say what it takes to verify a number.
type AssuranceSettings struct {
	// level is Possession (a message from the number verifies it) or Session
	// (after it a client must redeem a session code, so that a link which was
	// passed on verifies no one). Init may raise it for one request.
	// Default: Possession.
	// +optional
	// +kubebuilder:default=Possession
	// +kubebuilder:validation:Enum=Possession;Session
	Level AssuranceLevel `json:"level,omitempty"`

	// declineCooldown is how long no request starts for a number whose owner
	// answered "Not me". 0s to 24h, and not longer than request.retention; 0s for
	// no such time. Default: 1h.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}h)?([0-9]{1,6}m)?([0-9]{1,7}s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('24h')`,message="declineCooldown must be a duration between 0s and 24h, for example 1h"
	DeclineCooldown Duration `json:"declineCooldown,omitempty"`
}

// Purpose is what a verification is for, in the words that its user reads.
type Purpose struct {
	// name is what clients send in the field purpose of init. 1 to 32 lower-case
	// letters, digits and '-'. Example: sign-in. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,message="name must be lower-case letters, digits and '-', for example sign-in"
	Name string `json:"name"`

	// title is what users read, for languages that titles does not have. 1 to 64
	// characters of one line. Example: Sign in. Required.
	// +required
	Title PurposeTitle `json:"title"`

	// titles are the title by language, a BCP 47 tag. At most 24. Default: unset,
	// title for all. Example: {de: Anmeldung}.
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=24
	// +kubebuilder:validation:XValidation:rule=`self.all(k, size(k) <= 35 && k.matches(r'^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$'))`,message="titles must have BCP 47 language tags as keys, for example de or pt-BR"
	Titles map[string]PurposeTitle `json:"titles,omitempty"`
}

// PurposeTitle is what users read of a purpose.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\p{C}\p{Z}]([^\p{Cc}\x{2028}\x{2029}\x{202A}-\x{202E}\x{2066}-\x{2069}]*[^\p{C}\p{Z}])?$')`,message="title must be one line of plain text, without control characters, text-direction overrides, or spaces at either end"
type PurposeTitle string
