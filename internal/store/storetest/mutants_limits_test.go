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

// createFunc is the method Create.
type createFunc = func(context.Context, verification.New, verification.Limits) (verification.Created, error)

func faultyCreate(f func(s *faultyStore, create createFunc) createFunc) func(environment) func(*faultyStore) {
	return perInstance(func(s *faultyStore) { s.create = f(s, s.create) })
}

// countInVain makes the store count a creation that does not take place.
func countInVain(ctx context.Context, s *faultyStore, n verification.New, l verification.Limits) {
	n.ID += "x"
	l.PerKey.Requests, l.PerPhoneNumber.Requests, l.MaxStored = l.PerKey.Requests*100, l.PerPhoneNumber.Requests*100, 0
	l.PerPrefix.Requests, l.PerSubject.Requests = l.PerPrefix.Requests*100, l.PerSubject.Requests*100
	if c, err := s.inner.Create(ctx, n, l); err == nil {
		_ = s.inner.Delete(ctx, n.ID, c.Request.Version)
	}
}

func rateMutants() []mutant {
	return []mutant{
		{"counts all keys together", []string{"admit as many requests per key"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(n *verification.New, _ *verification.Limits) { n.KeyName = "all" })
		})},
		{"loses the mode of test keys", []string{
			"keeps the mode", "counts requests of test keys", "makes room for requests of test keys", "hands out the outcomes",
		}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(n *verification.New, _ *verification.Limits) { n.Test = false })
		})},
		{"takes all requests for those of test keys", []string{"keeps the mode"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(n *verification.New, _ *verification.Limits) { n.Test = true })
		})},
		{"counts all numbers together", []string{"admit as many requests per phone"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(n *verification.New, _ *verification.Limits) { n.Phone = mustNumber(claimedNumber) })
		})},
		{"counts whole numbers as prefixes", []string{"admit as many requests per prefix"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(_ *verification.New, l *verification.Limits) { l.PerPrefix.Digits = 15 })
		})},
		{"counts a country as a prefix", []string{"admit as many requests per prefix"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(_ *verification.New, l *verification.Limits) { l.PerPrefix.Digits = 2 })
		})},
		{"counts the prefixes of all keys together", []string{"limit the prefixes of each key"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(n *verification.New, l *verification.Limits) {
				if l.PerPrefix.Limited() {
					n.KeyName = "all"
				}
			})
		})},
		{"counts all subjects together", []string{"admit as many requests per subject"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(n *verification.New, _ *verification.Limits) { n.Subject = "all" })
		})},
		{"counts creations without a subject as one subject", []string{"admit as many requests per subject"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(n *verification.New, _ *verification.Limits) { n.Subject = cmp.Or(n.Subject, "none") })
		})},
		{"counts no subject", []string{
			"admit as many requests per subject", "slide: ", "end to the microsecond", "do not count by prefix or subject", "count deleted", "are not exceeded",
		}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(_ *verification.New, l *verification.Limits) { l.PerSubject = verification.Rate{} })
		})},
		{"counts no prefix", []string{
			"admit as many requests per prefix", "slide: ", "end to the microsecond", "do not count by prefix or subject", "count deleted", "are not exceeded",
		}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(_ *verification.New, l *verification.Limits) { l.PerPrefix = verification.PrefixRate{} })
		})},
		{"counts the forms of a number separately", []string{"count the forms of one number"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(n *verification.New, _ *verification.Limits) {
				sum := fnv.New32a()
				_, _ = sum.Write([]byte(n.Phone.E164()))
				n.Phone = mustNumber(fmt.Sprintf("+49151%08d", sum.Sum32()%1e8))
			})
		})},
		{"counts retries", []string{"neither limit nor count"}, faultyCreate(func(s *faultyStore, create createFunc) createFunc {
			return func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
				c, err := create(ctx, n, l)
				if c.Existing {
					countInVain(ctx, s, n, l)
				}
				return c, err
			}
		})},
		{"counts refused creations", []string{"do not count refused creations", "do not count by prefix or subject", "admit one more after the returned wait"}, faultyCreate(func(s *faultyStore, create createFunc) createFunc {
			return func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
				c, err := create(ctx, n, l)
				if err != nil {
					countInVain(ctx, s, n, l)
				}
				return c, err
			}
		})},
		{"counts only stored requests", []string{"count deleted requests"}, func(w environment) func(*faultyStore) {
			return countsItself(w, func(ctx context.Context, s *faultyStore, c countedCreation) bool {
				_, err := s.inner.Read(ctx, c.id)
				return err == nil
			})
		}},
		{"counts before it creates, without a lock", []string{"are not exceeded by concurrent"}, func(w environment) func(*faultyStore) {
			return countsItself(w, func(context.Context, *faultyStore, countedCreation) bool {
				letOthersRun()
				return true
			})
		}},
		{"counts from the last full period", []string{"slide: "}, func(w environment) func(*faultyStore) {
			return countsItself(w, func(_ context.Context, _ *faultyStore, c countedCreation) bool {
				return !c.at.Before(w.clock.Now().Truncate(c.period))
			})
		}},
		{"keeps the first limits", []string{"follow a limit that is changed"}, func(environment) func(*faultyStore) {
			var first sharedMap[verification.Limits]
			return func(s *faultyStore) {
				s.changeCreations(func(_ *verification.New, l *verification.Limits) {
					*l = first.change("", func(old verification.Limits) verification.Limits {
						if old == (verification.Limits{}) {
							old = *l
						}
						return old
					})
				})
			}
		}},
		{"returns the previous quota", []string{"return the remaining quota"}, faultyCreate(func(_ *faultyStore, create createFunc) createFunc {
			return func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
				c, err := create(ctx, n, l)
				c.Key.Remaining++
				return c, err
			}
		})},
		{"counts both ends of a window", []string{"end to the microsecond"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(_ *verification.New, l *verification.Limits) {
				l.PerKey.Period += time.Microsecond
				l.PerPhoneNumber.Period += time.Microsecond
			})
		})},
		{"rounds the wait to seconds", []string{"return exactly when"}, faultyCreate(func(_ *faultyStore, create createFunc) createFunc {
			return changeRetryAfter(create, func(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) })
		})},
		{"returns half the wait", []string{"admit one more after the returned wait"}, faultyCreate(func(_ *faultyStore, create createFunc) createFunc {
			return changeRetryAfter(create, func(d time.Duration) time.Duration { return d / 2 })
		})},
		{"returns the shorter wait", []string{"return the longest wait"}, faultyCreate(func(_ *faultyStore, create createFunc) createFunc {
			return changeRetryAfter(create, func(d time.Duration) time.Duration { return min(d, time.Minute) })
		})},
	}
}

