package kubernetes

import (
	"context"
	"errors"
	"fmt"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Delete implements verification.Store. Version and UID go with the call as preconditions, so that neither a later
// state nor a later request of the same id is ever deleted.
func (s *Store) Delete(ctx context.Context, id, version string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e := s.cachedEntry(id)
	if e == nil || e.kind == KindGone || e.ResourceVersion != version {
		var err error
		if e, err = s.readObject(ctx, id); err != nil {
			return ignoreNotFound(err)
		}
		if e.kind != KindGone && e.ResourceVersion != version {
			return verification.ErrConflict
		}
	}
	if e.kind == KindGone {
		return nil // it is being deleted, and held by a foreign finalizer
	}
	err := s.api.deleteObject(ctx, e.Name, e.UID, version)
	var unknown unknownOutcomeError
	if (errors.As(err, &unknown) || errors.Is(err, verification.ErrConflict)) && ctx.Err() == nil {
		return s.resolveDeletion(ctx, e, err)
	}
	if err = ignoreNotFound(err); err == nil {
		s.recordDeletion(e)
	}
	return preferContextError(ctx, err)
}

// resolveDeletion finds the outcome of a deletion that got no answer, or a conflict: the state that this replica knew may be that
// of an object that is already deleted.
func (s *Store) resolveDeletion(ctx context.Context, e *entry, failure error) error {
	current, err := s.readObject(ctx, e.Name)
	switch {
	case errors.Is(err, verification.ErrNotFound):
		s.recordDeletion(e)
		return nil
	case err != nil:
		return fmt.Errorf("read request after deletion: %w", err)
	case current.kind == KindGone:
		return nil
	case errors.Is(failure, verification.ErrConflict):
		return verification.ErrConflict
	case current.UID != e.UID:
		return nil // another object has the name by now
	case current.ResourceVersion != e.ResourceVersion:
		return verification.ErrConflict
	default:
		return failure // it may still happen
	}
}

// recordDeletion records that an object was deleted, before the watch brings that. One that a finalizer holds is no request any
// more, but takes room until the watch brings its removal.
func (s *Store) recordDeletion(e *entry) {
	gone := *e
	gone.kind = KindGone
	s.ownWrites.recordWrite(&gone)
	if len(e.Finalizers) == 0 {
		s.limits.removeStored(e.Name)
	}
	s.notifier.Notify(e.Name)
}

// ignoreNotFound returns nil for ErrNotFound.
func ignoreNotFound(err error) error {
	if errors.Is(err, verification.ErrNotFound) {
		return nil
	}
	return err
}
