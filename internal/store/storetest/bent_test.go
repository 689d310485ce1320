package storetest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// bent is a store every method of which can be replaced. Those that are not do what the memory store does.
type bent struct {
	inner     *memory.Store
	project   string
	elsewhere func(project string) *memory.Store

	create    func(context.Context, verification.New, verification.Limits) (verification.Created, error)
	get       func(context.Context, string) (verification.Request, error)
	peek      func(context.Context, string) (verification.Request, error)
	update    func(context.Context, string, mutation) (verification.Request, error)
	remove    func(context.Context, string, string) error
	awaiting  func(context.Context, string) (verification.Request, error)
	subscribe func(string) (<-chan struct{}, func())
	ready     func(context.Context) error
	stored    func(context.Context) (verification.Stored, error)
	claim     func(context.Context, verification.Policy, int, time.Duration) ([]verification.Request, error)
}

func straight(inner *memory.Store, w world) *bent {
	s := &bent{inner: inner}
	s.aim(inner)
	s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
		w.remember.add(n.ID)
		return inner.Create(ctx, n, l)
	}
	return s
}

// aim makes the memory store do everything.
func (s *bent) aim(inner *memory.Store) {
	s.inner = inner
	s.create, s.get, s.update, s.remove = inner.Create, inner.Get, inner.Update, inner.Delete
	s.awaiting, s.subscribe, s.ready, s.claim, s.peek = inner.Awaiting, inner.Subscribe, inner.Ready, inner.Claim, inner.Peek
	s.stored = inner.Stored
}

func (s *bent) Create(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
	return s.create(ctx, n, l)
}
func (s *bent) Get(ctx context.Context, id string) (verification.Request, error) {
	return s.get(ctx, id)
}
func (s *bent) Peek(ctx context.Context, id string) (verification.Request, error) {
	return s.peek(ctx, id)
}
func (s *bent) Update(ctx context.Context, id string, m func(*verification.Request, time.Time) error) (verification.Request, error) {
	return s.update(ctx, id, m)
}
func (s *bent) Delete(ctx context.Context, id, version string) error {
	return s.remove(ctx, id, version)
}
func (s *bent) Awaiting(ctx context.Context, binding string) (verification.Request, error) {
	return s.awaiting(ctx, binding)
}
func (s *bent) Subscribe(id string) (<-chan struct{}, func())           { return s.subscribe(id) }
func (s *bent) Stored(ctx context.Context) (verification.Stored, error) { return s.stored(ctx) }
func (s *bent) Ready(ctx context.Context) error                         { return s.ready(ctx) }
func (s *bent) Claim(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
	return s.claim(ctx, p, n, lease)
}

// overwrite stores a state whatever is there.
func (s *bent) overwrite(ctx context.Context, state verification.Request) (verification.Request, error) {
	return s.inner.Update(ctx, state.ID, func(r *verification.Request, _ time.Time) error {
		*r = state
		return nil
	})
}

// shows changes what every reading method answers.
func (s *bent) shows(change func(*verification.Request)) {
	get, peek, update, create, awaiting, claim := s.get, s.peek, s.update, s.create, s.awaiting, s.claim
	s.get = func(ctx context.Context, id string) (verification.Request, error) {
		r, err := get(ctx, id)
		change(&r)
		return r, err
	}
	s.peek = func(ctx context.Context, id string) (verification.Request, error) {
		r, err := peek(ctx, id)
		change(&r)
		return r, err
	}
	s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
		r, err := update(ctx, id, m)
		change(&r)
		return r, err
	}
	s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
		c, err := create(ctx, n, l)
		change(&c.Request)
		return c, err
	}
	s.awaiting = func(ctx context.Context, binding string) (verification.Request, error) {
		r, err := awaiting(ctx, binding)
		change(&r)
		return r, err
	}
	s.claim = func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
		claims, err := claim(ctx, p, n, lease)
		for i := range claims {
			change(&claims[i])
		}
		return claims, err
	}
}

// limits changes what creations ask for.
func (s *bent) limits(change func(*verification.New, *verification.Limits)) {
	create := s.create
	s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
		change(&n, &l)
		return create(ctx, n, l)
	}
}

// memoirs is a list that goroutines share.
type memoirs struct {
	mu   sync.Mutex
	list []string
}

func (m *memoirs) add(entry string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, entry)
}

func (m *memoirs) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list)
}

// table is a map that goroutines share.
type table[V any] struct {
	mu sync.Mutex
	m  map[string]V
}

// change replaces an entry by what f makes of it and returns that.
func (t *table[V]) change(key string, f func(V) V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = make(map[string]V)
	}
	t.m[key] = f(t.m[key])
	return t.m[key]
}

func (t *table[V]) get(key string) V { return t.change(key, func(v V) V { return v }) }

// each bends every instance alike, without anything shared.
func each(f func(*bent)) func(world) func(*bent) {
	return func(world) func(*bent) { return f }
}
