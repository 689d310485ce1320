package settings

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/text/language"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Purpose is what a verification is for, in the words that its user reads.
type Purpose struct {
	title string
	// titles are by language, a BCP 47 tag, and matcher finds one of tags.
	titles  map[language.Tag]string
	tags    []language.Tag
	matcher language.Matcher
}

// buildPurposes returns the purposes of a project by their names; nil if there are none.
func buildPurposes(specs []verifyv1.Purpose) map[string]Purpose {
	if len(specs) == 0 {
		return nil
	}
	purposes := make(map[string]Purpose, len(specs))
	for i := range specs {
		spec := &specs[i]
		p := Purpose{title: string(spec.Title), titles: map[language.Tag]string{}}
		// In order, so that all replicas choose the same of two that suit alike, such as de and DE.
		for _, key := range slices.Sorted(maps.Keys(spec.Titles)) {
			if tag, err := language.Parse(key); err == nil && p.titles[tag] == "" {
				p.titles[tag], p.tags = string(spec.Titles[key]), append(p.tags, tag)
			}
		}
		p.matcher = language.NewMatcher(p.tags)
		purposes[spec.Name] = p
	}
	return purposes
}

// Title returns the title in the language that suits a BCP 47 tag best.
func (p Purpose) Title(locale string) string {
	tag, err := language.Parse(locale)
	if err != nil || len(p.tags) == 0 {
		return p.title
	}
	if _, i, confidence := p.matcher.Match(tag); confidence >= language.High {
		return p.titles[p.tags[i]]
	}
	return p.title
}

// PurposeOf returns what the user of a request reads of its purpose; empty if it has none, or the project has it no more.
func (s *Settings) PurposeOf(r *verification.Request) string { return s.PurposeIn(r.Locale, r) }

// PurposeIn is PurposeOf in the language that suits a BCP 47 tag best.
func (s *Settings) PurposeIn(locale string, r *verification.Request) string {
	purpose, found := s.Purposes[r.Terms.Purpose]
	if !found {
		return ""
	}
	return purpose.Title(locale)
}

func convertLevel(level verifyv1.AssuranceLevel) verification.Level {
	if level == verifyv1.AssuranceLevelSession {
		return verification.LevelSession
	}
	return verification.LevelPossession
}

// AllowsSession reports whether a request may ask for verification.LevelSession: replies bring its codes.
func (s *Settings) AllowsSession() bool { return s.Replies.Send != SendNever }

// SessionSecret returns the secret that the session codes of a request are made with, by the messenger that proved it. All replicas know
// it. It is nil if the account has none.
func (s *Settings) SessionSecret(r *verification.Request, now time.Time) []byte {
	if r.Test {
		return verification.TestSecrets()[0]
	}
	return s.AccountSecret(r.UsedMethod()).Shared(now)
}

// SessionCodes returns the session codes of a proven request, as they are given to its user; false if the account's secret is gone.
func (s *Settings) SessionCodes(r *verification.Request, now time.Time) (verification.SessionCodes, bool) {
	secret := s.SessionSecret(r, now)
	if len(secret) == 0 {
		return verification.SessionCodes{}, false
	}
	return verification.NewCodeSpace(s.Project).SessionCodes(secret, r), true
}

// AccountSecret returns the secret of the account of a method; its zero value if the project has none.
func (s *Settings) AccountSecret(m verification.Method) Secret {
	switch {
	case m == verification.WhatsApp && s.WhatsApp != nil:
		return s.WhatsApp.AppSecret
	case m == verification.Telegram && s.Telegram != nil:
		return s.Telegram.BotToken
	default:
		return Secret{}
	}
}
