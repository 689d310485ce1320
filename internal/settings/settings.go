package settings

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Settings is the configuration of a server: a VerificationProject together with the contents of its secrets. A value is
// immutable and shared by pointer; a change makes a new one.
type Settings struct {
	// Project is "namespace/name", the name that stores and codes use.
	Project string
	// Generation is the metadata.generation of the project; zero outside a cluster.
	Generation int64
	// ProjectID is the project's name for clients: spec.projectID, or Project if that is not set.
	ProjectID   string
	DisplayName string
	// BaseURL is the server's URL for clients and messengers, without a trailing slash; empty if not set.
	BaseURL string
	// PathPrefix is the path of BaseURL, without a trailing slash; empty if it has none.
	PathPrefix string
	// Suspended reports whether every init is answered with 503.
	Suspended bool

	Keys     Keys
	WhatsApp *WhatsApp // nil if the project does not use it
	Telegram *Telegram // nil if the project does not use it
	Webhook  *Webhook  // nil if the project has none
	Page     *Page     // nil if the project has none
	Replies  Replies
	// Level is what it takes to verify a request that does not ask for more.
	Level verification.Level
	// Purposes are what clients may name, by their names.
	Purposes map[string]Purpose
	// Texts are the texts for end users; nil for those that are built in.
	Texts *texts.Set
	// FormerTexts are those that the project had before: a prepared text counts for as long as a request may live.
	FormerTexts []FormerTexts

	// Database is nil unless the project keeps its requests in PostgreSQL.
	Database *Database

	TTL       time.Duration
	Retention time.Duration
	Limits    verification.Limits
	// LimitsContradiction explains how the limits let the API keys fill the store; empty if they do not.
	LimitsContradiction string
	// LimitsCommand is the kubectl command that removes the contradiction in a cluster.
	LimitsCommand string

	// Simulated reports whether an account has simulated credentials, so that its verifications prove nothing about a real phone.
	Simulated bool
	// Problems lists the needed secrets that cannot be used, sorted by field; never a value.
	Problems []Problem
}

// HiddenNumbers is how users are verified whose number WhatsApp hides.
type HiddenNumbers int

// The ways.
const (
	HiddenRefused HiddenNumbers = iota // not at all
	HiddenShared                       // they share their contact
	HiddenEcho                         // they answer a message to the claimed number
)

// WhatsApp is a WhatsApp Cloud API account.
type WhatsApp struct {
	// PhoneNumber is the business number in E.164 that users send messages to.
	PhoneNumber   string
	PhoneNumberID string
	// BusinessAccountID is the id of the WhatsApp Business account; empty if the access token is to be asked for it.
	BusinessAccountID string
	AccessToken       Secret
	AppSecret         Secret

	RegisterWebhook bool
	TakeOver        bool
	HiddenNumbers   HiddenNumbers
	AcceptAnyText   bool
	// SilentAfter is how long no message must have come before the project counts as silent.
	SilentAfter time.Duration
	// Codes are the codes that the project may send; nil for none.
	Codes *Codes
	// Simulated reports whether the account exists at the simulator. Its credentials are sent nowhere else.
	Simulated bool
}

// Telegram is a Telegram bot.
type Telegram struct {
	BotUsername string
	BotToken    Secret
	// Polling reports whether updates are fetched; otherwise Telegram sends them to our webhook.
	Polling  bool
	TakeOver bool
	// Codes are the codes that the project may send; nil for none.
	Codes *GatewayCodes
	// Simulated reports whether the account exists at the simulator. Its credentials are sent nowhere else.
	Simulated bool
}

// Replies are which outcomes are answered.
type Replies struct {
	Send SendPolicy
}

// SendPolicy is which outcomes a project answers. It is never asked about prompts.
type SendPolicy int

// The policies of projects.
const (
	SendAlways SendPolicy = iota
	// SendOnTrouble answers every outcome but success.
	SendOnTrouble
	SendNever
)

// FormerTexts are the texts that a project had.
type FormerTexts struct {
	Texts *texts.Set
	Until time.Time
}

// Database is a PostgreSQL database.
type Database struct {
	// URI is the connection URI, with its password.
	URI Secret
	// OwnCA reports whether the project names its certificate authorities. If it is set and CA cannot be used, no connection
	// is opened: a server that should be verified is never used unverified.
	OwnCA bool
	// CA holds the PEM certificates of the authorities.
	CA Secret
}

