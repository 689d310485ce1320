package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// allMutants are the faults that a single caller does not see: races, lost writes, and answers that are outdated or of others.
func allMutants() []mutant {
	return slices.Concat(raceMutants(), lossMutants(), cacheMutants(), limitMutants(), queueMutants())
}

// letOthersRun lets all other goroutines run until they wait, in a bubble of synctest.
func letOthersRun() { <-time.After(time.Nanosecond) }

func raceMutants() []mutant {
	return []mutant{
		{"reads before it creates, without a lock", []string{"creates one request from two hundred", "has one creator"}, perInstance(func(s *faultyStore) {
			s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
				_, err := s.Store.Read(ctx, n.ID)
				letOthersRun()
				c, createErr := s.Store.Create(ctx, n, l)
				c.Existing = err == nil
				return c, createErr
			}
		})},
		{
			"reads, decides and overwrites",
			[]string{
				"lets each of 64", "has one winner", "ends in one final state", "confirms a request once", "counts wrong codes exactly",
			},
			perInstance(func(s *faultyStore) {
				s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
					var now time.Time
					r, err := s.Store.Update(ctx, id, func(_ *verification.Request, at time.Time) error {
						now = at
						return verification.ErrUnchanged
					})
					if err != nil {
						return r, err
					}
					letOthersRun()
					if err := m(&r, now); err != nil {
						return r, err
					}
					return s.Store.Update(ctx, id, func(old *verification.Request, _ time.Time) error {
						*old = r
						return nil
					})
				}
			}),
		},
		{"redeems a code twice", []string{"confirms a request once", "keeps a proven request pending"}, changeUpdates(func(m mutation) mutation {
			return func(r *verification.Request, now time.Time) error {
				if r.Phase == verification.Verified && r.IsProven() {
					r.Phase = verification.Pending
				}
				return m(r, now)
			}
		})},
		{
			"deletes any version",
			[]string{"either deletes or updates", "deletes one state once", "rejects an outdated version", "frees the id"},
			perInstance(func(s *faultyStore) {
				s.remove = func(ctx context.Context, id, _ string) error {
					for {
						r, err := s.Store.Read(ctx, id)
						if errors.Is(err, verification.ErrNotFound) {
							return nil
						}
						if err = s.Store.Delete(ctx, id, r.Version); !errors.Is(err, verification.ErrConflict) {
							return err
						}
					}
				}
			}),
		},
		{"counts instead of keeping the place", []string{"list each request once"}, perInstance(func(s *faultyStore) {
			s.list = func(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
				skip := q.After.CreatedAt.Sub(time.Time{}) // the place is a number
				limit := q.Limit
				q.After, q.Limit = verification.Position{}, verification.MaxPage
				page, err := s.Store.List(ctx, q)
				page.Requests = page.Requests[min(len(page.Requests), int(skip)):]
				page.Next = verification.Position{}
				if len(page.Requests) > limit {
					page.Requests = page.Requests[:limit]
					page.Next = verification.Position{CreatedAt: time.Time{}.Add(skip + time.Duration(limit)), ID: "place"}
				}
				return page, err
			}
		})},
		{"lists the requests of all projects", []string{"list the requests of their own"}, func() func(*faultyStore) {
			var opened []*faultyStore
			return func(s *faultyStore) {
				opened = append(opened, s)
				s.list = func(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
					page, err := s.Store.List(ctx, q)
					for _, other := range opened {
						if other.project != s.project {
							foreign, _ := other.Store.List(ctx, q)
							page.Requests = append(page.Requests, foreign.Requests...)
						}
					}
					return page, err
				}
			}
		}},
	}
}

