package settings

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Settings are what a server works by at one moment: a VerificationProject together with the contents of its secrets.
// A value is immutable and shared by pointer; a change makes a new one.
type Settings struct {
	// Project is "namespace/name", the name that stores and codes go by.
	Project string
	// ProjectID is what clients are told: spec.projectID, or Project where that is not set.
	ProjectID   string
	DisplayName string
	// BaseURL is where clients and messengers reach the server, without a trailing slash; empty if not set.
	BaseURL string
	// PathPrefix is the path of BaseURL, without a trailing slash; empty if it has none.
	PathPrefix string
	// Suspended projects answer 503 to every init.
	Suspended bool

	Keys     Keys
	WhatsApp *WhatsApp // nil if the project does not use it
	Telegram *Telegram // nil if the project does not use it
	Webhook  *Webhook  // nil if the project has none

	TTL       time.Duration
	Retention time.Duration
	Limits    verification.Limits

	// Simulated says that an account's credentials are the simulator's.
	Simulated bool
	// Problems name every secret that something needs and that cannot be used. Sorted; never holds a value.
	Problems []Problem
}

// WhatsApp is a WhatsApp Cloud API account.
type WhatsApp struct {
	// PhoneNumber is the business number in E.164, the one that users write to.
	PhoneNumber   string
	PhoneNumberID string
	AccessToken   Secret
	AppSecret     Secret

	RegisterWebhook     bool
	TakeOver            bool
	AcceptSharedContact bool
}

// Telegram is a Telegram bot.
type Telegram struct {
	BotUsername string
	BotToken    Secret
	// Polling says that updates are fetched; else Telegram posts them to us.
	Polling  bool
	TakeOver bool
}

// Webhook is where a project's events go.
type Webhook struct {
	URL string
	// Signed says that the project has a secret. If it is set and Secret cannot be used, delivery waits: an event
	// of a signed webhook is never sent unsigned.
	Signed bool
	Secret Secret
	// PreviousSecret signs beside Secret during a rotation that the project declares.
	PreviousSecret Secret
	Timeout        time.Duration
	// CABundle is PEM; nil for the system's roots.
	CABundle []byte
}

// Problem is a secret that cannot be used, in words for the project's owner.
type Problem struct {
	// Field is the path of the reference, as spec.apiKeys[backend].secretRef.
	Field string
	// Secret and Key name what is referenced.
	Secret string
	Key    string
	Reason Reason
}

// Reason says what is wrong with a secret.
type Reason string

// The reasons of a Problem.
const (
	ReasonMissing  Reason = "Missing"  // no such file
	ReasonEmpty    Reason = "Empty"    // nothing in it but a newline
	ReasonTooShort Reason = "TooShort" // an API key of less than 32 characters
	ReasonTooLong  Reason = "TooLong"  // more than a secret of that kind can be
	ReasonInvalid  Reason = "Invalid"  // characters that a secret of that kind cannot have
	ReasonRepeated Reason = "Repeated" // the same API key under two names
)

// Readiness is what a project can do through one messenger.
type Readiness int

// The states of a method.
const (
	MethodNotConfigured Readiness = iota // the project has no such account
	MethodNotReady                       // the account's secrets cannot be used, so no message could be trusted
	MethodReady
)

// Method tells what the project can do through a messenger.
func (s *Settings) Method(m verification.Method) Readiness {
	switch {
	case m == verification.WhatsApp && s.WhatsApp != nil:
		return ready(s.WhatsApp.AppSecret.Usable())
	case m == verification.Telegram && s.Telegram != nil:
		return ready(s.Telegram.BotToken.Usable())
	default:
		return MethodNotConfigured
	}
}

func ready(usable bool) Readiness {
	if usable {
		return MethodReady
	}
	return MethodNotReady
}

// EventPolicy tells what may happen to events by these settings.
func (s *Settings) EventPolicy() verification.EventPolicy {
	switch {
	case s.Webhook == nil:
		return verification.EventsOff
	case s.Webhook.Signed && !s.Webhook.Secret.Usable():
		return verification.EventsPaused
	default:
		return verification.EventsOn
	}
}
