package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

type claims = func(context.Context, verification.Policy, int, time.Duration) ([]verification.Request, error)

func bendsClaim(f func(s *bent, claim claims) claims) func(world) func(*bent) {
	return each(func(s *bent) { s.claim = f(s, s.claim) })
}

// claimed changes what a claim hands out.
func handsOut(change func([]verification.Request) []verification.Request) func(world) func(*bent) {
	return bendsClaim(func(_ *bent, claim claims) claims {
		return func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
			list, err := claim(ctx, p, n, lease)
			return change(list), err
		}
	})
}

func leasesFor(change func(time.Duration) time.Duration) func(world) func(*bent) {
	return bendsClaim(func(_ *bent, claim claims) claims {
		return func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
			return claim(ctx, p, n, change(lease))
		}
	})
}

func under(change func(verification.Policy) verification.Policy) func(world) func(*bent) {
	return bendsClaim(func(_ *bent, claim claims) claims {
		return func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
			return claim(ctx, change(p), n, lease)
		}
	})
}

func queueMutants() []mutant {
	return []mutant{
		{"hands out the shortest overdue first", []string{"hands out due work", "that end give work back"}, handsOut(func(r []verification.Request) []verification.Request {
			slices.Reverse(r)
			return r
		})},
		{"hands out all there is", []string{"hands out nothing before", "hands work out at its very time"}, func(w world) func(*bent) {
			return func(s *bent) {
				s.claim = func(ctx context.Context, _ verification.Policy, limit int, _ time.Duration) (all []verification.Request, _ error) {
					for _, id := range w.remember.all() {
						if r, err := s.inner.Get(ctx, id); err == nil && len(all) < limit {
							all = append(all, r)
						}
					}
					return all, nil
				}
			}
		}},
		{"forgets whom a claim is about", []string{"hands out the current state"}, handsOut(func(r []verification.Request) []verification.Request {
			for i := range r {
				r[i].Contacts = nil
			}
			return r
		})},
		{"sends while events are paused", []string{"hands out no event while"}, under(func(p verification.Policy) verification.Policy {
			p.Events = verification.EventsOn
			return p
		})},
		{"knows no retention", []string{"hands out what is to be deleted", "hands out nothing before"}, under(func(p verification.Policy) verification.Policy {
			p.Retention = 0
			return p
		})},
		{"drops the last of a batch", []string{"hands each of 500", "hands out due work"}, handsOut(func(r []verification.Request) []verification.Request {
			return r[:max(min(1, len(r)), len(r)-1)]
		})},
		{"hands out again what was handed out before", []string{"hands each of 500", "keep work from others"}, func(world) func(*bent) {
			var last table[[]verification.Request]
			return func(s *bent) {
				claim := s.claim
				s.claim = func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
					list, err := claim(ctx, p, n, lease)
					again := last.get(s.project)
					last.change(s.project, func([]verification.Request) []verification.Request { return list })
					return append(list, again...)[:min(n, len(list)+len(again))], err
				}
			}
		}},
		{"hands out no deletion", []string{"hands out every step", "hands out what is to be deleted"}, handsOut(func(r []verification.Request) []verification.Request {
			return slices.DeleteFunc(r, func(r verification.Request) bool { return r.Phase.Final() && !r.Delivery.Wanted() })
		})},
		{"knows no lease", []string{"keep work from others", "end neither early nor late", "hands each of 500"}, leasesFor(func(time.Duration) time.Duration {
			return 0
		})},
		{
			"never ends a lease",
			[]string{"keep work from others", "fence off a holder", "that end give work back"},
			leasesFor(func(time.Duration) time.Duration { return 1000 * time.Hour }),
		},
		{"ends leases by the second", []string{"end neither early nor late"}, leasesFor(func(d time.Duration) time.Duration {
			return d - time.Millisecond
		})},
		{"forgets epochs", []string{"fence off a holder", "count an epoch", "hands out the current state"}, each(func(s *bent) {
			s.shows(func(r *verification.Request) { r.Epoch = 0 })
			update := s.update
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				return update(ctx, id, func(r *verification.Request, now time.Time) error {
					r.Epoch = 0
					return m(r, now)
				})
			}
		})},
		{"keeps a lease that a write ended", []string{"end with the step"}, func(w world) func(*bent) {
			var until table[time.Time]
			return func(s *bent) {
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
		{"works for callers who have gone", []string{"does nothing for a caller", "claims nothing for a caller"}, each(func(s *bent) {
			get, claim := s.get, s.claim
			s.get = func(ctx context.Context, id string) (verification.Request, error) {
				return get(context.WithoutCancel(ctx), id)
			}
			s.claim = func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
				return claim(context.WithoutCancel(ctx), p, n, lease)
			}
		})},
		{"writes and tells of no success", []string{"does what it says"}, each(func(s *bent) {
			update := s.update
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				r, err := update(context.WithoutCancel(ctx), id, m)
				return r, errors.Join(err, ctx.Err())
			}
		})},
		{"is never ready", []string{"is ready while"}, each(func(s *bent) {
			s.ready = func(context.Context) error { return verification.Unavailable(context.DeadlineExceeded) }
		})},
		{"takes an outage for nothing stored", []string{"is reported as unavailable by every", "is reported as unavailable by the queue"}, each(func(s *bent) {
			get, claim := s.get, s.claim
			s.get = func(ctx context.Context, id string) (verification.Request, error) {
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
