package storetest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func creationMutants() []mutant {
	return []mutant{
		{"never says that a request exists", []string{"returns the stored request", "neither limit nor count"}, each(func(s *bent) {
			create := s.create
			s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
				c, err := create(ctx, n, l)
				c.Existing = false
				return c, err
			}
		})},
		{"looks before it creates, then trusts what it saw", []string{"makes one request of two hundred"}, each(func(s *bent) {
			create := s.create
			s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
				_, err := s.inner.Get(ctx, n.ID)
				yield()
				c, createErr := create(ctx, n, l)
				c.Existing = err == nil
				return c, createErr
			}
		})},
		{"loses one creation in seven", []string{"loses none of many", "shows a new request at once"}, func(world) func(*bent) {
			var count table[int]
			return func(s *bent) {
				create := s.create
				s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
					c, err := create(ctx, n, l)
					if err == nil && count.change("", func(i int) int { return i + 1 })%7 == 0 {
						err = s.inner.Delete(ctx, n.ID, c.Request.Version)
					}
					return c, err
				}
			}
		}},
		{"stamps with a clock of its own", []string{"stores a pending request"}, each(func(s *bent) {
			s.shows(func(r *verification.Request) { r.CreatedAt = r.CreatedAt.Add(time.Second) })
		})},
		{
			"knows only one project",
			[]string{"keeps projects apart", "admit as many requests per key", "admit as many requests per phone", "hands out work of its own"},
			each(func(s *bent) { s.aim(s.elsewhere("everybody")) }),
		},
		{"knows a project by the beginning of its name", []string{"keeps projects of one namespace", "hands out work of its own"}, each(func(s *bent) {
			s.aim(s.elsewhere(strings.TrimSuffix(s.project, "-2")))
		})},
		{"takes nothing for something", []string{"knows nothing of an id"}, each(func(s *bent) {
			s.get = func(ctx context.Context, id string) (verification.Request, error) {
				r, err := s.inner.Get(ctx, id)
				if errors.Is(err, verification.ErrNotFound) {
					err = nil
				}
				return r, err
			}
		})},
	}
}

// yield gives every other goroutine the chance to come between.
func yield() {
	for range 20 {
		runtime.Gosched()
	}
}

func forgets(what, caughtBy string, forget func(*verification.Request)) mutant {
	return mutant{"forgets " + what, []string{"gives back every field of a request that is " + caughtBy}, each(func(s *bent) { s.shows(forget) })}
}

func stateMutants() []mutant {
	return slices.Concat(forgetfulMutants(), mixedUpMutants(), cachingMutants())
}

// forgetfulMutants keep less than they were given.
func forgetfulMutants() []mutant {
	return []mutant{
		forgets("the last senders", "bound", func(r *verification.Request) { r.Contacts = r.Contacts[:min(4, len(r.Contacts))] }),
		forgets("what a sender was asked for", "bound", func(r *verification.Request) {
			for i := range r.Contacts {
				r.Contacts[i].Kind = ""
			}
		}),
		{"forgets the name that the text was prepared with", []string{"stores a pending request"}, each(func(s *bent) {
			s.shows(func(r *verification.Request) { r.DisplayName = "" })
		})},
		forgets("the number reported", "verified without", func(r *verification.Request) { r.Actual = number(claimed) }),
		forgets("the assurance", "verified by", func(r *verification.Request) { r.Assurance = "" }),
		forgets("the reason", "between two attempts", func(r *verification.Request) { r.Delivery.LastReason = "" }),
		forgets("the last status", "delivered", func(r *verification.Request) { r.Delivery.LastStatusCode = 0 }),
		forgets("milliseconds", "exhausted", func(r *verification.Request) {
			r.Delivery.ExhaustedAt = r.Delivery.ExhaustedAt.Truncate(time.Millisecond)
		}),
		forgets("the wish", "due once more", func(r *verification.Request) { r.Redelivered = "" }),
		forgets("the body", "expired", func(r *verification.Request) {
			if r.Phase == verification.Expired {
				r.BodyHash = ""
			}
		}),
		{"answers what it was told, keeps what it can", []string{"keeps times to the microsecond"}, each(func(s *bent) {
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				var told time.Time
				r, err := s.inner.Update(ctx, id, func(r *verification.Request, now time.Time) error {
					err := m(r, now)
					told = r.Delivery.NextAttemptAt
					return err
				})
				r.Delivery.NextAttemptAt = told
				return r, err
			}
		})},
	}
}

