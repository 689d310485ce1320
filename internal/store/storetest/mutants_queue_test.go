package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

type claimFunc = func(context.Context, verification.Policy, int, time.Duration) ([]verification.Request, error)

func faultyClaim(f func(s *faultyStore, claim claimFunc) claimFunc) func(environment) func(*faultyStore) {
	return perInstance(func(s *faultyStore) { s.claim = f(s, s.claim) })
}

// changeClaimed changes the requests that a claim returns.
func changeClaimed(change func([]verification.Request) []verification.Request) func(environment) func(*faultyStore) {
	return faultyClaim(func(_ *faultyStore, claim claimFunc) claimFunc {
		return func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
			list, err := claim(ctx, p, n, lease)
			return change(list), err
		}
	})
}

func changeLease(change func(time.Duration) time.Duration) func(environment) func(*faultyStore) {
	return faultyClaim(func(_ *faultyStore, claim claimFunc) claimFunc {
		return func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
			return claim(ctx, p, n, change(lease))
		}
	})
}

func eventMutants() []mutant {
	return []mutant{
		{"hands out events of verified requests only", []string{"hands out the event of a pending", "makes the event of an expired"}, changeClaimed(
			func(list []verification.Request) []verification.Request {
				return slices.DeleteFunc(list, func(r verification.Request) bool {
					return r.Delivery.Wanted() && r.Phase != verification.Verified
				})
			},
		)},
		{"keeps the event of a request that ended", []string{"ends the event of a pending request with it"}, perInstance(func(s *faultyStore) {
			update := s.update
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				return update(ctx, id, func(r *verification.Request, now time.Time) error {
					before := r.Delivery
					err := m(r, now)
					if r.Phase == verification.Expired && before.Wanted() {
						r.Delivery = before
					}
					return err
				})
			}
		})},
		{"waits for a webhook before it expires a request", []string{"hands out no event of a pending request while"}, faultyClaim(
			func(_ *faultyStore, claim claimFunc) claimFunc {
				return func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
					list, err := claim(ctx, p, n, lease)
					return slices.DeleteFunc(list, func(r verification.Request) bool {
						return p.Events != verification.EventsOn && r.Delivery.Wanted()
					}), err
				}
			},
		)},
		{"hands out paused events of pending requests", []string{"hands out no event of a pending request while"}, changePolicy(
			func(p verification.Policy) verification.Policy {
				p.Events = verification.EventsOn
				return p
			},
		)},
		{"evicts lapsed requests before their event", []string{"evicts no lapsed request"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(_ *verification.New, l *verification.Limits) { l.KeepLapsed = false })
		})},
	}
}

func changePolicy(change func(verification.Policy) verification.Policy) func(environment) func(*faultyStore) {
	return faultyClaim(func(_ *faultyStore, claim claimFunc) claimFunc {
		return func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
			return claim(ctx, change(p), n, lease)
		}
	})
}

