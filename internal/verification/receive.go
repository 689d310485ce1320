package verification

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// Message is an authentic message from a messenger.
type Message struct {
	Evidence
	// Text is the text that the sender wrote, or that of the button that the sender pressed.
	Text string
	// Binding binds the sender if this message alone does not verify: a keyed hash of account and sender if a contact is to
	// follow, and of the message, too, if a confirmation is.
	Binding string
	// OlderBindings are others that the sender may be bound by, such as those from before the key of the hash was replaced.
	OlderBindings []string
	// Prepared returns the texts that were prepared for a request with that code, of which the message must hold one; nil if
	// any text will do.
	Prepared func(r *Request, code Code) iter.Seq[string]
}

// asCaller returns the sender as a caller of the store.
func (m *Message) asCaller() Caller {
	if m.Sender.IsZero() {
		return Sender(m.Binding)
	}
	return Sender(m.Sender.E164()) // its Binding may be another for each message
}

// Outcome is the result of a message for a request. It decides the reply, never the response to the platform.
type Outcome int

// The outcomes. All of them are final for the message: it is not to be delivered again.
const (
	// OutcomeNothing means that the text has no code of this project.
	OutcomeNothing Outcome = iota
	// OutcomeUnknown means that no stored request has its code.
	OutcomeUnknown
	// OutcomeVerified means that this message, or an earlier copy of it, verified the request.
	OutcomeVerified
	// OutcomeWrongNumber means that the sender's number is another one. The request stays as it is.
	OutcomeWrongNumber
	// OutcomeTooLate means that the request is expired, or the message was not sent within its time.
	OutcomeTooLate
	// OutcomeWrongMethod means that the code belongs to another messenger.
	OutcomeWrongMethod
	// OutcomeLimited means that the sender sent too many codes that no request has, and that this one was not looked up; or, with a
	// Request, that it awaits an answer from too many other senders.
	OutcomeLimited
	// OutcomeNeedContact means that the messenger did not give the number; the sender is bound and is to be asked for it.
	OutcomeNeedContact
	// OutcomeNeedConfirmation means that the text was not the prepared one; the sender is to be asked, naming the project.
	OutcomeNeedConfirmation
	// OutcomeTextChanged means the same of a sender who is not asked: a request is asked about once, and by few senders.
	OutcomeTextChanged
	// OutcomeNumberHidden means that the sender's number is hidden, and the project accepts no other proof of it.
	OutcomeNumberHidden
	// OutcomeNeedEcho means that the sender's number is hidden, and that the claimed number is to be asked.
	OutcomeNeedEcho
	// OutcomeDeclined means that the owner of the claimed number ended the request.
	OutcomeDeclined
	// OutcomeProven means that this message, or an earlier copy of it, proved the number of a request of LevelSession, which awaits
	// its confirmation. The sender is to be given the session codes.
	OutcomeProven
)

// Receipt is the result of a message.
type Receipt struct {
	Outcome Outcome
	// Request is the one that the outcome is about; its zero value where there is none.
	Request Request
	// CodeID is the id that the message's code leads to: the request's own, except for a manual request.
	CodeID string
	// Changed is set if this very message, at this replica, moved the request: not an earlier copy of it, nor another message.
	// The sender gets the reply about a transition only then.
	Changed bool
	// Hinted is set if this very message, at this replica, was refused and the first to leave its hint. Only then its sender gets the reply.
	Hinted bool
}

// Receive matches a message: its one code first, then the messenger, then time, the sender's number and the text. After an
// error it is unknown whether anything was stored, and the platform should deliver the message again.
func (s *Service) Receive(ctx context.Context, m Message, wanted EventKinds) (Receipt, error) {
	ctx = WithCaller(ctx, m.asCaller())
	code, found := s.codes.Extract(m.Text)
	if !found {
		return Receipt{}, nil
	}
	return s.applyTransition(ctx, s.codes.RequestID(code), m, wanted, func(r *Request, now time.Time) error {
		switch {
		case m.Sender.IsZero():
			return r.Bind(m.Evidence, m.Binding, now, wanted)
		case m.Prepared != nil && !HoldsPrepared(m.Text, m.Prepared(r, code)):
			return r.AwaitConfirmation(m.Evidence, m.Binding, m.OlderBindings, now, wanted)
		default:
			return r.Verify(m.Evidence, now, wanted)
		}
	})
}

