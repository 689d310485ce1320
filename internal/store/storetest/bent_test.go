package storetest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// faultyStore is a memory store of which every method can be replaced.
type faultyStore struct {
	inner     *memory.Store
	project   string
	elsewhere func(project string) *memory.Store

	create    func(context.Context, verification.New, verification.Limits) (verification.Created, error)
	readNow   func(context.Context, string) (verification.Request, error)
	readFinal func(context.Context, string) (verification.Request, error)
	update    func(context.Context, string, mutation) (verification.Request, error)
	remove    func(context.Context, string, string) error
	awaiting  func(context.Context, string) (verification.Request, error)
	list      func(context.Context, verification.ListQuery) (verification.ListPage, error)
	subscribe func(string) (<-chan struct{}, func())
	ready     func(context.Context) error
	stored    func(context.Context) (verification.Stored, error)
	activity  func(context.Context, verification.Method, time.Time) (verification.Activity, error)
	claim     func(context.Context, verification.Policy, int, time.Duration) ([]verification.Request, error)
}

func newFaultyStore(inner *memory.Store, w environment) *faultyStore {
	s := &faultyStore{inner: inner}
	s.useStore(inner)
	s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
		w.created.add(n.ID)
		return inner.Create(ctx, n, l)
	}
	return s
}

// useStore resets every method to that of the memory store.
func (s *faultyStore) useStore(inner *memory.Store) {
	s.inner = inner
	s.create, s.readNow, s.update, s.remove = inner.Create, inner.Read, inner.Update, inner.Delete
	s.awaiting, s.subscribe, s.ready, s.claim, s.readFinal = inner.Awaiting, inner.Subscribe, inner.Ready, inner.Claim, inner.ReadFinal
	s.stored, s.activity, s.list = inner.Stored, inner.Activity, inner.List
}

func (s *faultyStore) Create(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
	return s.create(ctx, n, l)
}
func (s *faultyStore) Read(ctx context.Context, id string) (verification.Request, error) {
	return s.readNow(ctx, id)
}
func (s *faultyStore) ReadFinal(ctx context.Context, id string) (verification.Request, error) {
	return s.readFinal(ctx, id)
}
func (s *faultyStore) ReadCached(ctx context.Context, id string) (verification.Request, error) {
	return s.inner.ReadCached(ctx, id)
}
func (s *faultyStore) Update(ctx context.Context, id string, m func(*verification.Request, time.Time) error) (verification.Request, error) {
	return s.update(ctx, id, m)
}
func (s *faultyStore) Delete(ctx context.Context, id, version string) error {
	return s.remove(ctx, id, version)
}
func (s *faultyStore) Awaiting(ctx context.Context, binding string) (verification.Request, error) {
	return s.awaiting(ctx, binding)
}
func (s *faultyStore) List(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
	return s.list(ctx, q)
}
func (s *faultyStore) Subscribe(id string) (<-chan struct{}, func())           { return s.subscribe(id) }
func (s *faultyStore) Stored(ctx context.Context) (verification.Stored, error) { return s.stored(ctx) }
func (s *faultyStore) Activity(ctx context.Context, m verification.Method, since time.Time) (verification.Activity, error) {
	return s.activity(ctx, m, since)
}
func (s *faultyStore) Ready(ctx context.Context) error { return s.ready(ctx) }
func (s *faultyStore) Sweep(ctx context.Context, p verification.Policy, n int) (verification.Swept, error) {
	return s.inner.Sweep(ctx, p, n)
}
func (s *faultyStore) Due() <-chan struct{} { return s.inner.Due() }
func (s *faultyStore) Claim(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
	return s.claim(ctx, p, n, lease)
}

// overwriteState stores a state unconditionally.
func (s *faultyStore) overwriteState(ctx context.Context, state verification.Request) (verification.Request, error) {
	return s.inner.Update(ctx, state.ID, func(r *verification.Request, _ time.Time) error {
		*r = state
		return nil
	})
}

// changeAnswers changes the requests that the methods return.
func (s *faultyStore) changeAnswers(change func(*verification.Request)) {
	get, peek, update, create, awaiting, claim := s.readNow, s.readFinal, s.update, s.create, s.awaiting, s.claim
	s.readNow = func(ctx context.Context, id string) (verification.Request, error) {
		r, err := get(ctx, id)
		change(&r)
		return r, err
	}
	s.readFinal = func(ctx context.Context, id string) (verification.Request, error) {
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

// changeCreations changes the arguments of creations.
func (s *faultyStore) changeCreations(change func(*verification.New, *verification.Limits)) {
	create := s.create
	s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
		change(&n, &l)
		return create(ctx, n, l)
	}
}

// sharedList is a list for concurrent use.
type sharedList struct {
	mu   sync.Mutex
	list []string
}

func (m *sharedList) add(entry string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, entry)
}

func (m *sharedList) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list)
}

// sharedMap is a map for concurrent use.
type sharedMap[V any] struct {
	mu sync.Mutex
	m  map[string]V
}

// change replaces an entry with the result of f, and returns it.
func (t *sharedMap[V]) change(key string, f func(V) V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = make(map[string]V)
	}
	t.m[key] = f(t.m[key])
	return t.m[key]
}

func (t *sharedMap[V]) get(key string) V { return t.change(key, func(v V) V { return v }) }

// perInstance injects the same fault into every instance, without shared state.
func perInstance(f func(*faultyStore)) func(environment) func(*faultyStore) {
	return func(environment) func(*faultyStore) { return f }
}
