package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// creations is a creation with a fault.
type creations = func(context.Context, verification.New, verification.Limits) (verification.Created, error)

func bendsCreate(f func(s *bent, create creations) creations) func(world) func(*bent) {
	return each(func(s *bent) { s.create = f(s, s.create) })
}

// countInVain makes the store count a creation that does not happen.
func countInVain(ctx context.Context, s *bent, n verification.New, l verification.Limits) {
	n.ID += "x"
	l.PerKey.Requests, l.PerPhoneNumber.Requests, l.MaxStored = l.PerKey.Requests*100, l.PerPhoneNumber.Requests*100, 0
	l.PerPrefix.Requests, l.PerSubject.Requests = l.PerPrefix.Requests*100, l.PerSubject.Requests*100
	if c, err := s.inner.Create(ctx, n, l); err == nil {
		_ = s.inner.Delete(ctx, n.ID, c.Request.Version)
	}
}

func rateMutants() []mutant {
	return []mutant{
		{"counts all keys together", []string{"admit as many requests per key"}, each(func(s *bent) {
			s.limits(func(n *verification.New, _ *verification.Limits) { n.KeyName = "all" })
		})},
		{"counts all numbers together", []string{"admit as many requests per phone"}, each(func(s *bent) {
			s.limits(func(n *verification.New, _ *verification.Limits) { n.Phone = number(claimed) })
		})},
		{"counts whole numbers as prefixes", []string{"admit as many requests per prefix"}, each(func(s *bent) {
			s.limits(func(_ *verification.New, l *verification.Limits) { l.PerPrefix.Digits = 15 })
		})},
		{"counts a country as a prefix", []string{"admit as many requests per prefix"}, each(func(s *bent) {
			s.limits(func(_ *verification.New, l *verification.Limits) { l.PerPrefix.Digits = 2 })
		})},
		{"counts the prefixes of all keys together", []string{"leave a key the prefixes"}, each(func(s *bent) {
			s.limits(func(n *verification.New, l *verification.Limits) {
				if l.PerPrefix.Limited() {
					n.KeyName = "all"
				}
			})
		})},
		{"counts all subjects together", []string{"admit as many requests per subject"}, each(func(s *bent) {
			s.limits(func(n *verification.New, _ *verification.Limits) { n.Subject = "all" })
		})},
		{"counts those without a subject as one", []string{"admit as many requests per subject"}, each(func(s *bent) {
			s.limits(func(n *verification.New, _ *verification.Limits) { n.Subject = cmp.Or(n.Subject, "nobody") })
		})},
		{"counts no subject", []string{
			"admit as many requests per subject", "slide: ", "end to the microsecond", "count nothing by prefix or subject", "count deleted", "are not exceeded",
		}, each(func(s *bent) {
			s.limits(func(_ *verification.New, l *verification.Limits) { l.PerSubject = verification.Rate{} })
		})},
		{"counts no prefix", []string{
			"admit as many requests per prefix", "slide: ", "end to the microsecond", "count nothing by prefix or subject", "count deleted", "are not exceeded",
		}, each(func(s *bent) {
			s.limits(func(_ *verification.New, l *verification.Limits) { l.PerPrefix = verification.PrefixRate{} })
		})},
		{"counts numbers as they are written", []string{"count the forms of one number"}, each(func(s *bent) {
			s.limits(func(n *verification.New, _ *verification.Limits) {
				sum := fnv.New32a()
				_, _ = sum.Write([]byte(n.Phone.E164()))
				n.Phone = number(fmt.Sprintf("+49151%08d", sum.Sum32()%1e8))
			})
		})},
		{"counts retries", []string{"neither limit nor count"}, bendsCreate(func(s *bent, create creations) creations {
			return func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
				c, err := create(ctx, n, l)
				if c.Existing {
					countInVain(ctx, s, n, l)
				}
				return c, err
			}
		})},
		{"counts what it refuses", []string{"do not count what they refused", "count nothing by prefix or subject", "admit one after the wait"}, bendsCreate(func(s *bent, create creations) creations {
			return func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
				c, err := create(ctx, n, l)
				if err != nil {
					countInVain(ctx, s, n, l)
				}
				return c, err
			}
		})},
		{"counts what is stored", []string{"count deleted requests"}, func(w world) func(*bent) {
			return countsItself(w, func(ctx context.Context, s *bent, c counted) bool {
				_, err := s.inner.Get(ctx, c.id)
				return err == nil
			})
		}},
		{"counts, and then creates", []string{"are not exceeded by creators"}, func(w world) func(*bent) {
			return countsItself(w, func(context.Context, *bent, counted) bool {
				yield()
				return true
			})
		}},
		{"counts from the last full period", []string{"slide: "}, func(w world) func(*bent) {
			return countsItself(w, func(_ context.Context, _ *bent, c counted) bool {
				return !c.at.Before(w.clock.Now().Truncate(c.period))
			})
		}},
		{"keeps the limits that it saw first", []string{"follow a limit that is changed"}, func(world) func(*bent) {
			var first table[verification.Limits]
			return func(s *bent) {
				s.limits(func(_ *verification.New, l *verification.Limits) {
					*l = first.change("", func(old verification.Limits) verification.Limits {
						if old == (verification.Limits{}) {
							old = *l
						}
						return old
					})
				})
			}
		}},
		{"tells what was left before", []string{"tell what is left"}, bendsCreate(func(_ *bent, create creations) creations {
			return func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
				c, err := create(ctx, n, l)
				c.Key.Remaining++
				return c, err
			}
		})},
		{"counts both ends of a window", []string{"end to the microsecond"}, each(func(s *bent) {
			s.limits(func(_ *verification.New, l *verification.Limits) {
				l.PerKey.Period += time.Microsecond
				l.PerPhoneNumber.Period += time.Microsecond
			})
		})},
		{"asks for whole seconds", []string{"say exactly when"}, bendsCreate(func(_ *bent, create creations) creations {
			return waits(create, func(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) })
		})},
		{"asks for half the wait", []string{"admit one after the wait"}, bendsCreate(func(_ *bent, create creations) creations {
			return waits(create, func(d time.Duration) time.Duration { return d / 2 })
		})},
		{"asks for the shorter wait", []string{"of all limits"}, bendsCreate(func(_ *bent, create creations) creations {
			return waits(create, func(d time.Duration) time.Duration { return min(d, time.Minute) })
		})},
	}
}