// mixedUpMutants take one state for another: they share its slices, or its version.
func mixedUpMutants() []mutant {
	return []mutant{
		{"hands out its own slices", []string{"hands out copies"}, func(world) func(*bent) {
			var kept table[[]verification.Contact]
			return func(s *bent) {
				s.shows(func(r *verification.Request) {
					r.Contacts = kept.change(r.Version, func(c []verification.Contact) []verification.Contact {
						if c == nil {
							c = r.Contacts
						}
						return c
					})
				})
			}
		}},
		{"counts versions anew for each creation", []string{"leaves the id free"}, func(world) func(*bent) {
			var versions table[map[string]string]
			return func(s *bent) {
				name := func(r *verification.Request) {
					known := versions.change(r.ID+r.CreatedAt.String(), func(m map[string]string) map[string]string {
						if m == nil {
							m = map[string]string{}
						}
						if m[r.Version] == "" {
							m[r.Version] = strconv.Itoa(len(m) + 1)
						}
						return m
					})
					r.Version = known[r.Version]
				}
				s.shows(name)
				s.remove = func(ctx context.Context, id, version string) error {
					r, err := s.inner.Get(ctx, id)
					named := r
					name(&named)
					if err != nil || named.Version != version {
						return verification.ErrConflict
					}
					return s.inner.Delete(ctx, id, r.Version)
				}
			}
		}},
	}
}

// cachingMutants answer with what was true once.
func cachingMutants() []mutant {
	return []mutant{
		{"answers from a cache", []string{"shows each write at once"}, each(func(s *bent) {
			var cache table[*verification.Request]
			s.get = func(ctx context.Context, id string) (verification.Request, error) {
				r, err := s.inner.Get(ctx, id)
				if err != nil {
					return r, err
				}
				return *cache.change(id, func(old *verification.Request) *verification.Request {
					if old == nil {
						old = &r
					}
					return old
				}), nil
			}
		})},
		{"remembers pending requests", []string{"shows each phase at once"}, each(func(s *bent) {
			var cache table[*verification.Request]
			s.peek = func(ctx context.Context, id string) (verification.Request, error) {
				r, err := s.inner.Peek(ctx, id)
				if err != nil {
					return r, err
				}
				return *cache.change(id, func(old *verification.Request) *verification.Request {
					if old == nil {
						old = &r
					}
					return old
				}), nil
			}
		})},
		{"remembers what was deleted", []string{"lets those who peek"}, each(func(s *bent) {
			var cache table[verification.Request]
			s.peek = func(ctx context.Context, id string) (verification.Request, error) {
				r, err := s.inner.Peek(ctx, id)
				if err == nil {
					cache.change(id, func(verification.Request) verification.Request { return r })
				} else if old := cache.get(id); old.ID != "" {
					return old, nil
				}
				return r, err
			}
		})},
	}
}

func updateMutants() []mutant {
	return []mutant{
		{
			"reads, decides and overwrites",
			[]string{"lets each of 64", "has one winner", "ends in one final state"},
			each(func(s *bent) {
				s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
					var now time.Time
					r, err := s.inner.Update(ctx, id, func(_ *verification.Request, at time.Time) error {
						now = at
						return verification.ErrUnchanged
					})
					if err != nil {
						return r, err
					}
					yield()
					if err := m(&r, now); err != nil {
						return r, err
					}
					return s.overwrite(ctx, r)
				}
			}),
		},
		{"writes what a failed mutation left", []string{"returns a mutation's own error"}, each(func(s *bent) {
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				var refused error
				r, err := s.inner.Update(ctx, id, func(r *verification.Request, now time.Time) error {
					refused = m(r, now)
					return nil
				})
				return r, errors.Join(err, refused)
			}
		})},
		{"takes nothing to do for a write", []string{"writes nothing where"}, each(func(s *bent) {
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				return s.inner.Update(ctx, id, func(r *verification.Request, now time.Time) error {
					before := *r
					err := m(r, now)
					if errors.Is(err, verification.ErrUnchanged) {
						*r, err = before, nil
					}
					return err
				})
			}
		})},
		{"has one version for all", []string{"changes the version", "refuses a state that is no longer"}, each(func(s *bent) {
			s.shows(func(r *verification.Request) { r.Version = "1" })
		})},
		{"decides by the process's clock", []string{"tells mutations the time"}, each(func(s *bent) {
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				return s.inner.Update(ctx, id, func(r *verification.Request, _ time.Time) error { return m(r, time.Now()) })
			}
		})},
		{"lets mutations forget that a state is final", []string{"never leaves a final state"}, each(func(s *bent) {
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				return s.inner.Update(ctx, id, func(r *verification.Request, now time.Time) error {
					r.Phase = verification.Pending
					r.ExpiresAt = now.Add(time.Minute)
					return m(r, now)
				})
			}
		})},
		{
			"deletes whatever the version",
			[]string{"either deletes or updates", "deletes one state once", "refuses a state that is no longer", "leaves the id free"},
			each(func(s *bent) {
				s.remove = func(ctx context.Context, id, _ string) error {
					for {
						r, err := s.inner.Get(ctx, id)
						if errors.Is(err, verification.ErrNotFound) {
							return nil
						}
						if err = s.inner.Delete(ctx, id, r.Version); !errors.Is(err, verification.ErrConflict) {
							return err
						}
					}
				}
			}),
		},
		{"deletes nothing", []string{"removes the state"}, each(func(s *bent) {
			s.remove = func(context.Context, string, string) error { return nil }
		})},
	}
}
