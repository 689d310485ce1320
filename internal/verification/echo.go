package verification

import (
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
	r.addContact(Contact{Binding: sender.Binding, BoundAt: now, Kind: ContactEcho, Nonce: sender.Nonce})
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

// answeredEcho returns nil if the message answers the question of an echo in time.
func (r *Request) answeredEcho(e Evidence, answers func(Contact) bool, now time.Time) error {
	if err := r.checkMessage(e, now); err != nil {
		return err
	}
	for _, c := range r.Contacts {
		if c.Kind == ContactEcho && answers(c) && !e.SentAt.Before(c.BoundAt.Truncate(time.Second)) {
			return nil
		}
	}
	return ErrNotAsked
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
	return r.Verify(e, now, wanted)
}

// Decline ends a pending request by the answer to the message that was sent to the claimed number. For one that ended without a
// verification it is ErrUnchanged.
func (r *Request) Decline(e Evidence, answers func(Contact) bool, now time.Time, wanted EventKinds) error {
	if r.Phase == Expired {
		return ErrUnchanged
	}
	if err := r.answeredEcho(e, answers, now); err != nil {
		return err
	}
	r.addHint(HintDeclined, now)
	r.Phase = Expired
	r.makeEventDue(now, wanted)
	return nil
}