// Webhook is the receiver of a project's events.
type Webhook struct {
	URL string
	// TestURL receives the events of test keys, and no others; empty if they are not sent.
	TestURL string
	// TestSecret signs the events of test keys, and nothing else does. If it cannot be used, they wait.
	TestSecret Secret
	// TestUnsigned reports whether the events of test keys have a receiver and no secret, so that they are not sent.
	TestUnsigned bool
	// Signed reports whether the project has a webhook secret. If it is set and Secret cannot be used, delivery waits: an event
	// of a signed webhook is never sent unsigned.
	Signed bool
	Secret Secret
	// SecretNewline reports whether the value in the Secret ends with a newline, which Secret lacks.
	SecretNewline bool
	// PreviousSecret signs beside Secret during a rotation that the project declares.
	PreviousSecret Secret
	Timeout        time.Duration
	// Events are the kinds of events that are sent.
	Events verification.EventKinds
	// CABundle is PEM; nil for the system's roots.
	CABundle []byte
	// Repaired is when the receiver was repaired last: it took events again, or its URL, CABundle or Secret changed. Zero for never.
	Repaired time.Time
	// healthySince is when the condition WebhookHealthy became True last; zero for never.
	healthySince time.Time
}

// Readiness is the state of one messenger in a project.
type Readiness int

// The states of a method.
const (
	MethodNotConfigured Readiness = iota // the project has no such account
	MethodNotReady                       // the account's secrets cannot be used, so no message could be trusted
	MethodReady
)

// Method returns the readiness of a messenger.
func (s *Settings) Method(m verification.Method) Readiness {
	switch {
	case m == verification.WhatsApp && s.WhatsApp != nil:
		return readinessOf(s.WhatsApp.AppSecret.Usable())
	case m == verification.Telegram && s.Telegram != nil:
		return readinessOf(s.Telegram.BotToken.Usable())
	default:
		return MethodNotConfigured
	}
}

func readinessOf(usable bool) Readiness {
	if usable {
		return MethodReady
	}
	return MethodNotReady
}

// IsOwnNumber reports whether n is the line that the project receives WhatsApp messages at. No verification starts for it,
// by no method: no user can send a message from it, and what is sent to it would come back to the project.
func (s *Settings) IsOwnNumber(n phone.Number) bool {
	if s.WhatsApp == nil {
		return false
	}
	own, err := phone.FromE164(s.WhatsApp.PhoneNumber)
	return err == nil && phone.Same(own, n)
}

// EventPolicy returns how these settings treat events.
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

// AwaitsSigningSecret reports whether this pod was started before the project named its signing secret, so that others have to take over.
func (s *Settings) AwaitsSigningSecret() bool {
	return slices.ContainsFunc(s.Problems, func(p Problem) bool { return p.Field == fieldWebhookSecret && p.Reason == ReasonNotMounted })
}

// TestEventPolicy returns how these settings treat the events of test keys.
func (s *Settings) TestEventPolicy() verification.EventPolicy {
	switch {
	case s.Webhook == nil || s.Webhook.TestURL == "":
		return verification.EventsOff
	case !s.Webhook.TestSecret.Usable():
		return verification.EventsPaused
	default:
		return verification.EventsOn
	}
}

// EventKinds returns the kinds of events that are to be sent, at once or later.
func (s *Settings) EventKinds() verification.EventKinds {
	if s.Webhook == nil {
		return 0
	}
	return s.Webhook.Events
}

// TextsIn returns the texts in a language that a request was made with; the project's own without one.
func (s *Settings) TextsIn(locale string) *texts.Texts { return s.textSet().In(locale) }

// MatchLocale returns the language of the texts that suits a BCP 47 tag best; empty for the project's own.
func (s *Settings) MatchLocale(tag string) string { return s.textSet().Match(tag) }

// PreparedTexts returns the prepared texts of all languages, those of before a change after those of now.
func (s *Settings) PreparedTexts(now time.Time) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, set := range s.textSets(now) {
			for _, text := range set.Prepared() {
				if !yield(text) {
					return
				}
			}
		}
	}
}

// IsNotMe reports whether a text is the title of the button that declines, in any language and also of before a change.
func (s *Settings) IsNotMe(text string, now time.Time) bool {
	text = strings.TrimSpace(text)
	return slices.ContainsFunc(s.textSets(now), func(set *texts.Set) bool {
		return slices.ContainsFunc(set.NotMeLabels(), func(label string) bool { return strings.EqualFold(label, text) })
	})
}

// textSets returns the texts of now, and then those of before a change that still count.
func (s *Settings) textSets(now time.Time) []*texts.Set {
	sets := []*texts.Set{s.textSet()}
	for _, former := range s.FormerTexts {
		if now.Before(former.Until) {
			sets = append(sets, former.Texts)
		}
	}
	return sets
}

func (s *Settings) textSet() *texts.Set {
	if s.Texts == nil {
		return texts.BuiltIn()
	}
	return s.Texts
}

// DisplayNameOf returns the project's name that the user of a request has seen: the one in the request's prepared text, or the
// current one if that is unknown.
func (s *Settings) DisplayNameOf(r *verification.Request) string {
	return cmp.Or(r.DisplayName, s.DisplayName)
}
