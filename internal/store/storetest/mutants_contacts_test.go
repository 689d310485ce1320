package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// bindings watches which requests a sender was bound to, oldest first.
func bindings(s *bent, seen *table[[]string]) {
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
		{"knows the last sender of a request alone", []string{"lead several senders"}, each(func(s *bent) {
			s.awaiting = func(ctx context.Context, binding string) (verification.Request, error) {
				r, err := s.inner.Awaiting(ctx, binding)
				if err == nil && r.Contacts[len(r.Contacts)-1].Binding != binding {
					return verification.Request{}, verification.ErrNotFound
				}
				return r, err
			}
		})},
		{"keeps a sender's first request", []string{"lead a sender to the request"}, func(world) func(*bent) {
			var seen table[[]string]
			return func(s *bent) {
				bindings(s, &seen)
				s.awaiting = func(ctx context.Context, binding string) (verification.Request, error) {
					if ids := seen.get(binding); len(ids) > 0 {
						return s.inner.Get(ctx, ids[0])
					}
					return verification.Request{}, verification.ErrNotFound
				}
			}
		}},
		{"looks for a request that is still open", []string{"never bring an earlier request back once the later one is final"}, func(world) func(*bent) {
			return comesBack(func(r verification.Request, err error) bool { return err == nil && r.Phase.Final() })
		}},
		{
			"looks for a request that is still there",
			[]string{"never bring an earlier request back once the later one is deleted", "beyond eight lose the oldest"},
			func(world) func(*bent) {
				return comesBack(func(_ verification.Request, err error) bool { return errors.Is(err, verification.ErrNotFound) })
			},
		},
		{"indexes with a delay", []string{"lead to the current state", "lead a sender to the request"}, func(world) func(*bent) {
			var late table[[]verification.Request]
			return func(s *bent) {
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

// comesBack falls back to the request before, where the one that the sender was bound to last does not suit.
func comesBack(unsuited func(verification.Request, error) bool) func(*bent) {
	var seen table[[]string]
	return func(s *bent) {
		bindings(s, &seen)
		s.awaiting = func(ctx context.Context, binding string) (verification.Request, error) {
			r, err := s.inner.Awaiting(ctx, binding)
			if ids := seen.get(binding); len(ids) > 0 && unsuited(r, err) {
				return s.inner.Get(ctx, ids[0])
			}
			return r, err
		}
	}
}

func subscriptionMutants() []mutant {
	return []mutant{
		{"tells nobody", []string{"tells of a change by the same instance"}, each(func(s *bent) {
			s.subscribe = func(string) (<-chan struct{}, func()) { return make(chan struct{}), func() {} }
		})},
		{"tells of its own writes alone", []string{"tells of a change by another", "tells of deletion"}, each(func(s *bent) {
			var mine verification.Notifier
			s.subscribe = mine.Subscribe
			update := s.update
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				defer mine.Notify(id)
				return update(ctx, id, m)
			}
		})},
		{"waits until a subscriber takes the news", []string{"never makes a writer wait"}, func(world) func(*bent) {
			var subscribers table[chan struct{}]
			return func(s *bent) {
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
		{"cannot be left", []string{"ends when it is cancelled"}, each(func(s *bent) {
			s.subscribe = func(id string) (<-chan struct{}, func()) {
				changes, _ := s.inner.Subscribe(id)
				return changes, func() {}
			}
		})},
	}
}