func lossMutants() []mutant {
	return []mutant{
		{"loses one creation in seven", []string{"loses none of many", "shows a new request at once"}, func() func(*faultyStore) {
			var count sharedMap[int]
			return func(s *faultyStore) {
				s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
					c, err := s.Store.Create(ctx, n, l)
					if err == nil && count.change("", func(i int) int { return i + 1 })%7 == 0 {
						err = s.Store.Delete(ctx, n.ID, c.Request.Version)
					}
					return c, err
				}
			}
		}},
		{"writes the changes of a failed mutation", []string{"returns a mutation's own error"}, perInstance(func(s *faultyStore) {
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				var refused error
				r, err := s.Store.Update(ctx, id, func(r *verification.Request, now time.Time) error {
					refused = m(r, now)
					return nil
				})
				return r, errors.Join(err, refused)
			}
		})},
		{"writes and reports failure", []string{"reports the actual outcome"}, perInstance(func(s *faultyStore) {
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				r, err := s.Store.Update(context.WithoutCancel(ctx), id, m)
				return r, errors.Join(err, ctx.Err())
			}
		})},
		{"loses one wrong code", []string{"counts wrong codes exactly", "changes nothing for a right code"}, changeUpdates(func(m mutation) mutation {
			return func(r *verification.Request, now time.Time) error {
				before := r.WrongCodes
				err := m(r, now)
				if before == 2 && r.WrongCodes == 3 {
					r.WrongCodes = 2
				}
				return err
			}
		})},
		{"counts wrong codes in each replica", []string{"counts wrong codes exactly"}, perInstance(func(s *faultyStore) {
			var own sharedMap[int]
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				return s.Store.Update(ctx, id, func(r *verification.Request, now time.Time) error {
					r.WrongCodes = own.get(id)
					err := m(r, now)
					own.change(id, func(int) int { return r.WrongCodes })
					return err
				})
			}
		})},
		{"falls back from a deleted request", []string{"never restore an earlier request after the later one is deleted"}, func() func(*faultyStore) {
			var first sharedMap[string]
			return func(s *faultyStore) {
				s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
					r, err := s.Store.Update(ctx, id, m)
					for _, c := range r.Contacts {
						first.keepFirst(c.Binding, id)
					}
					return r, err
				}
				s.awaiting = func(ctx context.Context, binding string) (verification.Request, error) {
					r, err := s.Store.Awaiting(ctx, binding)
					if errors.Is(err, verification.ErrNotFound) {
						return s.Store.Read(ctx, first.get(binding))
					}
					return r, err
				}
			}
		}},
		{"notifies of its own writes only", []string{"notifies of a change by another", "notifies of deletion"}, perInstance(func(s *faultyStore) {
			var own verification.Notifier
			s.subscribe = own.Subscribe
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				defer own.Notify(id)
				return s.Store.Update(ctx, id, m)
			}
		})},
	}
}

func cacheMutants() []mutant {
	return []mutant{
		{"answers from a cache", []string{"shows each write at once"}, perInstance(func(s *faultyStore) {
			var cache sharedMap[verification.Request]
			s.readNow = func(ctx context.Context, id string) (verification.Request, error) {
				r, err := s.Store.Read(ctx, id)
				if err != nil {
					return r, err
				}
				return cache.keepFirst(id, r), nil
			}
		})},
		{"caches pending requests", []string{"shows each phase at once"}, perInstance(func(s *faultyStore) {
			var cache sharedMap[verification.Request]
			s.readFinal = func(ctx context.Context, id string) (verification.Request, error) {
				r, err := s.Store.ReadFinal(ctx, id)
				if err != nil {
					return r, err
				}
				return cache.keepFirst(id, r), nil
			}
		})},
		{"caches deleted requests", []string{"shows only stored requests"}, perInstance(func(s *faultyStore) {
			var cache sharedMap[verification.Request]
			s.readFinal = func(ctx context.Context, id string) (verification.Request, error) {
				r, err := s.Store.ReadFinal(ctx, id)
				if err == nil {
					cache.keepFirst(id, r)
				} else if old := cache.get(id); old.ID != "" {
					return old, nil
				}
				return r, err
			}
		})},
		{"returns its own slices", []string{"returns copies that"}, perInstance(func(s *faultyStore) {
			var kept sharedMap[[]verification.Contact]
			s.readNow = func(ctx context.Context, id string) (verification.Request, error) {
				r, err := s.Store.Read(ctx, id)
				r.Contacts = kept.keepFirst(r.Version, r.Contacts)
				return r, err
			}
		})},
		{"indexes with a delay", []string{"return the current state", "map a sender to the request"}, func() func(*faultyStore) {
			var late sharedMap[[]verification.Request]
			return func(s *faultyStore) {
				s.awaiting = func(ctx context.Context, binding string) (verification.Request, error) {
					r, err := s.Store.Awaiting(ctx, binding)
					if err != nil {
						return r, err
					}
					states := late.change(binding, func(old []verification.Request) []verification.Request { return append(old, r) })
					return states[max(0, len(states)-2)], nil
				}
			}
		}},
		{"keeps a proof in memory", []string{"keeps a proven request pending", "returns every field of a request that is proven"}, perInstance(func(s *faultyStore) {
			var own sharedMap[bool]
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				r, err := s.Store.Update(ctx, id, m)
				own.change(id, func(known bool) bool { return known || r.IsProven() })
				return r, err
			}
			s.readNow = func(ctx context.Context, id string) (verification.Request, error) {
				r, err := s.Store.Read(ctx, id)
				if !own.get(id) {
					r.ProvenAt = time.Time{}
				}
				return r, err
			}
		})},
		{"answers a right code from a cache", []string{"changes nothing for a right code"}, perInstance(func(s *faultyStore) {
			var cache sharedMap[verification.Request]
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				r, err := s.Store.Update(ctx, id, m)
				if err == nil && r.IsProven() && r.Phase == verification.Pending {
					return cache.keepFirst(id, r), nil
				}
				return r, err
			}
		})},
	}
}