func changeRetryAfter(create createFunc, change func(time.Duration) time.Duration) createFunc {
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

type countedCreation struct {
	id     string
	at     time.Time
	period time.Duration
}

// countsItself replaces the rates of the store, and counts only the creations that suits accepts.
func countsItself(w environment, suits func(context.Context, *faultyStore, countedCreation) bool) func(*faultyStore) {
	var admitted sharedMap[[]countedCreation]
	return func(s *faultyStore) {
		create := s.create
		s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
			keys := map[string]verification.Rate{"key " + n.KeyName: l.PerKey, "number " + n.Phone.E164(): l.PerPhoneNumber}
			for key, rate := range keys {
				if !rate.Limited() {
					continue
				}
				times := slices.DeleteFunc(slices.Clone(admitted.get(key)), func(c countedCreation) bool {
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
					admitted.change(key, func(old []countedCreation) []countedCreation {
						return append(slices.Clone(old), countedCreation{id: n.ID, at: c.Request.CreatedAt})
					})
				}
			}
			return c, err
		}
	}
}

// evictsItself replaces the eviction of the store: of the requests that suits accepts, the first in the order of before goes.
func evictsItself(w environment, suits func(verification.Request) bool, before func(a, b verification.Request) int) func(*faultyStore) {
	return func(s *faultyStore) {
		create := s.create
		s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
			var stored []verification.Request
			for _, id := range w.created.all() {
				if r, err := s.inner.Read(ctx, id); err == nil {
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
		{"evicts open requests", []string{"never evicts open requests", "evicts the oldest finished", "admits an existing id"}, func(w environment) func(*faultyStore) {
			return evictsItself(w, func(verification.Request) bool { return true }, byCreation)
		}},
		{"evicts the newest", []string{"evicts the oldest finished", "follows a cap"}, func(w environment) func(*faultyStore) {
			return evictsItself(w, func(r verification.Request) bool { return r.Evictable(verification.Limits{}, w.clock.Now()) }, func(a, b verification.Request) int { return byCreation(b, a) })
		}},
		{"evicts in the order of verification", []string{"evicts an earlier request"}, func(w environment) func(*faultyStore) {
			return evictsItself(w, func(r verification.Request) bool { return r.Evictable(verification.Limits{}, w.clock.Now()) }, func(a, b verification.Request) int {
				return a.VerifiedAt.Compare(b.VerifiedAt)
			})
		}},
		{"evicts only requests with a final phase", []string{"evicts the oldest finished"}, func(w environment) func(*faultyStore) {
			return evictsItself(w, func(r verification.Request) bool {
				return r.Phase.Final() && r.Evictable(verification.Limits{}, w.clock.Now())
			}, byCreation)
		}},
		{"ignores that a code can come back", []string{"evicts no code that", "hands out no code that"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(n *verification.New, _ *verification.Limits) { n.BodyHash = "" })
		})},
		{"evicts finished requests at once", []string{"evicts no code that"}, func(w environment) func(*faultyStore) {
			return evictsItself(w, func(r verification.Request) bool {
				r.BodyHash = ""
				return r.Evictable(verification.Limits{}, w.clock.Now())
			}, byCreation)
		}},
		{"ignores the cap", []string{"is not exceeded", "never evicts open requests"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(_ *verification.New, l *verification.Limits) { l.MaxStored = 0 })
		})},
	}
}

func countMutants() []mutant {
	counts := func(change func(*verification.Stored)) func(environment) func(*faultyStore) {
		return perInstance(func(s *faultyStore) {
			stored := s.stored
			s.stored = func(ctx context.Context) (verification.Stored, error) {
				n, err := stored(ctx)
				change(&n)
				return n, err
			}
		})
	}
	caughtBy := []string{"count stored requests"}
	return []mutant{
		{"counts nothing", caughtBy, counts(func(n *verification.Stored) { *n = verification.Stored{} })},
		{"counts undelivered requests as finished", caughtBy, counts(func(n *verification.Stored) {
			n.Finished, n.Undelivered = n.Finished+n.Undelivered, 0
		})},
	}
}
