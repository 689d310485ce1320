package verification

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Message is an authentic message from a messenger.
type Message struct {
	Evidence
	// Text is what the sender wrote or what the button he pressed carries.
	Text string
	// Binding is a keyed hash of (account, sender).
	Binding string
}

// caller returns who sent the message.
func (m *Message) caller() Caller {
	if m.Binding != "" {
		return Sender(m.Binding)
	}
	return Sender(m.Sender.E164())
}

// Outcome is what a message came to. It decides the reply, never the answer to the platform.
type Outcome int

// The outcomes. All of them are final for the message: it is not to be delivered again.
const (
	// OutcomeNothing means that the text holds no code of this project.
	OutcomeNothing Outcome = iota
	// OutcomeUnknown means that it holds a code that no stored request has.
	OutcomeUnknown
	// OutcomeVerified means that this message, or an earlier copy of it, verified the request.
	OutcomeVerified
	// OutcomeWrongNumber means that the sender's number is another one. The request stays as it is.
	OutcomeWrongNumber
	// OutcomeTooLate means that the request is expired, or the message was not sent within its time.
	OutcomeTooLate
	// OutcomeWrongMethod means that the code belongs to another messenger.
	OutcomeWrongMethod
	// OutcomeLimited means that the sender sent too many codes that no request has, and that this one was not looked up.
	OutcomeLimited
	// OutcomeNeedContact means that the messenger did not tell the number; the sender is bound and is to be asked for it.
	OutcomeNeedContact
)

// Receipt is what became of a message.
type Receipt struct {
	Outcome Outcome
	// Request is the one that the outcome is about; its zero value where there is none.
	Request Request
	// Changed says that this very message, at this replica, moved the request: not an earlier copy of it, nor another
	// message. Whoever sees it is the one to tell the sender of the transition.
	Changed bool
}

// better tells whether r says more than other of a message with two codes.
func (r Receipt) better(other Receipt) bool {
	if other.Outcome == OutcomeNothing || other.Outcome == OutcomeUnknown || other.Outcome == OutcomeLimited {
		return true
	}
	return r.Outcome == OutcomeVerified && !other.Changed
}

// Receive matches a message: the code first, then the messenger, then time and the sender's number. The best outcome of
// the codes in it is returned. An error means that nothing is known to be stored and the platform should deliver the
// message again.
func (s *Service) Receive(ctx context.Context, m Message, eventWanted bool) (Receipt, error) {
	ctx = WithCaller(ctx, m.caller())
	best := Receipt{}
	for _, code := range s.project.Extract(m.Text) {
		receipt, err := s.receiveCode(ctx, s.project.RequestID(code), m, eventWanted)
		if err != nil {
			return Receipt{}, err
		}
		if receipt.better(best) {
			best = receipt
		}
	}
	return best, nil
}

func (s *Service) receiveCode(ctx context.Context, id string, m Message, eventWanted bool) (Receipt, error) {
	return s.apply(ctx, id, m, func(r *Request, now time.Time) error {
		if m.Sender.IsZero() {
			return r.Bind(m.Evidence, m.Binding, now)
		}
		return r.Verify(m.Evidence, now, eventWanted)
	})
}

// ReceiveContact completes the request that the sender behind binding sent the code of last, with the number of the
// contact he shared.
func (s *Service) ReceiveContact(ctx context.Context, binding string, e Evidence, eventWanted bool) (Receipt, error) {
	ctx = WithCaller(ctx, Sender(binding))
	awaiting, err := s.store.Awaiting(ctx, binding)
	switch {
	case errors.Is(err, ErrNotFound):
		return Receipt{Outcome: OutcomeUnknown}, nil
	case errors.Is(err, ErrTooManyUnknown):
		return Receipt{Outcome: OutcomeLimited}, nil
	case err != nil:
		return Receipt{}, fmt.Errorf("find the request of a contact: %w", err)
	}
	m := Message{Evidence: e, Binding: binding}
	return s.apply(ctx, awaiting.ID, m, func(r *Request, now time.Time) error {
		return r.Verify(e, now, eventWanted)
	})
}

// apply stores a transition and says what it came to.
func (s *Service) apply(
	ctx context.Context, id string, m Message, mutate func(*Request, time.Time) error,
) (Receipt, error) {
	request, err := s.store.Update(ctx, id, mutate)
	receipt := Receipt{Request: request, Changed: err == nil}
	switch {
	case err == nil && request.Phase == Verified:
		receipt.Outcome = OutcomeVerified
		if s.Observer != nil {
			s.Observer.Verified(request.Method, request.VerifiedAt.Sub(request.CreatedAt))
		}
	case err == nil, errors.Is(err, ErrNoNumber):
		receipt.Outcome = OutcomeNeedContact
	case errors.Is(err, ErrNotFound):
		return Receipt{Outcome: OutcomeUnknown}, nil
	case errors.Is(err, ErrTooManyUnknown):
		return Receipt{Outcome: OutcomeLimited}, nil
	case errors.Is(err, ErrFinal):
		receipt.Outcome = afterFinal(request, m)
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

// afterFinal says what a message means to a request that is final already. A redelivered copy of the message that
// verified it, and the sender's own second tap, must look as that message did.
func afterFinal(r Request, m Message) Outcome {
	switch {
	case r.Phase == Expired:
		return OutcomeTooLate
	case m.Sender.IsZero():
		if r.BoundAt(m.Binding).IsZero() {
			return OutcomeTooLate
		}
		return OutcomeVerified
	case r.Actual == m.Sender:
		return OutcomeVerified
	default:
		return OutcomeWrongNumber
	}
}
