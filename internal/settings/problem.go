package settings

import "fmt"

// Problem describes a secret that cannot be used, for the project's owner.
type Problem struct {
	// Field is the path of the reference, such as spec.apiKeys[backend].secretRef.
	Field string
	// Secret and Key are the names in the reference.
	Secret string
	Key    string
	Reason Reason
}

// String returns the field, Secret, key and reason, without any value.
func (p Problem) String() string {
	return fmt.Sprintf("%s: Secret %s, key %s: %s", p.Field, p.Secret, p.Key, p.Reason)
}

// Reason is why a secret cannot be used.
type Reason string

// The reasons of a Problem.
const (
	ReasonMissing        Reason = "Missing"        // no such Secret, or no such key in it
	ReasonNotMounted     Reason = "NotMounted"     // added to the project after this pod started; see Mounted
	ReasonUnreadable     Reason = "Unreadable"     // a folder, a link out of the secrets' folder, or no permission
	ReasonEmpty          Reason = "Empty"          // empty, or only a newline
	ReasonPlaceholder    Reason = "Placeholder"    // a value from config/samples, which begins with REPLACE-
	ReasonTooShort       Reason = "TooShort"       // an API key of less than 32 characters
	ReasonTooLong        Reason = "TooLong"        // longer than a secret of its kind may be
	ReasonNotBase64      Reason = "NotBase64"      // a webhook secret whose part after whsec_ is not base64
	ReasonInvalid        Reason = "Invalid"        // characters or a format that its kind does not allow
	ReasonRepeated       Reason = "Repeated"       // the same API key under two names; the first is used
	ReasonNoCertificate  Reason = "NoCertificate"  // a certificate authority without a PEM certificate
	ReasonMixedSimulator Reason = "MixedSimulator" // an account with both simulated and real credentials
	ReasonNotAppSecret   Reason = "NotAppSecret"   // an app secret that is not in the form of Meta's
	ReasonSignsLive      Reason = "SignsLive"      // a secret for events of test keys that signs live events
	ReasonKnownToOthers  Reason = "KnownToOthers"  // an app or signing secret that is also an API key, a signing secret or a webhook secret

	// ReasonWebhookSecretTooShort is for webhook secrets whose key has less than 24 bytes.
	ReasonWebhookSecretTooShort Reason = "WebhookSecretTooShort"
)
