package verification

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// redeliverMark begins Request.Redelivered after a redelivery that a client asked for. No annotation begins with it, because an
// annotation begins with the id of a request.
const (
	redeliverMark = "api:"
	// markSymbols is how many random symbols of 5 bits follow: redeliveries of one request must differ.
	markSymbols = 16
)

// storedID matches names of objects, and more: two dots in a row are excluded apart.
var storedID = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// IsStoredID reports whether a store may keep a request under that id: one that IsRequestID accepts, or the name of a manual request.
func IsStoredID(id string) bool { return storedID.MatchString(id) && !strings.Contains(id, "..") }

// CancelByClient ends a pending request of any level because its client no longer needs it. It says nothing about the number. For one
// that was canceled before it is ErrUnchanged, for a verified one ErrFinal, and for any other that has ended ErrOutOfTime.
func (r *Request) CancelByClient(now time.Time, wanted EventKinds) error {
	switch {
	case r.Phase == Verified:
		return ErrFinal
	case r.isCanceled():
		return ErrUnchanged
	case r.Phase == Expired || r.hasLapsed(now):
		return ErrOutOfTime
	}
	r.endBecause(HintCanceled, now, wanted)
	return nil
}

// CancelByClient ends a request for the client that ctx names; testKey is the mode of its key. One that was canceled before is returned as
// it is. Of an error the cause is one of the package's Error values.
func (s *Service) CancelByClient(ctx context.Context, id string, testKey bool, wanted EventKinds) (Request, error) {
	changed := false
	request, err := s.updateStored(ctx, id, testKey, func(r *Request, now time.Time) error {
		err := r.CancelByClient(now, wanted)
		changed = err == nil
		return err
	})
	switch {
	case errors.Is(err, ErrFinal):
		err = &Error{Code: CodeAlreadyVerified, Message: "This verification has succeeded, so it cannot be canceled.", Err: err}
	case errors.Is(err, ErrOutOfTime):
		err = &Error{Code: CodeRequestExpired, Message: "This verification has ended without success, so there is nothing to cancel.", Err: err}
	case err == nil && changed && !request.Test:
		s.observeStep(&request, SessionCanceled)
	}
	if err != nil {
		return request, fmt.Errorf("cancel request: %w", err)
	}
	return request, nil
}

// RedeliverNow makes the event of a request due at once, for the client that ctx names; see Request.Redeliver. Of an error the cause is
// one of the package's Error values.
func (s *Service) RedeliverNow(ctx context.Context, id string, testKey bool, wanted EventKinds) (Request, error) {
	mark := redeliverMark + rand.Text()[:markSymbols]
	request, err := s.updateStored(ctx, id, testKey, func(r *Request, now time.Time) error {
		return r.Redeliver(mark, now, wanted)
	})
	if errors.Is(err, ErrNoEvent) {
		err = &Error{
			Code: CodeNoEvent, Err: err,
			Message: "This verification has no event to send: it is pending, or the project's webhook does not send events of its kind.",
		}
	}
	if err != nil {
		return request, fmt.Errorf("redeliver event: %w", err)
	}
	return request, nil
}

// StoredRequest returns a request for the client that ctx names, also a manual one. Its Delivery may be a moment behind.
func (s *Service) StoredRequest(ctx context.Context, id string, testKey bool) (Request, error) {
	if !IsStoredID(id) {
		return Request{}, ErrNotFound
	}
	request, err := s.store.ReadFinal(ctx, id)
	if err != nil {
		return Request{}, fmt.Errorf("read request: %w", err)
	}
	if request.Test != testKey {
		return Request{}, errOtherMode
	}
	return request, nil
}

// List returns a page of the stored requests; see Lister.
func (s *Service) List(ctx context.Context, q ListQuery) (ListPage, error) {
	page, err := s.store.List(ctx, q)
	if err != nil {
		return ListPage{}, fmt.Errorf("list requests: %w", err)
	}
	return page, nil
}

// updateStored changes a request that an API key of that mode sees.
func (s *Service) updateStored(ctx context.Context, id string, testKey bool, mutate Mutation) (Request, error) {
	if !IsStoredID(id) {
		return Request{}, ErrNotFound
	}
	request, err := s.store.Update(ctx, id, func(r *Request, now time.Time) error {
		if !r.IsVisibleTo(testKey) {
			return errOtherMode
		}
		return mutate(r, now)
	})
	if errors.Is(err, errOtherMode) {
		return Request{}, errOtherMode
	}
	return request, err
}
