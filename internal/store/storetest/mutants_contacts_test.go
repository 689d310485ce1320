package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// trackBindings records the requests that each sender was bound to, oldest first.
func trackBindings(s *faultyStore, seen *sharedMap[[]string]) {
	update := s.update
	s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
		r, err := update(ctx, id, m)
		for _, c := range r.Contacts {
			seen.change(c.Binding, func(ids []string) []string {
				if slices.Contains(ids, id) {
					return ids
				}
				return append(ids, id)
			})
		}
		return r, err
	}
}

func contactMutants() []mutant {
	return []mutant{
		{"finds only the last sender of a request", []string{"map several senders"}, perInstance(func(s *faultyStore) {
			s.awaiting = func(ctx context.Context, binding string) (verification.Request, error) {
				r, err := s.inner.Awaiting(ctx, binding)
				if err == nil && r.Contacts[len(r.Contacts)-1].Binding != binding {
					return verification.Request{}, verification.ErrNotFound
				}
				return r, err
			}
		})},
		{"keeps a sender's first request", []string{"map a sender to the request"}, func(environment) func(*faultyStore) {
			var seen sharedMap[[]string]
			return func(s *faultyStore) {
				trackBindings(s, &seen)
				s.awaiting = func(ctx context.Context, binding string) (verification.Request, error) {
					if ids := seen.get(binding); len(ids) > 0 {
						return s.inner.Read(ctx, ids[0])
					}
					return verification.Request{}, verification.ErrNotFound
				}
			}
		}},
		{"ends what a sender was asked for before", []string{"keep what a sender was asked"}, func(environment) func(*faultyStore) {
			var seen sharedMap[[]string]
			return func(s *faultyStore) {
				trackBindings(s, &seen)
				update := s.update
				s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
					r, err := update(ctx, id, m)
					for _, c := range r.Contacts {
						for _, other := range seen.get(c.Binding) {
							if other != id {
								_, _ = s.inner.Update(ctx, other, func(r *verification.Request, _ time.Time) error {
									r.Contacts = slices.DeleteFunc(r.Contacts, func(o verification.Contact) bool { return o.Binding == c.Binding })
									return nil
								})
							}
						}
					}
					return r, err
				}
			}
		}},
		{"falls back from a final request", []string{"never restore an earlier request after the later one is final"}, func(environment) func(*faultyStore) {
			return fallsBack(func(r verification.Request, err error) bool { return err == nil && r.Phase.Final() })
		}},
		{
			"falls back from a deleted request",
			[]string{"never restore an earlier request after the later one is deleted", "drop the oldest beyond eight"},
			func(environment) func(*faultyStore) {
				return fallsBack(func(_ verification.Request, err error) bool { return errors.Is(err, verification.ErrNotFound) })
			},
		},
		{"indexes with a delay", []string{"return the current state", "map a sender to the request"}, func(environment) func(*faultyStore) {
			var late sharedMap[[]verification.Request]
			return func(s *faultyStore) {
				s.awaiting = func(ctx context.Context, binding string) (verification.Request, error) {
					r, err := s.inner.Awaiting(ctx, binding)
					if err != nil {
						return r, err
					}
					states := late.change(binding, func(old []verification.Request) []verification.Request { return append(old, r) })
					return states[max(0, len(states)-2)], nil
				}
			}
		}},
	}
}

// fallsBack falls back to the sender's first request if the last one is unsuited.
func fallsBack(unsuited func(verification.Request, error) bool) func(*faultyStore) {
	var seen sharedMap[[]string]
	return func(s *faultyStore) {
		trackBindings(s, &seen)
		s.awaiting = func(ctx context.Context, binding string) (verification.Request, error) {
			r, err := s.inner.Awaiting(ctx, binding)
			if ids := seen.get(binding); len(ids) > 0 && unsuited(r, err) {
				return s.inner.Read(ctx, ids[0])
			}
			return r, err
		}
	}
}

func subscriptionMutants() []mutant {
	return []mutant{
		{"never notifies", []string{"notifies of a change by the same instance"}, perInstance(func(s *faultyStore) {
			s.subscribe = func(string) (<-chan struct{}, func()) { return make(chan struct{}), func() {} }
		})},
		{"notifies of its own writes only", []string{"notifies of a change by another", "notifies of deletion"}, perInstance(func(s *faultyStore) {
			var own verification.Notifier
			s.subscribe = own.Subscribe
			update := s.update
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				defer own.Notify(id)
				return update(ctx, id, m)
			}
		})},
		{"waits until a subscriber receives", []string{"never makes a writer wait"}, func(environment) func(*faultyStore) {
			var subscribers sharedMap[chan struct{}]
			return func(s *faultyStore) {
				s.subscribe = func(id string) (<-chan struct{}, func()) {
					return subscribers.change(id, func(chan struct{}) chan struct{} { return make(chan struct{}) }), func() {}
				}
				update := s.update
				s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
					r, err := update(ctx, id, m)
					if waiting := subscribers.get(id); waiting != nil {
						select {
						case waiting <- struct{}{}:
						case <-time.After(10 * time.Millisecond):
							err = context.DeadlineExceeded
						}
					}
					return r, err
				}
			}
		}},
		{"ignores the cancellation of a subscription", []string{"ends when it is cancelled"}, perInstance(func(s *faultyStore) {
			s.subscribe = func(id string) (<-chan struct{}, func()) {
				changes, _ := s.inner.Subscribe(id)
				return changes, func() {}
			}
		})},
	}
}
