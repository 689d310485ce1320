package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Store is one replica's view of a project. It is safe for concurrent use.
type Store struct {
	backend *Backend
	project *project
}

var (
	_ verification.Store   = (*Store)(nil)
	_ verification.Queue   = (*Store)(nil)
	_ verification.Counter = (*Store)(nil)
)

// Create implements verification.Store. A rate counts from the moment it is set; after a longer period replaces a shorter
// one, only the admissions kept for the shorter one count.
func (s *Store) Create(
	ctx context.Context, n verification.New, limits verification.Limits,
) (verification.Created, error) {
	if err := s.backend.checkAvailable(ctx); err != nil {
		return verification.Created{}, fmt.Errorf("check backend: %w", err)
	}
	p := s.project
	p.mu.Lock()
	defer p.mu.Unlock()
	if existing := p.records[n.ID]; existing != nil {
		return verification.Created{Request: existing.request.Clone(), Existing: true}, nil
	}
	now := s.backend.now()
	if err := p.admitted.Refuse(n.Counted(), limits, now); err != nil {
		return verification.Created{}, err
	}
	if err := p.makeRoom(n.Test, limits, now); err != nil {
		return verification.Created{}, err
	}
	quota := p.admitted.Admit(n.Counted(), limits, now)
	return verification.Created{Request: p.insertRequest(n, now), Key: quota}, nil
}

// Read implements verification.Store.
func (s *Store) Read(ctx context.Context, id string) (verification.Request, error) {
	if err := s.backend.checkAvailable(ctx); err != nil {
		return verification.Request{}, fmt.Errorf("check backend: %w", err)
	}
	s.project.mu.RLock()
	defer s.project.mu.RUnlock()
	return requestOrNotFound(s.project.records[id])
}

// ReadFinal implements verification.Store.
func (s *Store) ReadFinal(ctx context.Context, id string) (verification.Request, error) {
	return s.Read(ctx, id)
}

// ReadCached implements verification.Store.
func (s *Store) ReadCached(ctx context.Context, id string) (verification.Request, error) {
	return s.Read(ctx, id)
}

// Update implements verification.Store. mutate runs once, under the project's lock, so the compare-and-set cannot fail.
func (s *Store) Update(ctx context.Context, id string, mutate verification.Mutation) (verification.Request, error) {
	if err := s.backend.checkAvailable(ctx); err != nil {
		return verification.Request{}, fmt.Errorf("check backend: %w", err)
	}
	p := s.project
	p.mu.Lock()
	defer p.mu.Unlock()
	rec := p.records[id]
	if rec == nil {
		return verification.Request{}, verification.ErrNotFound
	}
	now := s.backend.now()
	next, err := rec.request.Apply(mutate, now)
	if err == nil {
		err = ctx.Err() // a caller that has gone gets no answer, so nothing is written
	}
	switch {
	case err == nil:
		p.writeState(rec, next, now)
	case errors.Is(err, verification.ErrUnchanged):
		err = nil
	}
	return rec.request.Clone(), err
}

// Delete implements verification.Store.
func (s *Store) Delete(ctx context.Context, id, version string) error {
	if err := s.backend.checkAvailable(ctx); err != nil {
		return fmt.Errorf("check backend: %w", err)
	}
	p := s.project
	p.mu.Lock()
	defer p.mu.Unlock()
	rec := p.records[id]
	switch {
	case rec == nil:
		return nil
	case rec.request.Version != version:
		return verification.ErrConflict
	default:
		p.removeRecord(rec)
		return nil
	}
}

// Awaiting implements verification.Store. The last write that bound the sender wins; of two within one microsecond of the
// clock, the one to another request than before.
func (s *Store) Awaiting(ctx context.Context, binding string) (verification.Request, error) {
	if err := s.backend.checkAvailable(ctx); err != nil {
		return verification.Request{}, fmt.Errorf("check backend: %w", err)
	}
	s.project.mu.RLock()
	defer s.project.mu.RUnlock()
	return requestOrNotFound(s.project.awaiting[binding])
}

// List implements verification.Lister. It looks at every request, which takes 0.1 ms for 1,000.
func (s *Store) List(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
	if err := s.backend.checkAvailable(ctx); err != nil {
		return verification.ListPage{}, fmt.Errorf("check backend: %w", err)
	}
	s.project.mu.RLock()
	defer s.project.mu.RUnlock()
	listing := verification.NewListing(q, s.backend.now())
	for _, rec := range s.project.records {
		listing.Add(&rec.request)
	}
	return listing.Page(), nil
}

// Subscribe implements verification.Store.
func (s *Store) Subscribe(id string) (<-chan struct{}, func()) {
	return s.project.notifier.Subscribe(id)
}

// Ready implements verification.Store.
func (s *Store) Ready(ctx context.Context) error { return s.backend.checkAvailable(ctx) }

// Claim implements verification.Queue.
func (s *Store) Claim(
	ctx context.Context, policy verification.Policy, limit int, lease time.Duration,
) ([]verification.Request, error) {
	if err := s.backend.checkAvailable(ctx); err != nil {
		return nil, fmt.Errorf("check backend: %w", err)
	}
	s.project.mu.Lock()
	defer s.project.mu.Unlock()
	return s.project.claimDue(policy, limit, lease, s.backend.now()), nil
}

// Release implements verification.Queue.
func (s *Store) Release(ctx context.Context, claims map[string]int64) error {
	if err := s.backend.checkAvailable(ctx); err != nil {
		return fmt.Errorf("check backend: %w", err)
	}
	s.project.mu.Lock()
	defer s.project.mu.Unlock()
	for id, epoch := range claims {
		if rec := s.project.records[id]; rec != nil && rec.request.Epoch == epoch {
			rec.leasedUntil = time.Time{}
			s.project.work.placeRecord(rec, s.backend.now())
		}
	}
	return nil
}

// Sweep implements verification.Queue. It does nothing, because claims take microseconds.
func (s *Store) Sweep(context.Context, verification.Policy, int) (verification.Swept, error) {
	return verification.Swept{}, nil
}

// Due implements verification.Queue.
func (s *Store) Due() <-chan struct{} { return nil }

// Stored implements verification.Counter.
func (s *Store) Stored(ctx context.Context) (verification.Stored, error) {
	if err := s.backend.checkAvailable(ctx); err != nil {
		return verification.Stored{}, fmt.Errorf("check backend: %w", err)
	}
	s.project.mu.RLock()
	defer s.project.mu.RUnlock()
	var stored verification.Stored
	for _, rec := range s.project.records {
		stored.Count(&rec.request)
	}
	return stored, nil
}

func requestOrNotFound(rec *record) (verification.Request, error) {
	if rec == nil {
		return verification.Request{}, verification.ErrNotFound
	}
	return rec.request.Clone(), nil
}
