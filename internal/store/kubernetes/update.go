package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// maxTries bounds one update. Racers of one replica queue, so as many replicas must win in between.
	maxTries = 24
	// backoff is the longest first wait after a conflict; it grows with each.
	conflictBackoff = 4 * time.Millisecond
)

// Update implements verification.Store. It costs one write if this replica knows the current state, which it does unless
// another client just wrote. A cached state is never an answer: if a mutation refuses it, the mutation is applied to the
// current one.
func (s *Store) Update(ctx context.Context, id string, mutate verification.Mutation) (verification.Request, error) {
	unlock, err := s.locks.lock(ctx, id)
	if err != nil {
		return verification.Request{}, fmt.Errorf("wait for lock: %w", err)
	}
	defer unlock()
	before, after, reason := s.updateObject(ctx, id, mutate)
	switch {
	case reason == nil:
		err = s.endEarlierBindings(ctx, after, boundSince(before, after))
	case errors.Is(reason, verification.ErrUnchanged) && !before.isFinal():
		// It may be a copy of a message that was not acknowledged, because this failed after its write.
		err = s.endEarlierBindings(ctx, before, sharingContacts(before))
	}
	switch {
	case err != nil:
		return verification.Request{}, fmt.Errorf("end earlier bindings: %w", err)
	case reason != nil:
		return answerWith(before, reason)
	default:
		return after.toRequest()
	}
}

// answerWith returns the state that an update did not change, with the reason.
func answerWith(e *entry, reason error) (verification.Request, error) {
	if e == nil {
		return verification.Request{}, reason
	}
	r, err := e.toRequest()
	if err != nil {
		return verification.Request{}, fmt.Errorf("read unchanged object: %w", err)
	}
	if errors.Is(reason, verification.ErrUnchanged) {
		return r, nil
	}
	return r, reason
}

// mutationError is a mutation's own error.
type mutationError struct{ error }

// updateObject returns the states before and after a mutation; after is nil if nothing was written.
func (s *Store) updateObject(ctx context.Context, id string, mutate verification.Mutation) (before, after *entry, err error) {
	current, fresh := s.cachedEntryOrCode(id), false
	var sent []unconfirmedWrite
	for try := range maxTries {
		if current == nil || current.kind != KindRequest {
			if current, err = s.readCurrent(ctx, id); err != nil {
				return nil, nil, fmt.Errorf("read current request: %w", err)
			}
			fresh = true
			if origin := originOf(current, sent); origin != nil {
				return origin, current, nil
			}
		}
		after, intended, err := s.applyMutation(ctx, current, mutate)
		var (
			no      mutationError
			unknown unknownOutcomeError
		)
		switch {
		case err == nil:
			return current, after, nil
		case errors.As(err, &no) && fresh:
			return current, nil, no.error
		case errors.As(err, &no):
			// The state may be outdated: decide on the current one.
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case errors.As(err, &unknown):
			sent = append(sent, unconfirmedWrite{origin: current, intended: intended})
		case errors.Is(err, verification.ErrConflict):
			if err := waitAfterConflict(ctx, try); err != nil {
				return nil, nil, fmt.Errorf("wait after conflict: %w", err)
			}
		case errors.Is(err, verification.ErrContent) && !fresh:
			// It may be the content of a request that was deleted since.
		default:
			return nil, nil, err
		}
		current = nil
	}
	return nil, nil, unavailableError("update request", fmt.Errorf("lost %d races", maxTries))
}

// applyMutation applies a mutation to one state and writes the result. It returns both the written and the intended state.
func (s *Store) applyMutation(ctx context.Context, current *entry, mutate verification.Mutation) (*entry, verification.Request, error) {
	before, err := current.toRequest()
	if err != nil {
		return nil, before, fmt.Errorf("read stored object: %w", err)
	}
	now := s.now()
	next, err := before.Apply(mutate, now)
	if err != nil {
		return nil, before, mutationError{err}
	}
	next.TrimAttempts(keptAttempts)
	after, err := s.writeStatus(ctx, current, &next, now)
	return after, next, err
}

// writeStatus stores r as the successor of current.
func (s *Store) writeStatus(ctx context.Context, current *entry, r *verification.Request, now time.Time) (*entry, error) {
	o, err := toObject(current.object, r, now)
	if err != nil {
		return nil, fmt.Errorf("build object: %w", err)
	}
	after, err := s.api.putStatus(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("replace status: %w", err)
	}
	s.ownWrites.recordWrite(after)
	s.limits.addWritten(after)
	s.notifier.Notify(after.Name)
	return after, nil
}