func queueMutants() []mutant {
	return []mutant{
		{"hears of no repair", []string{"hands out each event that waits once more"}, changePolicy(func(p verification.Policy) verification.Policy {
			p.Repaired = time.Time{}
			return p
		})},
		{"hands out the least overdue first", []string{"hands out due work", "return work in its original order"}, changeClaimed(func(r []verification.Request) []verification.Request {
			slices.Reverse(r)
			return r
		})},
		{"hands out all requests", []string{"hands out nothing before", "hands out work exactly when it is due"}, func(w environment) func(*faultyStore) {
			return func(s *faultyStore) {
				s.claim = func(ctx context.Context, _ verification.Policy, limit int, _ time.Duration) (all []verification.Request, _ error) {
					for _, id := range w.created.all() {
						if r, err := s.inner.Read(ctx, id); err == nil && len(all) < limit {
							all = append(all, r)
						}
					}
					return all, nil
				}
			}
		}},
		{"drops the contacts of claimed requests", []string{"hands out the current state"}, changeClaimed(func(r []verification.Request) []verification.Request {
			for i := range r {
				r[i].Contacts = nil
			}
			return r
		})},
		{"sends while events are paused", []string{"hands out no event while"}, changePolicy(func(p verification.Policy) verification.Policy {
			p.Events = verification.EventsOn
			return p
		})},
		{"ignores the retention", []string{"hands out deletions", "hands out nothing before"}, changePolicy(func(p verification.Policy) verification.Policy {
			p.Retention = 0
			return p
		})},
		{"drops the last of a batch", []string{"hands each of 500", "hands out due work"}, changeClaimed(func(r []verification.Request) []verification.Request {
			return r[:max(min(1, len(r)), len(r)-1)]
		})},
		{"hands out requests again", []string{"hands each of 500", "keep work from others"}, func(environment) func(*faultyStore) {
			var last sharedMap[[]verification.Request]
			return func(s *faultyStore) {
				claim := s.claim
				s.claim = func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
					list, err := claim(ctx, p, n, lease)
					again := last.get(s.project)
					last.change(s.project, func([]verification.Request) []verification.Request { return list })
					return append(list, again...)[:min(n, len(list)+len(again))], err
				}
			}
		}},
		{"hands out no deletion", []string{"hands out every step", "hands out deletions"}, changeClaimed(func(r []verification.Request) []verification.Request {
			return slices.DeleteFunc(r, func(r verification.Request) bool { return r.Phase.Final() && !r.Delivery.Wanted() })
		})},
		{"ignores leases", []string{"keep work from others", "end neither early nor late", "hands each of 500"}, changeLease(func(time.Duration) time.Duration {
			return 0
		})},
		{
			"never ends a lease",
			[]string{"keep work from others", "fence off a holder", "return work in its original order"},
			changeLease(func(time.Duration) time.Duration { return 1000 * time.Hour }),
		},
		{"ends leases too early", []string{"end neither early nor late"}, changeLease(func(d time.Duration) time.Duration {
			return d - time.Millisecond
		})},
		{"forgets epochs", []string{"fence off a holder", "count an epoch", "hands out the current state"}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) { r.Epoch = 0 })
			update := s.update
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				return update(ctx, id, func(r *verification.Request, now time.Time) error {
					r.Epoch = 0
					return m(r, now)
				})
			}
		})},
		{"ends a lease with any write", []string{"go on through a write"}, func(w environment) func(*faultyStore) {
			var written sharedMap[bool]
			return func(s *faultyStore) {
				update, claim := s.update, s.claim
				s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
					r, err := update(ctx, id, m)
					written.change(id, func(bool) bool { return err == nil && r.Delivery.Wanted() })
					return r, err
				}
				s.claim = func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
					list, err := claim(ctx, p, n, lease)
					for _, r := range list {
						written.change(r.ID, func(bool) bool { return false })
					}
					for _, id := range w.created.all() {
						if r, readErr := s.inner.Read(ctx, id); readErr == nil && written.get(id) && len(list) < n {
							list = append(list, r)
						}
					}
					return list, err
				}
			}
		}},
		{"keeps a lease that a write ended", []string{"end with the step"}, func(w environment) func(*faultyStore) {
			var until sharedMap[time.Time]
			return func(s *faultyStore) {
				claim := s.claim
				s.claim = func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
					list, err := claim(ctx, p, n, lease)
					return slices.DeleteFunc(list, func(r verification.Request) bool {
						now, leased := w.clock.Now(), false
						until.change(r.ID, func(t time.Time) time.Time {
							if leased = t.After(now); leased {
								return t
							}
							return now.Add(lease)
						})
						return leased
					}), err
				}
			}
		}},
	}
}

func outageMutants() []mutant {
	return []mutant{
		{"works for callers that have gone", []string{"does nothing for a caller", "claims nothing for a caller"}, perInstance(func(s *faultyStore) {
			get, claim := s.readNow, s.claim
			s.readNow = func(ctx context.Context, id string) (verification.Request, error) {
				return get(context.WithoutCancel(ctx), id)
			}
			s.claim = func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
				return claim(context.WithoutCancel(ctx), p, n, lease)
			}
		})},
		{"writes and reports failure", []string{"reports the actual outcome"}, perInstance(func(s *faultyStore) {
			update := s.update
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				r, err := update(context.WithoutCancel(ctx), id, m)
				return r, errors.Join(err, ctx.Err())
			}
		})},
		{"is never ready", []string{"is ready while"}, perInstance(func(s *faultyStore) {
			s.ready = func(context.Context) error { return verification.Unavailable(context.DeadlineExceeded) }
		})},
		{"reports an outage as not found", []string{"is reported as unavailable by every", "is reported as unavailable by the queue"}, perInstance(func(s *faultyStore) {
			get, claim := s.readNow, s.claim
			s.readNow = func(ctx context.Context, id string) (verification.Request, error) {
				r, err := get(ctx, id)
				if err != nil {
					err = verification.ErrNotFound
				}
				return r, err
			}
			s.claim = func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
				list, _ := claim(ctx, p, n, lease)
				return list, nil
			}
		})},
	}
}
