package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// maxTries bounds one update. Racers of one replica queue, so as many replicas must win in between.
	maxTries = 24
	// backoff is the longest first wait after a conflict; it grows with each.
	backoff = 4 * time.Millisecond
)

// Update implements verification.Store. It costs one write where this replica knows the current state, which it does
// unless somebody else just wrote; what it knew is never an answer: a mutation that finds nothing to do is asked again
// with the state of now.
func (s *Store) Update(ctx context.Context, id string, mutate verification.Mutation) (verification.Request, error) {
	if err := ctx.Err(); err != nil {
		return verification.Request{}, err
	}
	unlock, err := s.turns.lock(ctx, id)
	if err != nil {
		return verification.Request{}, err
	}
	defer unlock()
	before, after, err := s.mutate(ctx, id, mutate)
	if err != nil || after == nil {
		return answerWith(before, err)
	}
	if err := s.release(ctx, before, after); err != nil {
		return verification.Request{}, err
	}
	return after.answer()
}

// answerWith returns the state that an update left as it is, with the reason.
func answerWith(e *entry, reason error) (verification.Request, error) {
	if e == nil {
		return verification.Request{}, reason
	}
	r, err := e.answer()
	if err != nil {
		return verification.Request{}, err
	}
	if errors.Is(reason, verification.ErrUnchanged) {
		return r, nil
	}
	return r, reason
}

// declined is a mutation's own error.
type declined struct{ error }

// mutate returns the states before and after a mutation; after is nil where nothing was written.
func (s *Store) mutate(ctx context.Context, id string, mutate verification.Mutation) (before, after *entry, err error) {
	current, fresh := s.lookup(id), false
	var sent []attempted
	for try := range maxTries {
		if current == nil || current.kind != KindRequest {
			if current, err = s.current(ctx, id); err != nil {
				return nil, nil, err
			}
			fresh = true
			if origin := originOf(current, sent); origin != nil {
				return origin, current, nil
			}
		}
		after, intended, err := s.step(ctx, current, mutate)
		var (
			no      declined
			unknown uncertain
		)
		switch {
		case err == nil:
			return current, after, nil
		case errors.As(err, &no) && fresh:
			return current, nil, no.error
		case errors.As(err, &no):
			// Nothing is declined for a state that may be gone.
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case errors.As(err, &unknown):
			sent = append(sent, attempted{origin: current, intended: intended})
		case errors.Is(err, verification.ErrConflict):
			if err := pause(ctx, try); err != nil {
				return nil, nil, err
			}
		case errors.Is(err, verification.ErrContent) && !fresh:
			// Perhaps not for its content, but for that of a request that is gone.
		default:
			return nil, nil, err
		}
		current = nil
	}
	return nil, nil, unavailable("update request", fmt.Errorf("lost %d races", maxTries))
}

// step applies a mutation to one state and writes the result, which is also returned as it was meant.
func (s *Store) step(ctx context.Context, current *entry, mutate verification.Mutation) (*entry, verification.Request, error) {
	before, err := current.answer()
	if err != nil {
		return nil, before, err
	}
	now := s.now()
	next, err := before.Apply(mutate, now)
	if err != nil {
		return nil, before, declined{err}
	}
	after, err := s.write(ctx, current, &next, now)
	return after, next, err
}

// write stores r as the successor of current.
func (s *Store) write(ctx context.Context, current *entry, r *verification.Request, now time.Time) (*entry, error) {
	o, err := toObject(current.object, r, now)
	if err != nil {
		return nil, err
	}
	after, err := s.api.putStatus(ctx, o)
	if err != nil {
		return nil, err
	}
	s.recent.wrote(after)
	s.notifier.Notify(after.Name)
	return after, nil
}

// attempted is a write whose outcome nobody knows.
type attempted struct {
	origin   *entry
	intended verification.Request
}

// originOf returns the state that the current one was made from, if one of these writes made it. Two writers that
// decide exactly the same in the same microsecond cannot be told apart, and need not be.
func originOf(current *entry, sent []attempted) *entry {
	if current.kind != KindRequest {
		return nil
	}
	for _, a := range sent {
		if current.UID == a.origin.UID && current.ResourceVersion != a.origin.ResourceVersion &&
			sameState(current.request, a.intended) {
			return a.origin
		}
	}
	return nil
}

// sameState reports whether two states differ in nothing but their versions.
func sameState(a, b verification.Request) bool {
	a.Version, b.Version = "", ""
	return reflect.DeepEqual(a, b)
}

// pause lets the winner of a race get ahead.
func pause(ctx context.Context, try int) error {
	timer := time.NewTimer(rand.N(backoff * time.Duration(1+min(try, 8)))) //nolint:gosec // jitter is no secret
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release ends the earlier bindings of the senders that were bound by the write from before to after: a sender has one
// live binding. Without this the deletion of the later request, or its ninth sender, would bring the earlier one back
// at every replica that did not see the later. It waits for the watch to bring our own write, because every binding that
// was acknowledged before is older, and costs a write only where the sender is still bound to another request that is
// open. A failure fails the update: what is not acknowledged is sent again, and binds again.
func (s *Store) release(ctx context.Context, before, after *entry) error {
	senders := boundSince(before, after)
	if len(senders) == 0 {
		return nil
	}
	bound, err := s.bindingsSince(ctx, after.ResourceVersion)
	if err != nil {
		return err
	}
	for _, c := range senders {
		for _, e := range bound(c.Binding) {
			if e.Name == after.Name || e.final() || e.request.BoundAt(c.Binding).After(c.BoundAt) {
				continue
			}
			if err := s.unbind(ctx, e.Name, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// boundSince returns the contacts of after that were made since before, or made again: the failure of an earlier try may
// have left its work undone.
func boundSince(before, after *entry) []verification.Contact {
	var since []verification.Contact
	for _, c := range after.request.Contacts {
		if !before.request.BoundAt(c.Binding).Equal(c.BoundAt) {
			since = append(since, c)
		}
	}
	return since
}

// unbind removes the sender from a request that is still open, unless he was bound to it later.
func (s *Store) unbind(ctx context.Context, name string, later verification.Contact) error {
	_, _, err := s.mutate(ctx, name, func(r *verification.Request, _ time.Time) error {
		kept := make([]verification.Contact, 0, len(r.Contacts))
		for _, c := range r.Contacts {
			if c.Binding != later.Binding || c.BoundAt.After(later.BoundAt) {
				kept = append(kept, c)
			}
		}
		if r.Phase.Final() || len(kept) == len(r.Contacts) {
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