// RefuseHidden handles a text whose sender hides the number from a project that accepts no other proof. It changes nothing but the
// hints of the request.
func (s *Service) RefuseHidden(ctx context.Context, m Message, wanted EventKinds) (Receipt, error) {
	code, found := s.codes.Extract(m.Text)
	if !found {
		return Receipt{}, nil
	}
	ctx = WithCaller(ctx, m.asCaller())
	return s.applyTransition(ctx, s.codes.RequestID(code), m, wanted, func(r *Request, now time.Time) error {
		return r.RefuseHidden(m.Evidence, now)
	})
}

// AwaitEcho handles a text whose sender hides the number, for a project that asks the claimed number then. nonce is what the
// buttons of the question are made from, unless the same sender is bound already, with a nonce of that time.
func (s *Service) AwaitEcho(ctx context.Context, m Message, nonce string, wanted EventKinds) (Receipt, error) {
	code, found := s.codes.Extract(m.Text)
	if !found {
		return Receipt{}, nil
	}
	ctx = WithCaller(ctx, m.asCaller())
	return s.applyTransition(ctx, s.codes.RequestID(code), m, wanted, func(r *Request, now time.Time) error {
		return r.AwaitEcho(m.Evidence, Contact{Binding: m.Binding, Nonce: nonce}, m.OlderBindings, now, wanted)
	})
}

// ConfirmEcho completes the request that a code with that id leads to, after a tap on the button that confirms. answers reports
// whether the tap answers the question of an echo, and comes from the sender who is bound to it.
func (s *Service) ConfirmEcho(
	ctx context.Context, codeID string, m Message, answers func(r *Request, c Contact) bool, wanted EventKinds,
) (Receipt, error) {
	return s.answerEcho(ctx, codeID, m, wanted, func(r *Request, now time.Time) error {
		return r.ConfirmEcho(m.Evidence, func(c Contact) bool { return answers(r, c) }, now, wanted)
	})
}

// Decline ends the request that a code with that id leads to, after a tap on the button that declines. answers reports whether the
// tap answers the question of an echo.
func (s *Service) Decline(
	ctx context.Context, codeID string, m Message, answers func(r *Request, c Contact) bool, wanted EventKinds,
) (Receipt, error) {
	return s.answerEcho(ctx, codeID, m, wanted, func(r *Request, now time.Time) error {
		return r.Decline(m.Evidence, func(c Contact) bool { return answers(r, c) }, now, wanted)
	})
}

func (s *Service) answerEcho(ctx context.Context, codeID string, m Message, wanted EventKinds, mutate Mutation) (Receipt, error) {
	if !IsRequestID(codeID) {
		return Receipt{Outcome: OutcomeUnknown}, nil
	}
	return s.applyTransition(WithCaller(ctx, m.asCaller()), codeID, m, wanted, mutate)
}

// Confirm completes the request that a code with that id leads to, after its sender tapped the button of a prompt. answers
// reports whether the tap answers the prompt that was sent under a binding.
func (s *Service) Confirm(
	ctx context.Context, codeID string, e Evidence, answers func(binding string) bool, wanted EventKinds,
) (Receipt, error) {
	if !IsRequestID(codeID) {
		return Receipt{Outcome: OutcomeUnknown}, nil
	}
	m := Message{Evidence: e}
	return s.applyTransition(WithCaller(ctx, m.asCaller()), codeID, m, wanted, func(r *Request, now time.Time) error {
		return r.Confirm(e, answers, now, wanted)
	})
}

// ReceiveContact completes the request that the sender behind binding sent the code of last, with the number of the
// contact that the sender shared.
func (s *Service) ReceiveContact(ctx context.Context, binding string, e Evidence, wanted EventKinds) (Receipt, error) {
	ctx = WithCaller(ctx, Sender(binding))
	awaiting, err := s.store.Awaiting(ctx, binding)
	if err != nil {
		return receiptWithout(err)
	}
	m := Message{Evidence: e, Binding: binding}
	return s.applyTransition(ctx, awaiting.ID, m, wanted, func(r *Request, now time.Time) error {
		return r.VerifyContact(e, binding, now, wanted)
	})
}

