package kubernetes

import (
	"context"
	"errors"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Delete implements verification.Store. Version and UID go with the call as preconditions, so that neither a later
// state nor a later request of the same id is ever deleted.
func (s *Store) Delete(ctx context.Context, id, version string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e := s.cached(id)
	if e == nil || e.kind == KindGone || e.ResourceVersion != version {
		var err error
		if e, err = s.live(ctx, id); err != nil {
			return missing(err)
		}
		if e.kind != KindGone && e.ResourceVersion != version {
			return verification.ErrConflict
		}
	}
	if e.kind == KindGone {
		return nil // it is on its way out, held by a finalizer that is not ours
	}
	err := s.api.delete(ctx, e.Name, e.UID, version)
	var unknown uncertain
	if (errors.As(err, &unknown) || errors.Is(err, verification.ErrConflict)) && ctx.Err() == nil {
		return s.resolveDeletion(ctx, e, err)
	}
	if err = missing(err); err == nil {
		s.dropped(e)
	}
	return outcome(ctx, err)
}

// resolveDeletion finds out what became of a deletion that was not answered, or that met another state than the one
// which this replica knew: that may be the state of an object that is gone already.
func (s *Store) resolveDeletion(ctx context.Context, e *entry, failure error) error {
	current, err := s.live(ctx, e.Name)
	switch {
	case errors.Is(err, verification.ErrNotFound):
		s.dropped(e)
		return nil
	case err != nil:
		return err
	case current.kind == KindGone:
		return nil
	case errors.Is(failure, verification.ErrConflict):
		return verification.ErrConflict
	case current.UID != e.UID:
		return nil // the life that was to end did
	case current.ResourceVersion != e.ResourceVersion:
		return verification.ErrConflict
	default:
		return failure // it may still happen
	}
}

// dropped notes that an object is gone, before the watch says so. One that a finalizer holds is no request any more, but
// takes room until the watch says that it is removed.
func (s *Store) dropped(e *entry) {
	gone := *e
	gone.kind = KindGone
	s.recent.wrote(&gone)
	if len(e.Finalizers) == 0 {
		s.ledger.forget(e.Name)
	}
	s.notifier.Notify(e.Name)
}

// missing takes what is gone already for deleted.
func missing(err error) error {
	if errors.Is(err, verification.ErrNotFound) {
		return nil
	}
	return err
}
