package verification

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// CodeSecrets are the secrets that the codes of a request may have been made with. A kind without secrets cannot be checked, and no code
// of it counts as wrong.
type CodeSecrets struct {
	// Session are those of the messenger that proved the request, for its session codes.
	Session [][]byte
	// Delivered are those of the account at Request.Method, for the code that was sent to the number.
	Delivered [][]byte
}

// SecretsFunc returns the secrets of the codes of a request, of which the project may have lost some.
type SecretsFunc = func(*Request) CodeSecrets

// errNoSecret means that a code cannot be checked.
var errNoSecret = errors.New("the account's secret is gone")

// retryNoSecret is how long a client should wait for the secret.
const retryNoSecret = 30 * time.Second

// ConfirmSession moves a request to VERIFIED if the code is one of its session codes, and it is proven, or the delivered one, for the
// client that ctx names. A code is redeemed once. testKey is the mode of its key; a request of the other mode is ErrNotFound. Of an error
// the cause is one of the package's Error values; a wrong code is counted before it is refused.
func (s *Service) ConfirmSession(
	ctx context.Context, id string, testKey bool, code SessionCode, secrets SecretsFunc, wanted EventKinds,
) (Request, error) {
	isHidden := func(r *Request) bool { return !r.IsVisibleTo(testKey) }
	request, err := s.enterCode(ctx, id, isHidden, func(r *Request, now time.Time) error {
		return r.ConfirmSession(s.matcher(code, secrets), now, wanted)
	})
	if err != nil {
		return request, fmt.Errorf("confirm request: %w", err)
	}
	if s.Observer != nil && !request.Test {
		s.Observer.Verified(request.UsedMethod(), request.VerifiedAt.Sub(request.CreatedAt))
		s.Observer.SessionStep(SessionConfirmed)
	}
	return request, nil
}

// CheckSessionCode returns the present state of a proven request if the code is one of its session codes, and changes nothing then. The
// delivered code proves the request, in one write. It is for the page, which passes the user on to the client. A wrong code is counted, as
// by ConfirmSession. If the store fails to count it, the request's next code is compared only after it was counted: a right one needs no
// write, so its answer would differ from that of a wrong one for as long as the store can be read and not written. Calls for the same
// request must not overlap.
func (s *Service) CheckSessionCode(
	ctx context.Context, id string, code SessionCode, secrets SecretsFunc, wanted EventKinds,
) (Request, error) {
	if err := s.countFormerCode(ctx, id, wanted); err != nil {
		return Request{}, fmt.Errorf("count former code: %w", err)
	}
	var (
		wrong    bool
		now, end time.Time
	)
	isHidden := func(*Request) bool { return false }
	request, err := s.enterCode(ctx, id, isHidden, func(r *Request, at time.Time) error {
		err := r.CheckSessionCode(s.matcher(code, secrets), at, wanted)
		wrong, now, end = errors.Is(err, ErrWrongCode), at, r.EndsAt()
		return err
	})
	if wrong && !errors.Is(err, ErrWrongCode) {
		s.rememberUncounted(id, end, now)
	}
	return request, err
}

// countFormerCode counts the wrong code of a request that the store could not count before, if there is one. One whose count was stored
// and only the answer lost is counted twice: a try too few is better than one too many.
func (s *Service) countFormerCode(ctx context.Context, id string, wanted EventKinds) error {
	if _, found := s.uncounted.Load(id); !found {
		return nil
	}
	var ended error
	request, err := s.store.Update(ctx, id, func(r *Request, now time.Time) error {
		if ended = r.checkConfirmation(now); ended == nil {
			r.countWrongCode(now, wanted)
		}
		return ended
	})
	switch {
	case err == nil:
		s.observeWrongCode(&request)
	case ended == nil || !errors.Is(err, ended):
		return err
	}
	s.uncounted.Delete(id)
	return nil
}

// rememberUncounted records a wrong code that the store could not count, and forgets those of requests that have ended.
func (s *Service) rememberUncounted(id string, end, now time.Time) {
	s.uncounted.Range(func(id, end any) bool {
		if now.After(end.(time.Time)) { //nolint:forcetypeassert // only times are put in
			s.uncounted.Delete(id)
		}
		return true
	})
	s.uncounted.Store(id, end)
}

func (s *Service) matcher(code SessionCode, secrets SecretsFunc) func(*Request) (CodeMatch, error) {
	return func(r *Request) (CodeMatch, error) { return s.codes.matchCode(r, code, secrets(r)) }
}

// enterCode applies a mutation that a wrong code changes, too. A hidden request is not found.
func (s *Service) enterCode(ctx context.Context, id string, isHidden func(*Request) bool, mutate Mutation) (Request, error) {
	if !IsRequestID(id) {
		return Request{}, ErrNotFound
	}
	var (
		reason error
		before Request
	)
	request, err := s.store.Update(ctx, id, func(r *Request, now time.Time) error {
		reason, before = nil, *r
		if isHidden(r) {
			return errOtherMode
		}
		reason = mutate(r, now)
		if errors.Is(reason, ErrWrongCode) {
			return nil // the count is stored
		}
		return reason
	})
	switch {
	case err == nil && errors.Is(reason, ErrWrongCode):
		s.observeWrongCode(&request)
		return request, refuseCode(reason, &request)
	case errors.Is(err, errNoSecret):
		return Request{}, refuseCode(reason, &request)
	case err != nil && reason != nil && errors.Is(err, reason):
		return request, refuseCode(reason, &request)
	case err != nil:
		return Request{}, fmt.Errorf("enter session code: %w", err)
	}
	if reason == nil && before.Via != ViaCode {
		s.observeRedeemed(&before, &request)
	}
	return request, nil
}