func waits(create creations, change func(time.Duration) time.Duration) creations {
	return func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
		c, err := create(ctx, n, l)
		if refused, ok := errors.AsType[*verification.Error](err); ok {
			changed := *refused
			changed.RetryAfter = change(changed.RetryAfter)
			err = &changed
		}
		return c, err
	}
}

type counted struct {
	id     string
	at     time.Time
	period time.Duration
}

// countsItself takes the rates out of the store's hands and counts the creations that suit.
func countsItself(w world, suits func(context.Context, *bent, counted) bool) func(*bent) {
	var admitted table[[]counted]
	return func(s *bent) {
		create := s.create
		s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
			keys := map[string]verification.Rate{"key " + n.KeyName: l.PerKey, "number " + n.Phone.E164(): l.PerPhoneNumber}
			for key, rate := range keys {
				if !rate.Limited() {
					continue
				}
				times := slices.DeleteFunc(slices.Clone(admitted.get(key)), func(c counted) bool {
					c.period = rate.Period
					return !c.at.After(w.clock.Now().Add(-rate.Period)) || !suits(ctx, s, c)
				})
				if len(times) >= rate.Requests {
					return verification.Created{}, verification.RateLimited(verification.LimitPerKey, rate.Period)
				}
			}
			c, err := create(ctx, n, verification.Limits{MaxStored: l.MaxStored})
			if err == nil {
				for key := range keys {
					admitted.change(key, func(old []counted) []counted {
						return append(slices.Clone(old), counted{id: n.ID, at: c.Request.CreatedAt})
					})
				}
			}
			return c, err
		}
	}
}

