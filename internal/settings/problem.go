package settings

import "fmt"

// Problem is a secret that cannot be used, in words for the project's owner.
type Problem struct {
	// Field is the path of the reference, as spec.apiKeys[backend].secretRef.
	Field string
	// Secret and Key name what is referenced.
	Secret string
	Key    string
	Reason Reason
}

// String says what is wrong with what, and never a value.
func (p Problem) String() string {
	return fmt.Sprintf("%s: Secret %s, key %s: %s", p.Field, p.Secret, p.Key, p.Reason)
}

// Reason says what is wrong with a secret.
type Reason string

// The reasons of a Problem.
const (
	ReasonMissing        Reason = "Missing"        // no such Secret, or no such key in it
	ReasonNotMounted     Reason = "NotMounted"     // referred to since this pod was started; see Mounted
	ReasonUnreadable     Reason = "Unreadable"     // a folder, a link out of the secrets' folder, or no permission
	ReasonEmpty          Reason = "Empty"          // nothing in it but a newline
	ReasonPlaceholder    Reason = "Placeholder"    // one of config/samples, which begins with REPLACE-
	ReasonTooShort       Reason = "TooShort"       // an API key of less than 32 characters
	ReasonTooLong        Reason = "TooLong"        // more than a secret of that kind can be
	ReasonNotBase64      Reason = "NotBase64"      // a webhook secret whose part after whsec_ is not base64
	ReasonInvalid        Reason = "Invalid"        // characters or a form that a secret of that kind cannot have
	ReasonRepeated       Reason = "Repeated"       // the same API key under two names; the first one works
	ReasonNoCertificate  Reason = "NoCertificate"  // no certificate in PEM form where that of an authority should be
	ReasonMixedSimulator Reason = "MixedSimulator" // one account with credentials of the simulator and real ones

	// ReasonWebhookSecretTooShort goes with a webhook secret whose key has less than 24 bytes.
	ReasonWebhookSecretTooShort Reason = "WebhookSecretTooShort"
)
