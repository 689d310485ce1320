package verification

import (
	"errors"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// RefuseHidden returns ErrNumberHidden, or the reason why the message would not count in any case.
func (r *Request) RefuseHidden(e Evidence, now time.Time) error {
	if err := r.checkMessage(e, now); err != nil {
		return err
	}
	return ErrNumberHidden
}

// AwaitEcho records that a sender who hides the number sent the code, and that the claimed number is to be asked. The sender and
// the nonce are stored before anything is sent, so a copy of the message asks the same question: that is ErrUnchanged, also if one
// of the older bindings stands for the sender.
func (r *Request) AwaitEcho(e Evidence, sender Contact, older []string, now time.Time, wanted EventKinds) error {
	if err := r.checkMessage(e, now); err != nil {
		return err
	}
	if r.isAwaitingEcho(append([]string{sender.Binding}, older...)) {
		return ErrUnchanged
	}
	if !r.addContact(Contact{Binding: sender.Binding, BoundAt: now, Kind: ContactEcho, Nonce: sender.Nonce}) {
		return ErrManySenders
	}
	r.addAttention(HintAwaitingConfirmation, now, wanted)
	return nil
}

// isAwaitingEcho reports whether an echo is bound to one of the bindings of a sender.
func (r *Request) isAwaitingEcho(bindings []string) bool {
	_, found := r.EchoOf(bindings)
	return found
}

// EchoOf returns the echo that is bound to one of the bindings of a sender; false if there is none.
func (r *Request) EchoOf(bindings []string) (Contact, bool) {
	i := slices.IndexFunc(r.Contacts, func(c Contact) bool { return c.Kind == ContactEcho && slices.Contains(bindings, c.Binding) })
	if i < 0 {
		return Contact{}, false
	}
	return r.Contacts[i], true
}

// answeredEcho returns nil if the message answers the question of an echo in time. One who was not asked learns nothing else. The
// times of answer and question are not compared: they come from two clocks, and the answer has the nonce of the question.
func (r *Request) answeredEcho(e Evidence, answers func(Contact) bool, now time.Time) error {
	if r.answeredBy(answers) == "" {
		return ErrNotAsked
	}
	return r.checkMessage(e, now)
}

// answeredBy returns the binding of the echo that is answered; empty if there is none.
func (r *Request) answeredBy(answers func(Contact) bool) string {
	i := slices.IndexFunc(r.Contacts, func(c Contact) bool { return c.Kind == ContactEcho && answers(c) })
	if i < 0 {
		return ""
	}
	return r.Contacts[i].Binding
}

// ConfirmEcho verifies the claimed number by the answer to the message that was sent to it. A number that the messenger reports
// must be the claimed one.
func (r *Request) ConfirmEcho(e Evidence, answers func(Contact) bool, now time.Time, wanted EventKinds) error {
	if err := r.answeredEcho(e, answers, now); err != nil {
		return err
	}
	if !e.Sender.IsZero() && !phone.Same(r.Phone, e.Sender) {
		return ErrNotAsked
	}
	e.Sender, e.Assurance = r.Phone, AssuranceEcho
	return r.acceptProof(e, r.answeredBy(answers), now, wanted)
}

// Decline ends a pending request by the answer to the message that was sent to the claimed number. For one that ended without a
// verification it is ErrUnchanged.
func (r *Request) Decline(e Evidence, answers func(Contact) bool, now time.Time, wanted EventKinds) error {
	switch err := r.answeredEcho(e, answers, now); {
	case errors.Is(err, ErrFinal) && r.awaitsConfirmation(): // until a client confirms it
	case errors.Is(err, ErrFinal) && r.IsProven() && r.Phase == Expired && r.DeclinedAt().IsZero(): // see DeclineProven
	case errors.Is(err, ErrFinal) && r.Phase == Expired:
		return ErrUnchanged
	case err != nil:
		return err
	}
	r.endBecause(HintDeclined, now, wanted)
	return nil
}
