package verification

import (
	"errors"
	"slices"
	"time"
)

// HintKind is why a request is not verified yet, or never was, spelled as the API answers it.
type HintKind string

// The hints. None says anything about a number.
const (
	// HintNumberHidden means that the sender of the code hides the number, and the project accepts no other proof of it. To do: offer
	// Telegram. *WhatsApp does not show us your number. Please use Telegram.*
	HintNumberHidden HintKind = "NUMBER_HIDDEN"
	// HintOtherNumber means that the code came from another number. To do: show the number that was typed, and a way to correct it. *The
	// message came from another number. Please send it from the phone with this number.*
	HintOtherNumber HintKind = "OTHER_NUMBER"
	// HintTooLate means that the code came after the request's time. To do: start anew. *The message came too late. Please start again.*
	HintTooLate HintKind = "TOO_LATE"
	// HintAwaitingContact means that the sender of the code is asked to share the contact. To do: *Please tap “Share my phone number” in
	// the chat.*
	HintAwaitingContact HintKind = "AWAITING_CONTACT"
	// HintAwaitingConfirmation means that the claimed number is asked to confirm, or that it is proven and the client is to redeem one
	// of the session codes. To do: *Please tap “Confirm” in the chat.* After half a minute offer another method, too. At level Session
	// the form: *Please enter the six digits from the chat.* With `hiddenNumbers: Echo` *Confirm* comes first, under the same hint: show
	// both.
	HintAwaitingConfirmation HintKind = "AWAITING_CONFIRMATION"
	// HintTextChanged means that the code came in another text than the prepared one; its sender is asked to confirm, once at most. To
	// do: *Please tap “Confirm” in the chat.*
	HintTextChanged HintKind = "TEXT_CHANGED"
	// HintTextRefused means that the code came in a text that never counts: an edited or forwarded one, or a caption. To do: the link.
	// *Please open the link again and send the message as it is.*
	HintTextRefused HintKind = "TEXT_REFUSED"
	// HintContactRefused means that the contact which the sender of the code shared was not their own. To do: *Please share your own
	// number with the button in the chat.*
	HintContactRefused HintKind = "CONTACT_REFUSED"
	// HintNumberAnonymous means that it was their own, with a number that is not that of a telephone line. To do: offer another method.
	// *Your Telegram account has an anonymous number. Please use WhatsApp, or an account with a real number.*
	HintNumberAnonymous HintKind = "NUMBER_ANONYMOUS"
	// HintNoQuestion means that the messenger never delivers the question that the sender of the code is to answer. To do: offer another
	// method, and the link, for users whose number WhatsApp shows to businesses. *Please use Telegram, or open the link again and send
	// the message as it is.*
	HintNoQuestion HintKind = "NO_QUESTION"
	// HintDeclined means that the owner of the number answered "Not me", which ended the request. To do: [nothing more](#not-me) than
	// *This number cannot be verified right now. Please try again later.*
	HintDeclined HintKind = "DECLINED"
	// HintWrongCode means that too many wrong session codes were entered, which ended the request. To do: start anew. *The digits were
	// wrong too often. Please start again.*
	HintWrongCode HintKind = "WRONG_CODE"
	// HintCanceled means that the user gave up on the page, or the client canceled, which ended the request. To do: start anew. *This
	// was canceled. Please start again.*
	HintCanceled HintKind = "CANCELED"
	// HintNumberWrong means that the user of the page went back because the number is not theirs. Anyone with the page can say so. To
	// do: the form for the number, beside what was shown. *Please correct your number.* Cancel the request when another number is sent.
	HintNumberWrong HintKind = "NUMBER_WRONG"
	// HintCodeNotSent means that no code could be sent, for a reason that does not depend on the number. To do: the link of the same
	// init. *We cannot send a code right now. Please send us a message instead.* If it lasts: [`CodesReady`](conditions.md#codesready) or
	// [`GatewayReady`](conditions.md#gatewayready).
	HintCodeNotSent HintKind = "CODE_NOT_SENT"
)

// hintKinds are all of them.
var hintKinds = [...]HintKind{
	HintNumberHidden, HintOtherNumber, HintTooLate, HintAwaitingContact, HintAwaitingConfirmation, HintTextChanged, HintTextRefused,
	HintContactRefused, HintNumberAnonymous, HintNoQuestion, HintDeclined, HintWrongCode, HintCanceled,
	HintNumberWrong, HintCodeNotSent,
}

// HintKinds returns all hints.
func HintKinds() []HintKind { return slices.Clone(hintKinds[:]) }

// Hint is the first occurrence of its kind. Later ones change nothing, so that a stranger with the code causes few writes: only what
// keeps a question from being answered counts again once it was asked anew, and what HintNumberWrong would hide.
type Hint struct {
	Kind HintKind
	At   time.Time
}

