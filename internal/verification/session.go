package verification

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// Level is what it takes to verify a request.
type Level string

const (
	// LevelPossession is a message from the claimed number. It is the zero value.
	LevelPossession Level = ""
	// LevelSession is that message, which makes the request proven, and after it one of its session codes, which the client redeems
	// from the session that began the request.
	LevelSession Level = "SESSION"
)

const (
	// ConfirmGrace is how much longer a request may be confirmed that was proven within as long before its expiresAt.
	ConfirmGrace = 2 * time.Minute
	// MaxConfirmTries is how many wrong codes end a request to whose number no code is sent, wherever they are entered.
	MaxConfirmTries = 5
)

// Terms are what a client asks of a verification, beside the number. They are decided when the request is created.
type Terms struct {
	Level Level
	// Purpose names one of the project's purposes, and Browser is one of Browsers; the user reads both. Empty for none.
	Purpose, Browser string
	// Deliver is what is sent to the number. With DeliverCode the Level is LevelSession.
	Deliver DeliverKind
}

// Reasons why a request is not confirmed.
var (
	ErrNotProven        = errors.New("the request is not proven yet")
	ErrWrongCode        = errors.New("the code is not one of the request")
	ErrAlreadyConfirmed = errors.New("a code of the request was redeemed before")
	ErrNoConfirmation   = errors.New("the request needs no confirmation")
	ErrNoDelivered      = errors.New("the request has no delivered digits")
)

// IsProven reports whether the claimed number sent the code of a request that a client is still to confirm, or has confirmed, or whether
// the digits that were sent to it were entered.
func (r *Request) IsProven() bool { return !r.ProvenAt.IsZero() }

// awaitsConfirmation reports whether a client may confirm the request, as far as its state shows it.
func (r *Request) awaitsConfirmation() bool { return r.Phase == Pending && r.IsProven() }

// EndsAt returns when the time of the request runs out: its ExpiresAt, or ConfirmGrace later if it was proven shortly before.
func (r *Request) EndsAt() time.Time {
	if r.IsProven() && r.ProvenAt.After(r.ExpiresAt.Add(-ConfirmGrace)) {
		return r.ExpiresAt.Add(ConfirmGrace)
	}
	return r.ExpiresAt
}

// recordProof records that the number was proven by e. The request stays pending until it is confirmed. Of its contacts it keeps the one of
// the prover; binding is empty if there is none.
func (r *Request) recordProof(e Evidence, binding string, now time.Time, wanted EventKinds) {
	r.ProvenAt, r.Actual, r.Assurance = now, e.Sender, e.Assurance
	if e.Method != r.Method {
		r.VerifiedBy = e.Method
	}
	r.Contacts = slices.DeleteFunc(slices.Clone(r.Contacts), func(c Contact) bool { return c.Binding != binding })
	// An echo has this hint before it is answered. What is proven is news.
	r.Hints = slices.DeleteFunc(slices.Clone(r.Hints), func(h Hint) bool { return h.Kind == HintAwaitingConfirmation })
	r.addAttention(HintAwaitingConfirmation, now, wanted)
}

// recordDelivered records that the digits that were sent to the number proved it. They replace an earlier proof, whose sender may still
// decline. Senders who proved nothing are forgotten.
func (r *Request) recordDelivered(now time.Time, wanted EventKinds) {
	if r.Via == ViaCode {
		return
	}
	if !r.IsProven() {
		r.recordProof(Evidence{Method: r.Method, Sender: r.Phone}, "", now, wanted)
	}
	r.ProvenAt, r.Actual, r.Assurance, r.VerifiedBy, r.Via = now, r.Phone, AssuranceUsual, "", ViaCode
}

// CodeMatch is which code of a request an entered one is.
type CodeMatch int

// The matches.
const (
	NoMatch CodeMatch = iota
	// MatchesSession is one of the session codes.
	MatchesSession
	// MatchesDelivered is the code that was sent to the number.
	MatchesDelivered
)

// ConfirmSession moves a request to VERIFIED if match finds a match of the code that was entered. A wrong one counts, and the
// last of MaxTries ends the request: both are ErrWrongCode with a change to store. An error of match is returned, and changes nothing.
func (r *Request) ConfirmSession(match func(*Request) (CodeMatch, error), now time.Time, wanted EventKinds) error {
	if err := r.checkConfirmation(now); err != nil {
		return err
	}
	found, err := match(r)
	if err != nil {
		return err
	}
	if found == NoMatch {
		r.countWrongCode(now, wanted)
		return ErrWrongCode
	}
	if found == MatchesDelivered {
		r.recordDelivered(now, wanted)
	}
	r.Phase, r.VerifiedAt = Verified, now
	r.makeEventDue(now, wanted)
	return nil
}

