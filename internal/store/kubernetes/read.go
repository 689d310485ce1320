package kubernetes

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/tokenbucket"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Read implements verification.Store. id is an object's name, or the id that the code of a request made with kubectl
// leads to; the request's own ID is the object's name either way.
func (s *Store) Read(ctx context.Context, id string) (verification.Request, error) {
	e, err := s.current(ctx, id)
	if err != nil {
		return verification.Request{}, err
	}
	return e.answer()
}

// ReadFinal implements verification.Store: final states come from memory, everything else from the API server. It leads
// from a code to a request only as far as the informer knows; whoever has a code has a message, and acts on it.
func (s *Store) ReadFinal(ctx context.Context, id string) (verification.Request, error) {
	if err := ctx.Err(); err != nil {
		return verification.Request{}, err
	}
	known := s.lookup(id)
	switch {
	case known == nil:
		return s.peekUnknown(ctx, id)
	case known.final():
		return known.answer()
	}
	e, err := s.live(ctx, known.Name)
	if err != nil {
		return verification.Request{}, err
	}
	return e.answer()
}

func (s *Store) peekUnknown(ctx context.Context, id string) (r verification.Request, err error) {
	err = s.unknown.read(ctx, func() error {
		e, err := s.live(ctx, id)
		if err != nil {
			return err
		}
		r, err = e.answer()
		return err
	})
	return r, err
}

// ReadCached implements verification.Store.
func (s *Store) ReadCached(ctx context.Context, id string) (verification.Request, error) {
	if e := s.lookup(id); e != nil {
		return e.answer()
	}
	return s.ReadFinal(ctx, id)
}

// Stored implements verification.Counter, by what the watch delivered.
func (s *Store) Stored(context.Context) (verification.Stored, error) {
	var stored verification.Stored
	if !s.HasSynced() {
		return stored, errNotSynced()
	}
	for _, item := range s.informer.GetStore().List() {
		if e := entryOf(item); e != nil && e.kind == KindRequest {
			stored.Count(&e.request)
		}
	}
	return stored, nil
}

// current returns the object that id leads to, as it is now.
func (s *Store) current(ctx context.Context, id string) (e *entry, err error) {
	if s.lookup(id) != nil {
		return s.findObject(ctx, id)
	}
	err = s.unknown.read(ctx, func() error {
		e, err = s.findObject(ctx, id)
		return err
	})
	return e, err
}

// findObject reads the object of that name, or else the one that has another name and that the code leads to.
func (s *Store) findObject(ctx context.Context, id string) (*entry, error) {
	e, err := s.live(ctx, id)
	if !errors.Is(err, verification.ErrNotFound) || !verification.IsRequestID(id) {
		return e, err
	}
	return s.coded(ctx, id)
}

// live returns the object with that name as it is now. Objects of other projects do not exist.
func (s *Store) live(ctx context.Context, name string) (*entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, verification.ErrNotFound
	}
	e, err := s.reads.do(ctx, name, s.readForAll(name))
	if err != nil {
		return nil, outcome(ctx, err)
	}
	return e, nil
}

// readForAll is one GET for all who ask.
func (s *Store) readForAll(name string) func(context.Context) (*entry, error) {
	return func(ctx context.Context) (*entry, error) {
		e, err := s.api.get(ctx, name)
		if err != nil {
			return nil, err
		}
		if e.project != s.api.project {
			return nil, verification.ErrNotFound
		}
		return e, nil
	}
}

// coded returns the request that a code leads to and whose object has another name. The label is written by whichever
// replica completes the request, so not knowing it here proves nothing: the API server is asked, once for all codes that
// nobody knows at that moment. Anybody can make such codes and send them.
func (s *Store) coded(ctx context.Context, code string) (*entry, error) {
	if known := s.lookup(code); known != nil {
		e, err := s.live(ctx, known.Name)
		if err == nil && codeOf(e) == code {
			return e, nil
		}
		if err != nil && !errors.Is(err, verification.ErrNotFound) {
			return nil, err
		}
	}
	byCode, err := s.codes.rounds.do(ctx, "", s.readCodes)
	if err != nil {
		return nil, outcome(ctx, err)
	}
	if e := byCode[code]; e != nil {
		return e, nil
	}
	return nil, verification.ErrNotFound
}

// codes are the look-ups of codes that the informer does not know.
type codes struct {
	rounds  flights[map[string]*entry]
	pace    pace
	allowed tokenbucket.Rate
	left    tokenbucket.Bucket
}

// wait returns how long it is until the next read may begin.
func (c *codes) wait(now time.Time) time.Duration {
	return max(c.pace.left(), c.left.Wait(c.allowed, now))
}

// readCodes reads the requests that were made with kubectl, by code.
func (s *Store) readCodes(ctx context.Context) (map[string]*entry, error) {
	timer := time.NewTimer(s.codes.wait(time.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	begin := time.Now()
	s.codes.left.Charge(s.codes.allowed, begin)
	found, err := s.api.snapshot(ctx, snapshotOf{fields: s.api.selection(), labels: verifyv1.CodeIDLabel})
	s.codes.pace.spent(begin)
	if err != nil {
		return nil, err
	}
	byCode := make(map[string]*entry, len(found))
	for _, e := range found {
		if e.kind == KindRequest {
			byCode[codeOf(e)] = e
		}
	}
	return byCode, nil
}