// observeRedeemed notifies the observer if a change entered the delivered code.
func (s *Service) observeRedeemed(before, r *Request) {
	if s.Observer == nil || r.Test || r.Via != ViaCode {
		return
	}
	s.Observer.CodeRedeemed(r)
	if !before.IsProven() {
		s.Observer.SessionStep(SessionProven)
	}
}

func (s *Service) observeWrongCode(r *Request) {
	if s.Observer == nil || r.Test {
		return
	}
	s.Observer.SessionStep(SessionWrongCode)
	if r.Phase == Expired {
		s.Observer.SessionStep(SessionTriesUsedUp)
	}
}

// refuseCode returns what a client reads of the reason why a code does not confirm a request.
func refuseCode(reason error, r *Request) error {
	shown := &Error{Err: reason}
	switch {
	case errors.Is(reason, ErrWrongCode) && r.Phase == Expired:
		shown.Code, shown.Field, shown.Message = CodeWrongCode, "code", "The code is wrong, and it was the last try: the verification has ended. Start another one."
	case errors.Is(reason, ErrWrongCode):
		shown.Code, shown.Field = CodeWrongCode, "code"
		shown.Message = fmt.Sprintf("The code is wrong. Tries that are left: %d.", r.TriesLeft())
	case errors.Is(reason, ErrNoDelivered):
		shown.Code, shown.Field = CodeInvalidCode, "code"
		shown.Message = "No code was sent to the number of this verification, so its code has six digits. Nothing was counted."
	case errors.Is(reason, errNoSecret):
		shown.Code, shown.RetryAfter = CodeChannelNotReady, retryNoSecret
		shown.Message = "The project's account that this code belongs to cannot be used right now, so no code can be checked. Try again later; nothing was counted."
	case errors.Is(reason, ErrNotProven) && r.DeliversCode():
		shown.Code, shown.Message = CodeNotProven, "No message of the user counts, so only the eight digits that were sent to the number can confirm this verification. Nothing was counted."
	case errors.Is(reason, ErrNotProven):
		shown.Code, shown.Message = CodeNotProven, "The user has not sent the message yet, so there is no code. Wait until the status has the hint AWAITING_CONFIRMATION."
	case errors.Is(reason, ErrAlreadyConfirmed):
		shown.Code, shown.Message = CodeAlreadyConfirmed, "A code of this verification was redeemed before. If that was your own call whose answer was lost, the status says VERIFIED."
	case errors.Is(reason, ErrNoConfirmation):
		shown.Code, shown.Message = CodeNoConfirmation, "This verification was not started with assurance SESSION: it needs no confirmation. Ask for its status."
	default:
		shown.Code, shown.Message = CodeRequestExpired, "This verification has ended without being confirmed. Start another one."
	}
	return shown
}

// Cancel ends a request of LevelSession whose user gave it up on the page.
func (s *Service) Cancel(ctx context.Context, id string, wanted EventKinds) (Request, error) {
	changed := false
	request, err := s.store.Update(ctx, id, func(r *Request, now time.Time) error {
		err := r.Cancel(now, wanted)
		changed = err == nil
		return err
	})
	if err != nil {
		return request, fmt.Errorf("cancel request: %w", err)
	}
	if changed && s.Observer != nil && !request.Test {
		s.Observer.SessionStep(SessionCanceled)
	}
	return request, nil
}

// RecordWrongNumber records that the user of a request's page went back because the number is not theirs; see Request.RecordWrongNumber.
func (s *Service) RecordWrongNumber(ctx context.Context, id string) (Request, error) {
	request, err := s.store.Update(ctx, id, func(r *Request, now time.Time) error { return r.RecordWrongNumber(now) })
	if err != nil {
		return request, fmt.Errorf("record wrong number: %w", err)
	}
	return request, nil
}

// DeclineProven ends the request with that id by the prover's answer "Not me". isProver reports whether the answer is the prover's. For a
// request that is verified the outcome is OutcomeVerified, without a change.
func (s *Service) DeclineProven(
	ctx context.Context, id string, m Message, isProver func(*Request) bool, wanted EventKinds,
) (Receipt, error) {
	if !IsRequestID(id) {
		return Receipt{Outcome: OutcomeUnknown}, nil
	}
	receipt, err := s.applyTransition(WithCaller(ctx, m.asCaller()), id, m, wanted, func(r *Request, now time.Time) error {
		return r.DeclineProven(isProver, now, wanted)
	})
	if err != nil {
		return receipt, fmt.Errorf("decline request: %w", err)
	}
	if receipt.Request.Phase == Verified {
		receipt.Outcome = OutcomeVerified
	}
	return receipt, nil
}

// DeclineAwaiting is DeclineProven for the request that the sender behind m.Binding was bound to last, if that is proven.
func (s *Service) DeclineAwaiting(ctx context.Context, m Message, wanted EventKinds) (Receipt, error) {
	awaiting, err := s.store.Awaiting(WithCaller(ctx, Sender(m.Binding)), m.Binding)
	switch {
	case errors.Is(err, ErrNotFound):
		return Receipt{Outcome: OutcomeUnknown}, nil
	case errors.Is(err, ErrTooManyUnknown):
		return Receipt{Outcome: OutcomeLimited}, nil
	case err != nil:
		return Receipt{}, fmt.Errorf("find the request of an answer: %w", err)
	}
	return s.DeclineProven(ctx, awaiting.ID, m, func(r *Request) bool { return !r.BoundAt(m.Binding).IsZero() }, wanted)
}
