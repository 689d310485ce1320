package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// faultyStore is a memory store of which the methods that the mutants bend can be replaced.
type faultyStore struct {
	*memory.Store

	project   string
	create    createFunc
	readNow   func(context.Context, string) (verification.Request, error)
	readFinal func(context.Context, string) (verification.Request, error)
	update    func(context.Context, string, mutation) (verification.Request, error)
	remove    func(context.Context, string, string) error
	awaiting  func(context.Context, string) (verification.Request, error)
	list      listFunc
	subscribe func(string) (<-chan struct{}, func())
	claim     claimFunc
}

type (
	createFunc = func(context.Context, verification.New, verification.Limits) (verification.Created, error)
	listFunc   = func(context.Context, verification.ListQuery) (verification.ListPage, error)
	claimFunc  = func(context.Context, verification.Policy, int, time.Duration) ([]verification.Request, error)
)

func newFaultyStore(inner *memory.Store, project string) *faultyStore {
	return &faultyStore{
		Store: inner, project: project, create: inner.Create, readNow: inner.Read, readFinal: inner.ReadFinal, update: inner.Update,
		remove: inner.Delete, awaiting: inner.Awaiting, list: inner.List, subscribe: inner.Subscribe, claim: inner.Claim,
	}
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

func (s *faultyStore) Subscribe(id string) (<-chan struct{}, func()) { return s.subscribe(id) }

func (s *faultyStore) Claim(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
	return s.claim(ctx, p, n, lease)
}

// changeUpdates replaces the mutation of each update.
func changeUpdates(change func(m mutation) mutation) func() func(*faultyStore) {
	return perInstance(func(s *faultyStore) {
		s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
			return s.Store.Update(ctx, id, change(m))
		}
	})
}

// changeCreations changes the arguments of creations.
func (s *faultyStore) changeCreations(change func(*verification.New, *verification.Limits)) {
	create := s.create
	s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
		change(&n, &l)
		return create(ctx, n, l)
	}
}

// changeClaims changes the requests that a claim returns, and how long it asks for them.
func changeClaims(lease func(time.Duration) time.Duration, change func([]verification.Request) []verification.Request) func() func(*faultyStore) {
	return perInstance(func(s *faultyStore) {
		s.claim = func(ctx context.Context, p verification.Policy, n int, d time.Duration) ([]verification.Request, error) {
			list, err := s.Store.Claim(ctx, p, n, lease(d))
			return change(list), err
		}
	})
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

// keepFirst returns the first value that it was given for a key.
func (t *sharedMap[V]) keepFirst(key string, v V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = make(map[string]V)
	}
	if first, known := t.m[key]; known {
		return first
	}
	t.m[key] = v
	return v
}

// perInstance injects the same fault into every instance, without shared state.
func perInstance(f func(*faultyStore)) func() func(*faultyStore) {
	return func() func(*faultyStore) { return f }
}