// unconfirmedWrite is a write whose outcome is unknown.
type unconfirmedWrite struct {
	origin   *entry
	intended verification.Request
}

// originOf returns the state that the current one was made from, if one of these writes made it. Two writers with exactly the same
// result in the same microsecond cannot be distinguished, and need not be, unless they count wrong codes: a count has no time, so it
// is rather counted once more than taken for another's.
func originOf(current *entry, sent []unconfirmedWrite) *entry {
	if current.kind != KindRequest {
		return nil
	}
	for _, a := range sent {
		if current.UID == a.origin.UID && current.ResourceVersion != a.origin.ResourceVersion && a.ledTo(current) &&
			(a.intended.Phase.Final() || a.intended.WrongCodes == a.origin.request.WrongCodes) {
			return a.origin
		}
	}
	return nil
}

// ledTo reports whether the write led to the current state. The event of what it decided may have been delivered since.
func (w *unconfirmedWrite) ledTo(current *entry) bool {
	if sameState(current.request, w.intended) {
		return true
	}
	decided := withoutDelivery(w.intended)
	return !sameState(decided, withoutDelivery(w.origin.request)) && sameState(decided, withoutDelivery(current.request))
}

// withoutDelivery returns a state without what only the delivery of its event writes.
func withoutDelivery(r verification.Request) verification.Request {
	r.Delivery, r.EarlierAttempts, r.Redelivered, r.Epoch = verification.Delivery{}, nil, "", 0
	return r
}

// sameState reports whether two states differ in nothing but their versions.
func sameState(a, b verification.Request) bool {
	a.Version, b.Version = "", ""
	return reflect.DeepEqual(a, b)
}

// waitAfterConflict waits a moment, so that the winner of a race gets ahead.
func waitAfterConflict(ctx context.Context, try int) error {
	timer := time.NewTimer(rand.N(conflictBackoff * time.Duration(1+min(try, 8)))) //nolint:gosec // jitter is no secret
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endEarlierBindings ends the earlier bindings of senders who are bound to a request: a sender has one binding to a request that is
// not decided. Otherwise the deletion of the later request, or its ninth sender, would bring the earlier one back at every replica
// that did not see the later. It waits for the watch to bring the request's own state, because every binding that was acknowledged
// before is older, and writes only if there is one to end. A failure fails the update: a message that is not acknowledged is
// delivered again, and ends them then.
func (s *Store) endEarlierBindings(ctx context.Context, later *entry, senders []verification.Contact) error {
	if len(senders) == 0 {
		return nil
	}
	bound, err := s.bindingsSince(ctx, later.ResourceVersion)
	if err != nil {
		return fmt.Errorf("read bindings: %w", err)
	}
	for _, c := range senders {
		for _, e := range bound(c.Binding) {
			if e.Name == later.Name || isDecided(&e.request) || e.request.BoundAt(c.Binding).After(c.BoundAt) {
				continue
			}
			if err := s.endBinding(ctx, e.Name, c); err != nil {
				return fmt.Errorf("remove contact: %w", err)
			}
		}
	}
	return nil
}

// boundSince returns the senders of after who are to share their contact and who are new or bound anew since before.
func boundSince(before, after *entry) []verification.Contact {
	return slices.DeleteFunc(sharingContacts(after), func(c verification.Contact) bool {
		return before.request.BoundAt(c.Binding).Equal(c.BoundAt)
	})
}

// sharingContacts returns the senders of a request who are to share their contact.
func sharingContacts(e *entry) []verification.Contact {
	return slices.DeleteFunc(slices.Clone(e.request.Contacts), func(c verification.Contact) bool {
		return c.Kind != verification.ContactShare
	})
}

// isDecided reports whether the request keeps its contacts. That of a proven request is its prover, who may still decline it.
func isDecided(r *verification.Request) bool { return r.Phase.Final() || r.IsProven() }

// endBinding removes the sender from a request that is not decided, unless the sender was bound to it later.
func (s *Store) endBinding(ctx context.Context, name string, later verification.Contact) error {
	_, _, err := s.updateObject(ctx, name, func(r *verification.Request, _ time.Time) error {
		kept := make([]verification.Contact, 0, len(r.Contacts))
		for _, c := range r.Contacts {
			if c.Kind != verification.ContactShare || c.Binding != later.Binding || c.BoundAt.After(later.BoundAt) {
				kept = append(kept, c)
			}
		}
		if isDecided(r) || len(kept) == len(r.Contacts) {
			return verification.ErrUnchanged
		}
		r.Contacts = kept
		return nil
	})
	if errors.Is(err, verification.ErrUnchanged) || errors.Is(err, verification.ErrNotFound) {
		return nil
	}
	return err
}
