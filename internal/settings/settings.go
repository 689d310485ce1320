package settings

import (
	"cmp"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Settings are what a server works by at one moment: a VerificationProject together with the contents of its secrets.
// A value is immutable and shared by pointer; a change makes a new one.
type Settings struct {
	// Project is "namespace/name", the name that stores and codes go by.
	Project string
	// Generation is metadata.generation of the spec that all this comes from; zero outside a cluster.
	Generation int64
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
	Replies  Replies

	// Database is nil unless the project keeps its requests in PostgreSQL.
	Database *Database

	TTL       time.Duration
	Retention time.Duration
	Limits    verification.Limits
	// LimitsContradiction says how the limits let the API keys fill the store; empty if they do not.
	LimitsContradiction string
	// LimitsCommand is the kubectl command that ends it in a cluster.
	LimitsCommand string

	// Simulated says that an account's credentials are the simulator's, so nothing here is true of a real phone.
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
	AcceptAnyText       bool
	// Simulated accounts exist at the simulator, and these credentials go nowhere else.
	Simulated bool
}

// Telegram is a Telegram bot.
type Telegram struct {
	BotUsername string
	BotToken    Secret
	// Polling says that updates are fetched; else Telegram posts them to us.
	Polling  bool
	TakeOver bool
	// Simulated accounts exist at the simulator, and these credentials go nowhere else.
	Simulated bool
}

// Replies are the project's own texts for end users; an empty one stands for the built-in text.
type Replies struct {
	Verified     string
	WrongNumber  string
	Expired      string
	Unknown      string
	ShareContact string
	NumberHidden string
}

// Database is a PostgreSQL database.
type Database struct {
	// URI is the connection URI, with its password.
	URI Secret
	// OwnCA says that the project names the authorities that the server is checked by. If it is set and CA cannot be used,
	// nothing connects: a server that was to be checked is never believed unchecked.
	OwnCA bool
	// CA is their certificates, as PEM.
	CA Secret
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

// DisplayNameOf returns the name that the user of a request knows the project by: that in the text that was prepared for
// them, or the present one where it is not known.
func (s *Settings) DisplayNameOf(r *verification.Request) string {
	return cmp.Or(r.DisplayName, s.DisplayName)
}
