package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/tokenbucket"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Read implements verification.Store. id is an object's name, or the id that the code of a manual request
// leads to; the request's own ID is the object's name either way.
func (s *Store) Read(ctx context.Context, id string) (verification.Request, error) {
	return requestOf(s.readCurrent(ctx, id))
}

// ReadFinal implements verification.Store: final states come from memory, all others from the API server, and so does one whose code
// may still get a result. It finds a manual request by its code only if the informer knows it: messages, which have codes, use Update.
func (s *Store) ReadFinal(ctx context.Context, id string) (verification.Request, error) {
	if err := ctx.Err(); err != nil {
		return verification.Request{}, err
	}
	known := s.cachedEntryOrCode(id)
	switch {
	case known == nil:
		return s.readUnknown(ctx, id)
	case known.isFinal() && !known.request.IsCodeOpen():
		return known.toRequest()
	}
	return requestOf(s.readObject(ctx, known.Name))
}

func (s *Store) readUnknown(ctx context.Context, id string) (verification.Request, error) {
	return readUnderLimit(ctx, s.unknown, func() (verification.Request, error) { return requestOf(s.readObject(ctx, id)) })
}

// ReadCached implements verification.Store.
func (s *Store) ReadCached(ctx context.Context, id string) (verification.Request, error) {
	if e := s.cachedEntryOrCode(id); e != nil {
		return e.toRequest()
	}
	return s.ReadFinal(ctx, id)
}

// Stored implements verification.Counter, by the objects that the watch brought.
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

// Activity implements verification.Counter, by the objects that the watch brought.
func (s *Store) Activity(_ context.Context, m verification.Method, since time.Time) (verification.Activity, error) {
	var activity verification.Activity
	if !s.HasSynced() {
		return activity, errNotSynced()
	}
	for _, item := range s.informer.GetStore().List() {
		if e := entryOf(item); e != nil && e.kind == KindRequest && e.request.UsedMethod() == m {
			activity.Count(&e.request, since)
		}
	}
	return activity, nil
}

// CodesStarted implements verification.Counter, by the objects that the watch brought.
func (s *Store) CodesStarted(_ context.Context, m verification.Method, since time.Time) (map[string]int, error) {
	if !s.HasSynced() {
		return nil, errNotSynced()
	}
	started := map[string]int{}
	for _, item := range s.informer.GetStore().List() {
		e := entryOf(item)
		if e == nil || e.kind != KindRequest {
			continue
		}
		if r := &e.request; r.DeliversCode() && r.Method == m && !r.Test && r.CreatedAt.After(since) {
			started[r.KeyName]++
		}
	}
	return started, nil
}

// readCurrent returns the object that id leads to, as it is now.
func (s *Store) readCurrent(ctx context.Context, id string) (*entry, error) {
	if s.cachedEntryOrCode(id) != nil {
		return s.readObjectOrCode(ctx, id)
	}
	return readUnderLimit(ctx, s.unknown, func() (*entry, error) { return s.readObjectOrCode(ctx, id) })
}

// readObjectOrCode reads the object of that name, or else the one with another name that the code leads to.
func (s *Store) readObjectOrCode(ctx context.Context, id string) (*entry, error) {
	e, err := s.readObject(ctx, id)
	if !errors.Is(err, verification.ErrNotFound) || !verification.IsRequestID(id) {
		return e, err
	}
	return s.readByCode(ctx, id)
}

// readObject returns the object with that name as it is now. Objects of other projects do not exist.
func (s *Store) readObject(ctx context.Context, name string) (*entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, verification.ErrNotFound
	}
	e, err := s.reads.do(ctx, name, s.getForAll(name))
	return e, preferContextError(ctx, err)
}

// getForAll returns a GET that callers with the same name share.
func (s *Store) getForAll(name string) func(context.Context) (*entry, error) {
	return func(ctx context.Context) (*entry, error) {
		e, err := s.api.getObject(ctx, name)
		if err != nil {
			return nil, err
		}
		if e.project != s.api.project {
			return nil, verification.ErrNotFound
		}
		return e, nil
	}
}

// readByCode returns the request that a code leads to and whose object has another name. Another replica may have written the
// label a moment ago, so the API server is read, once for all unknown codes of a moment: strangers can make up such codes.
func (s *Store) readByCode(ctx context.Context, code string) (*entry, error) {
	if known := s.cachedEntryOrCode(code); known != nil {
		e, err := s.readObject(ctx, known.Name)
		if err == nil && codeOf(e) == code {
			return e, nil
		}
		if err != nil && !errors.Is(err, verification.ErrNotFound) {
			return nil, fmt.Errorf("read request of code: %w", err)
		}
	}
	byCode, err := s.codes.rounds.do(ctx, "", s.readCodes)
	if err != nil {
		return nil, preferContextError(ctx, err)
	}
	if e := byCode[code]; e != nil {
		return e, nil
	}
	return nil, verification.ErrNotFound
}

// codeReads are the look-ups of codes that the informer does not know.
type codeReads struct {
	rounds  sharedReads[map[string]*entry]
	pace    readPacer
	allowed tokenbucket.Rate
	left    tokenbucket.Bucket
}

// untilNext returns how long it is until the next read may begin.
func (c *codeReads) untilNext(now time.Time) time.Duration {
	return max(c.pace.untilNext(), c.left.Wait(c.allowed, now))
}

// readCodes reads the manual requests, by code.
func (s *Store) readCodes(ctx context.Context) (map[string]*entry, error) {
	timer := time.NewTimer(s.codes.untilNext(time.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	begin := time.Now()
	s.codes.left.Charge(s.codes.allowed, begin)
	found, _, err := s.api.readSnapshot(ctx, selection{fields: s.api.fieldSelector(), labels: verifyv1.CodeIDLabel})
	s.codes.pace.recordRead(begin)
	if err != nil {
		return nil, fmt.Errorf("find code: %w", err)
	}
	byCode := make(map[string]*entry, len(found))
	for _, e := range found {
		if e.kind == KindRequest {
			byCode[codeOf(e)] = e
		}
	}
	return byCode, nil
}