// addHint adds a hint, and reports whether it is news: the first of its kind, or one that an earlier hint of its kind no longer says.
func (r *Request) addHint(kind HintKind, now time.Time) bool {
	i := r.indexOfHint(kind)
	if i >= 0 && !r.isOutdated(kind) {
		return false
	}
	if i >= 0 {
		r.Hints = slices.Delete(slices.Clone(r.Hints), i, i+1) // as many as before: the progress of a page never falls
	}
	r.Hints = append(r.Hints, Hint{Kind: kind, At: now})
	return true
}

// indexOfHint returns where the hint of that kind is; -1 if there is none.
func (r *Request) indexOfHint(kind HintKind) int {
	return slices.IndexFunc(r.Hints, func(h Hint) bool { return h.Kind == kind })
}

// isOutdated reports whether the hint of that kind is from before a question that was asked again, from before what keeps that from
// being answered, or from before the user of the page called the number wrong: anyone can, and would hide it.
func (r *Request) isOutdated(kind HintKind) bool {
	switch kind {
	case HintAwaitingContact:
		return r.lastHint().Kind.keepsFromAnswer()
	case HintOtherNumber, HintNumberHidden:
		return r.indexOfHint(kind) < r.indexOfHint(HintNumberWrong)
	default:
	}
	return kind.keepsFromAnswer() && r.indexOfHint(kind) < r.indexOfHint(HintAwaitingContact)
}

// keepsFromAnswer reports whether the hint is why the question for a contact is not answered.
func (k HintKind) keepsFromAnswer() bool {
	switch k {
	case HintTextRefused, HintContactRefused, HintNumberAnonymous, HintNoQuestion:
		return true
	default:
		return false
	}
}

// addAttention adds a hint to a pending request, and makes its event due if that is wanted and it is the first of its kind, so that a
// sender who alternates causes few events. It reports whether it is news.
func (r *Request) addAttention(kind HintKind, now time.Time, wanted EventKinds) bool {
	isFirst := r.indexOfHint(kind) < 0
	if !r.addHint(kind, now) {
		return false
	}
	if isFirst && r.Phase == Pending && wanted.Wants(Event{Kind: EventAttention, Test: r.Test}) {
		r.makeEventDue(now, wanted)
	}
	return true
}

// RecordWrongNumber adds HintNumberWrong to a pending request, unless a message came that may still verify it. It makes no event due, and
// everything else about the request stays as it is. If nothing changes it is ErrUnchanged.
func (r *Request) RecordWrongNumber(now time.Time) error {
	if r.Phase != Pending || !now.Before(r.EndsAt()) {
		return ErrUnchanged
	}
	switch r.lastHint().Kind {
	case "", HintOtherNumber, HintNumberHidden, HintCodeNotSent:
		if r.addHint(HintNumberWrong, now) {
			return nil
		}
	default:
	}
	return ErrUnchanged
}

// HintOfMessage is HintAt without what the user of the page said: HintNumberWrong changes neither what the page shows nor an event.
func (r *Request) HintOfMessage(now time.Time) HintKind {
	return r.withoutWrongNumber().HintAt(now)
}

// withoutWrongNumber returns the request without HintNumberWrong.
func (r *Request) withoutWrongNumber() *Request {
	i := r.indexOfHint(HintNumberWrong)
	if i < 0 {
		return r
	}
	without := *r
	without.Hints = slices.Delete(slices.Clone(r.Hints), i, i+1)
	return &without
}

// lastHint returns the latest hint; its zero value if there is none.
func (r *Request) lastHint() Hint {
	if len(r.Hints) == 0 {
		return Hint{}
	}
	return r.Hints[len(r.Hints)-1]
}

// hintBefore returns the latest hint from before a time; its zero value if there is none.
func (r *Request) hintBefore(end time.Time) Hint {
	for _, h := range slices.Backward(r.Hints) {
		if h.At.Before(end) {
			return h
		}
	}
	return Hint{}
}

// HintAt returns the hint to show at now, unless the request is verified: what ended it, or the latest from before its end, which says
// more than that a message came later. It is empty if there is none.
func (r *Request) HintAt(now time.Time) HintKind {
	if r.PhaseAt(now) == Verified {
		return ""
	}
	if last := r.lastHint(); r.Phase == Expired && last.Kind.endsRequest() {
		return last.Kind
	}
	if inTime := r.hintBefore(r.EndsAt()); inTime.Kind != "" {
		return inTime.Kind
	}
	return r.lastHint().Kind
}

// hintFor returns the hint for the reason why a message did not verify a request; empty if there is none.
func (r *Request) hintFor(reason error) HintKind {
	switch {
	case errors.Is(reason, ErrWrongNumber):
		return HintOtherNumber
	case errors.Is(reason, ErrTextChanged):
		return HintTextChanged
	case errors.Is(reason, ErrNumberHidden):
		return HintNumberHidden
	case errors.Is(reason, errBeforeRequest):
		return "" // a copy of what was sent for an earlier request with the same code
	case errors.Is(reason, ErrOutOfTime), errors.Is(reason, ErrFinal) && r.Phase == Expired && !r.lastHint().Kind.endsRequest():
		return HintTooLate
	default:
		return ""
	}
}