// evicts makes room by itself: of what suits, the first in that order goes.
func evicts(w world, suits func(verification.Request) bool, before func(a, b verification.Request) int) func(*bent) {
	return func(s *bent) {
		create := s.create
		s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
			var stored []verification.Request
			for _, id := range w.remember.all() {
				if r, err := s.inner.Get(ctx, id); err == nil {
					stored = append(stored, r)
				}
			}
			for excess := len(stored) + 1 - l.MaxStored; l.MaxStored > 0 && excess > 0; excess-- {
				candidates := slices.DeleteFunc(slices.Clone(stored), func(r verification.Request) bool { return !suits(r) })
				if len(candidates) == 0 {
					return verification.Created{}, verification.TooManyStored(time.Second)
				}
				slices.SortStableFunc(candidates, before)
				if err := s.inner.Delete(ctx, candidates[0].ID, candidates[0].Version); err != nil {
					return verification.Created{}, err
				}
				stored = slices.DeleteFunc(stored, func(r verification.Request) bool { return r.ID == candidates[0].ID })
			}
			return create(ctx, n, l)
		}
	}
}

func byCreation(a, b verification.Request) int { return a.CreatedAt.Compare(b.CreatedAt) }

func capMutants() []mutant {
	return []mutant{
		{"evicts what is open", []string{"never evicts what is open", "evicts the oldest that", "lets in an id"}, func(w world) func(*bent) {
			return evicts(w, func(verification.Request) bool { return true }, byCreation)
		}},
		{"evicts the youngest", []string{"evicts the oldest that", "follows a cap"}, func(w world) func(*bent) {
			return evicts(w, func(r verification.Request) bool { return r.Evictable(w.clock.Now()) }, func(a, b verification.Request) int { return byCreation(b, a) })
		}},
		{"evicts what was verified first", []string{"evicts an earlier request"}, func(w world) func(*bent) {
			return evicts(w, func(r verification.Request) bool { return r.Evictable(w.clock.Now()) }, func(a, b verification.Request) int {
				return a.VerifiedAt.Compare(b.VerifiedAt)
			})
		}},
		{"evicts only what is written as final", []string{"evicts the oldest that"}, func(w world) func(*bent) {
			return evicts(w, func(r verification.Request) bool { return r.Phase.Final() && r.Evictable(w.clock.Now()) }, byCreation)
		}},
		{"forgets that a code can come back", []string{"evicts no code that", "hands out no code that"}, each(func(s *bent) {
			s.limits(func(n *verification.New, _ *verification.Limits) { n.BodyHash = "" })
		})},
		{"evicts what is settled at once", []string{"evicts no code that"}, func(w world) func(*bent) {
			return evicts(w, func(r verification.Request) bool {
				r.BodyHash = ""
				return r.Evictable(w.clock.Now())
			}, byCreation)
		}},
		{"knows no cap", []string{"is not exceeded", "never evicts what is open"}, each(func(s *bent) {
			s.limits(func(_ *verification.New, l *verification.Limits) { l.MaxStored = 0 })
		})},
	}
}

func countMutants() []mutant {
	counts := func(change func(*verification.Stored)) func(world) func(*bent) {
		return each(func(s *bent) {
			stored := s.stored
			s.stored = func(ctx context.Context) (verification.Stored, error) {
				n, err := stored(ctx)
				change(&n)
				return n, err
			}
		})
	}
	caughtBy := []string{"counts what is stored"}
	return []mutant{
		{"counts nothing", caughtBy, counts(func(n *verification.Stored) { *n = verification.Stored{} })},
		{"counts what is undelivered as finished", caughtBy, counts(func(n *verification.Stored) {
			n.Finished, n.Undelivered = n.Finished+n.Undelivered, 0
		})},
	}
}