// CheckSessionCode is ConfirmSession without the end: a right session code changes nothing, and is ErrUnchanged. Right delivered digits
// prove the number, once.
func (r *Request) CheckSessionCode(match func(*Request) (CodeMatch, error), now time.Time, wanted EventKinds) error {
	if err := r.checkConfirmation(now); err != nil {
		return err
	}
	switch found, err := match(r); {
	case err != nil:
		return err
	case found == MatchesDelivered && r.Via != ViaCode:
		r.recordDelivered(now, wanted)
		return nil
	case found != NoMatch:
		return ErrUnchanged
	}
	r.countWrongCode(now, wanted)
	return ErrWrongCode
}

// checkConfirmation returns nil if a code can confirm the request at now. Before the proof only delivered digits can.
func (r *Request) checkConfirmation(now time.Time) error {
	switch {
	case r.Terms.Level != LevelSession:
		return ErrNoConfirmation
	case r.Phase == Verified:
		return ErrAlreadyConfirmed
	case r.Phase == Expired:
		return ErrFinal
	case !now.Before(r.EndsAt()):
		return ErrOutOfTime
	case r.DeliversCode():
		return nil // which of its codes can is found by matchCode
	case !r.IsProven():
		return ErrNotProven
	default:
		return nil
	}
}

func (r *Request) countWrongCode(now time.Time, wanted EventKinds) {
	r.WrongCodes++
	if r.WrongCodes >= r.MaxTries() {
		r.endBecause(HintWrongCode, now, wanted)
	}
}

// Cancel ends a pending request of LevelSession whose user gave it up on the page. It says nothing about the number. For one that
// ended without a verification it is ErrUnchanged.
func (r *Request) Cancel(now time.Time, wanted EventKinds) error {
	switch {
	case r.Terms.Level != LevelSession:
		return ErrNoConfirmation
	case r.Phase == Verified:
		return ErrFinal
	case r.Phase == Expired || r.hasLapsed(now):
		return ErrUnchanged
	}
	r.endBecause(HintCanceled, now, wanted)
	return nil
}

// DeclineProven ends a proven request by the prover's answer "Not me". isProver reports whether the answer is the prover's: the
// others learn nothing. The answer counts once, and also after the request ended without a verification: who holds its page could
// otherwise take the prover's answer away, by ending it first.
func (r *Request) DeclineProven(isProver func(*Request) bool, now time.Time, wanted EventKinds) error {
	switch {
	case !r.IsProven() || !isProver(r):
		return ErrNotAsked
	case r.Phase == Verified:
		return ErrFinal
	case !r.DeclinedAt().IsZero():
		return ErrUnchanged
	}
	r.endBecause(HintDeclined, now, wanted)
	return nil
}

// endBecause ends a request without a verification, for a reason that its event names.
func (r *Request) endBecause(why HintKind, now time.Time, wanted EventKinds) {
	r.addHint(why, now)
	r.Phase = Expired
	r.makeEventDue(now, wanted)
}

// endsRequest reports whether the hint is about what ended its request before its time.
func (k HintKind) endsRequest() bool {
	return k == HintDeclined || k == HintWrongCode || k == HintCanceled
}

// DeclinedAt returns when the owner of the number answered "Not me"; zero if that did not happen.
func (r *Request) DeclinedAt() time.Time {
	if last := r.lastHint(); last.Kind == HintDeclined {
		return last.At
	}
	return time.Time{}
}

// ShownAssurance returns the weakest part of what verified the request. One of LevelSession that is verified without a proof, as by an
// edit of what is stored, was confirmed by no client.
func (r *Request) ShownAssurance() Assurance {
	if r.Assurance == AssuranceUsual && r.Terms.Level == LevelSession && r.IsProven() {
		return AssuranceSession
	}
	return r.Assurance
}

// browserNames and systemNames are the words of Terms.Browser, BROWSER/SYSTEM, as users read them.
var (
	browserNames = map[string]string{
		"CHROME": "Chrome", "EDGE": "Edge", "FIREFOX": "Firefox", "SAFARI": "Safari", "SAMSUNG": "Samsung Internet",
		"OPERA": "Opera", "APP": "App",
	}
	systemNames = map[string]string{
		"ANDROID": "Android", "IOS": "iOS", "WINDOWS": "Windows", "MACOS": "macOS", "LINUX": "Linux", "CHROMEOS": "ChromeOS",
	}
)

// BrowserName returns how users read a browser of Terms, such as CHROME/WINDOWS: "Chrome, Windows". It is empty for any other text, so
// that no text of a caller enters a message.
func BrowserName(browser string) string {
	name, system, _ := strings.Cut(browser, "/")
	if browserNames[name] == "" || systemNames[system] == "" {
		return ""
	}
	return browserNames[name] + ", " + systemNames[system]
}

// Browsers returns all browsers of Terms, sorted.
func Browsers() []string {
	var all []string
	for name := range browserNames {
		for system := range systemNames {
			all = append(all, name+"/"+system)
		}
	}
	slices.Sort(all)
	return all
}