// updateOrHint stores a transition, or the hint that the reason against it gives, and returns that reason.
func (s *Service) updateOrHint(ctx context.Context, id string, wanted EventKinds, mutate Mutation) (Request, error) {
	var reason error
	request, err := s.store.Update(ctx, id, func(r *Request, now time.Time) error {
		reason = mutate(r, now)
		if hint := r.hintFor(reason); hint != "" && r.addAttention(hint, now, wanted) {
			return nil
		}
		return reason
	})
	if err == nil && !errors.Is(reason, ErrUnchanged) {
		err = reason
	}
	return request, err
}

// applyTransition stores a transition and returns the result of its message. The request of a test key meets none: its code is unknown.
func (s *Service) applyTransition(ctx context.Context, id string, m Message, wanted EventKinds, mutate Mutation) (Receipt, error) {
	changed := false
	request, err := s.updateOrHint(ctx, id, wanted, func(r *Request, now time.Time) error {
		if !r.IsVisibleTo(false) { // here and not in its callers, so that no messenger can forget it
			return errOtherMode
		}
		err := mutate(r, now)
		changed = err == nil
		return err
	})
	receipt := Receipt{Request: request, CodeID: id, Changed: changed}
	switch {
	case err == nil:
		receipt.Outcome = outcomeAfterChange(&request, m)
		if changed {
			s.observeChange(&request)
		}
	case errors.Is(err, ErrNoNumber), errors.Is(err, ErrEarlyContact):
		receipt.Outcome = OutcomeNeedContact
	case errors.Is(err, ErrNumberHidden):
		receipt.Outcome = OutcomeNumberHidden
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrNotAsked):
		return Receipt{Outcome: OutcomeUnknown}, nil
	case errors.Is(err, ErrTooManyUnknown):
		return Receipt{Outcome: OutcomeLimited}, nil
	case errors.Is(err, ErrManySenders):
		receipt.Outcome = OutcomeLimited
	case errors.Is(err, ErrTextChanged):
		receipt.Outcome = OutcomeTextChanged
	case errors.Is(err, ErrFinal):
		receipt.Outcome = outcomeAfterFinal(request, m)
	case errors.Is(err, ErrWrongNumber):
		receipt.Outcome = OutcomeWrongNumber
	case errors.Is(err, ErrOutOfTime):
		receipt.Outcome = OutcomeTooLate
	case errors.Is(err, ErrWrongMethod):
		receipt.Outcome = OutcomeWrongMethod
	default:
		return Receipt{}, fmt.Errorf("apply message: %w", err)
	}
	return receipt, nil
}

// observeChange notifies the observer of a transition that this process stored.
func (s *Service) observeChange(r *Request) {
	switch {
	case s.Observer == nil:
	case r.Phase == Verified:
		s.Observer.Verified(r.UsedMethod(), r.VerifiedAt.Sub(r.CreatedAt))
	case r.Phase == Expired:
		s.observeStep(r, SessionDeclined)
	case r.awaitsConfirmation():
		s.observeStep(r, SessionProven)
	}
}

// outcomeAfterChange returns the outcome of a message whose transition is stored.
func outcomeAfterChange(r *Request, m Message) Outcome {
	switch {
	case r.Phase == Verified:
		return OutcomeVerified
	case r.Phase == Expired:
		return OutcomeDeclined
	case r.awaitsConfirmation():
		return OutcomeProven
	case !m.Sender.IsZero():
		return OutcomeNeedConfirmation
	case r.isAwaitingEcho(append([]string{m.Binding}, m.OlderBindings...)):
		return OutcomeNeedEcho
	default:
		return OutcomeNeedContact
	}
}

// observeStep counts a step of a request of LevelSession.
func (s *Service) observeStep(r *Request, step SessionStep) {
	if s.Observer != nil && r.Terms.Level == LevelSession {
		s.Observer.SessionStep(step)
	}
}

// outcomeAfterFinal returns the outcome of a message for a request that is already final, or proven. A redelivered copy of the message that
// decided it, and the sender's own second tap, have the outcome of that message.
func outcomeAfterFinal(r Request, m Message) Outcome {
	succeeded := OutcomeVerified
	if r.awaitsConfirmation() {
		succeeded = OutcomeProven
	}
	switch {
	case r.Phase == Expired:
		return OutcomeTooLate
	case m.Sender.IsZero():
		if r.BoundAt(m.Binding).IsZero() {
			return OutcomeTooLate
		}
		return succeeded
	case phone.Same(r.Actual, m.Sender):
		return succeeded
	default:
		return OutcomeWrongNumber
	}
}
