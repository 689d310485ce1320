package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// changeStored changes what each update stores.
func changeStored(change func(before, after *verification.Request)) func(environment) func(*faultyStore) {
	return perInstance(func(s *faultyStore) {
		update := s.update
		s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
			return update(ctx, id, func(r *verification.Request, now time.Time) error {
				before := r.Clone()
				err := m(r, now)
				change(&before, r)
				return err
			})
		}
	})
}

func sessionMutants() []mutant {
	return []mutant{
		{"forgets the level", []string{"keeps the terms", "keeps a proven request pending"},
			perInstance(func(s *faultyStore) {
				s.changeCreations(func(n *verification.New, _ *verification.Limits) { n.Terms.Level = verification.LevelPossession })
			})},
		{"forgets the purpose", []string{"keeps the terms"}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) { r.Terms.Purpose = "" })
		})},
		{"forgets the browser", []string{"keeps the terms"}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) { r.Terms.Browser = "" })
		})},
		forgetsField("the proof", "proven", func(r *verification.Request) { r.ProvenAt = time.Time{} }),
		forgetsField("wrong codes of a pending request", "proven", func(r *verification.Request) {
			if r.Phase == verification.Pending {
				r.WrongCodes = 0
			}
		}),
		forgetsField("the proof of a verified request", "confirmed", func(r *verification.Request) {
			if r.Phase == verification.Verified {
				r.ProvenAt = time.Time{}
			}
		}),
		forgetsField("wrong codes with the end", "ended by wrong codes", func(r *verification.Request) {
			if r.Phase == verification.Expired {
				r.WrongCodes = 0
			}
		}),
		{"keeps a proof in memory", []string{"keeps a proven request pending", "returns every field of a request that is proven"}, func(environment) func(*faultyStore) {
			return func(s *faultyStore) {
				var own sharedMap[bool]
				update := s.update
				s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
					r, err := update(ctx, id, m)
					own.change(id, func(known bool) bool { return known || r.IsProven() })
					return r, err
				}
				get := s.readNow
				s.readNow = func(ctx context.Context, id string) (verification.Request, error) {
					r, err := get(ctx, id)
					if !own.get(id) {
						r.ProvenAt = time.Time{}
					}
					return r, err
				}
			}
		}},
		{"unbinds a prover", []string{"finds the proven request"}, changeStored(func(_, after *verification.Request) {
			if after.IsProven() {
				after.Contacts = nil
			}
		})},
		{"redeems a code twice", []string{"confirms a request once", "keeps a proven request pending"}, perInstance(func(s *faultyStore) {
			update := s.update
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				return update(ctx, id, func(r *verification.Request, now time.Time) error {
					if r.Phase == verification.Verified && r.IsProven() {
						r.Phase = verification.Pending
					}
					return m(r, now)
				})
			}
		})},
		{
			"reads, decides and overwrites proven requests",
			[]string{"confirms a request once", "counts wrong codes exactly", "ends in one final state when a confirmation"},
			perInstance(func(s *faultyStore) {
				update := s.update
				s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
					r, err := s.inner.Read(ctx, id)
					if err != nil || !r.IsProven() {
						return update(ctx, id, m)
					}
					_, err = s.inner.Update(ctx, id, func(r *verification.Request, now time.Time) error {
						if err := m(r, now); err != nil {
							return err
						}
						return verification.ErrUnchanged
					})
					if err != nil {
						return r, err
					}
					before := r.Clone()
					letOthersRun()
					next, err := before.Apply(m, s.now())
					if errors.Is(err, verification.ErrUnchanged) {
						return before, nil
					}
					if err != nil {
						return before, err
					}
					return s.overwriteState(ctx, next)
				}
			}),
		},
		{"loses one wrong code", []string{"counts wrong codes exactly", "changes nothing for a right code"}, changeStored(func(before, after *verification.Request) {
			if before.WrongCodes == 2 && after.WrongCodes == 3 {
				after.WrongCodes = 2
			}
		})},
		{"counts a right code that is checked", []string{"changes nothing for a right code"}, perInstance(func(s *faultyStore) {
			update := s.update
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				return update(ctx, id, func(r *verification.Request, now time.Time) error {
					err := m(r, now)
					if errors.Is(err, verification.ErrUnchanged) && r.IsProven() && r.Phase == verification.Pending {
						r.WrongCodes++
						return nil
					}
					return err
				})
			}
		})},
		{"answers a right code from a cache", []string{"changes nothing for a right code"}, func(environment) func(*faultyStore) {
			return func(s *faultyStore) {
				var cache sharedMap[*verification.Request]
				update := s.update
				s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
					r, err := update(ctx, id, m)
					known := cache.change(id, func(old *verification.Request) *verification.Request {
						if old == nil && r.IsProven() {
							old = &r
						}
						return old
					})
					if err == nil && known != nil && known.Phase == r.Phase && r.Phase == verification.Pending {
						return *known, nil
					}
					return r, err
				}
			}
		}},
		{"keeps no event of a confirmation", []string{"confirms a request once"}, changeStored(func(_, after *verification.Request) {
			if after.Phase == verification.Verified {
				after.Delivery = verification.Delivery{}
			}
		})},
		{"takes a cancellation for a decline", []string{"ends in one final state when a confirmation", "are none of a request"}, changeStored(
			func(_, after *verification.Request) {
				for i := range after.Hints {
					if after.Hints[i].Kind == verification.HintCanceled {
						after.Hints[i].Kind = verification.HintDeclined
					}
				}
			},
		)},
		{
			"ends all requests at expiresAt",
			[]string{"gives a request that is proven late", "hands out the end of a request", "evicts no request that is proven late"},
			changeStored(func(_, after *verification.Request) {
				if after.IsProven() && after.Phase == verification.Pending {
					after.ProvenAt = after.CreatedAt
				}
			}),
		},
		{"gives all proven requests two minutes more", []string{"gives a request that is proven late", "hands out the end of a request"}, changeStored(
			func(_, after *verification.Request) {
				if after.IsProven() && after.Phase == verification.Pending {
					after.ProvenAt = after.ExpiresAt.Add(-time.Microsecond)
				}
			},
		)},
		{"claims proven requests at expiresAt while no event is sent", []string{"hands out the end of a request"}, func(w environment) func(*faultyStore) {
			return func(s *faultyStore) {
				claim := s.claim
				s.claim = func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
					list, err := claim(ctx, p, n, lease)
					for _, id := range w.created.all() {
						r, readErr := s.inner.Read(ctx, id)
						if lapsed := !w.clock.Now().Before(r.ExpiresAt.Add(verification.ExpiryGrace)); readErr == nil && lapsed && len(list) < n &&
							r.Phase == verification.Pending && r.Delivery.Wanted() && p.Events != verification.EventsOn {
							list = append(list, r)
						}
					}
					return list, err
				}
			}
		}},
	}
}

// now returns the time of the store clock.
func (s *faultyStore) now() time.Time {
	r, err := s.inner.Create(context.Background(), verification.New{ID: "clock", TTL: time.Hour}, verification.Limits{})
	if err == nil {
		_ = s.inner.Delete(context.Background(), "clock", r.Request.Version)
	}
	return r.Request.CreatedAt
}

// refusesDeclined replaces the cool-down of the store: until returns when that ends which a stored request causes for a creation; zero
// for none.
func refusesDeclined(until func(r *verification.Request, n verification.New, l verification.Limits) time.Time) func(environment) func(*faultyStore) {
	return func(w environment) func(*faultyStore) {
		return func(s *faultyStore) {
			create := s.create
			s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
				if _, err := s.inner.Read(ctx, n.ID); err != nil && l.DeclineCooldown > 0 {
					for _, id := range w.created.all() {
						r, err := s.inner.Read(ctx, id)
						if err != nil {
							continue
						}
						if wait := until(&r, n, l).Sub(w.clock.Now()); wait > 0 {
							return verification.Created{}, verification.RateLimited(verification.LimitDeclined, wait)
						}
					}
				}
				l.DeclineCooldown = 0
				return create(ctx, n, l)
			}
		}
	}
}

// cooledDown returns when the number of a declined request has cooled down.
func cooledDown(r *verification.Request, l verification.Limits) time.Time {
	if at := r.DeclinedAt(); !at.IsZero() {
		return at.Add(l.DeclineCooldown)
	}
	return time.Time{}
}

func sameLine(a, b phone.Number) bool { return phone.Canonical(a) == phone.Canonical(b) }

func declineMutants() []mutant {
	return []mutant{
		{"knows no cool-down", []string{
			"start no request", "refuse each of many", "leave the limit", "end with their request", "count after another end",
		}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(_ *verification.New, l *verification.Limits) { l.DeclineCooldown = 0 })
		})},
		{"cools only the form that was declined", []string{"start no request", "end to the instant"}, refusesDeclined(
			func(r *verification.Request, n verification.New, l verification.Limits) time.Time {
				if r.Phone != n.Phone {
					return time.Time{}
				}
				return cooledDown(r, l)
			},
		)},
		{"cools all numbers", []string{"start no request", "refuse each of many", "keep their request"}, refusesDeclined(
			func(r *verification.Request, _ verification.New, l verification.Limits) time.Time {
				return cooledDown(r, l)
			},
		)},
		{"cools for an hour whatever the limits say", []string{"count for what the limits say"}, refusesDeclined(
			func(r *verification.Request, n verification.New, l verification.Limits) time.Time {
				l.DeclineCooldown = cooldown
				if !sameLine(r.Phone, n.Phone) {
					return time.Time{}
				}
				return cooledDown(r, l)
			},
		)},
		{"cools a microsecond too long", []string{"end to the instant"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(_ *verification.New, l *verification.Limits) {
				if l.DeclineCooldown > 0 {
					l.DeclineCooldown += time.Microsecond
				}
			})
		})},
		{"cools from the creation on", []string{"end to the instant", "count until the last"}, refusesDeclined(
			func(r *verification.Request, n verification.New, l verification.Limits) time.Time {
				at := r.DeclinedAt()
				if at.IsZero() || !sameLine(r.Phone, n.Phone) {
					return time.Time{}
				}
				return r.CreatedAt.Add(l.DeclineCooldown - time.Microsecond)
			},
		)},
		{"knows one decline of a number", []string{"count until the last"}, func(w environment) func(*faultyStore) {
			return func(s *faultyStore) {
				refusesDeclined(func(r *verification.Request, n verification.New, l verification.Limits) time.Time {
					declined := 0
					for _, id := range w.created.all() {
						other, err := s.inner.Read(context.Background(), id)
						if err == nil && sameLine(other.Phone, n.Phone) && !other.DeclinedAt().IsZero() {
							declined++
						}
					}
					if declined == 1 || !sameLine(r.Phone, n.Phone) {
						return time.Time{}
					}
					return cooledDown(r, l)
				})(w)(s)
			}
		}},
		{"names the rate of the number for a decline", []string{"start no request", "leave the limit"}, faultyCreate(
			func(_ *faultyStore, create createFunc) createFunc {
				return func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
					c, err := create(ctx, n, l)
					var refused *verification.Error
					if errors.As(err, &refused) && refused.Limit == verification.LimitDeclined {
						err = verification.RateLimited(verification.LimitPerPhoneNumber, refused.RetryAfter)
					}
					return c, err
				}
			},
		)},
		{"refuses the retry of a declined request", []string{"answer the retry"}, faultyCreate(
			func(s *faultyStore, create createFunc) createFunc {
				return func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
					if r, err := s.inner.Read(ctx, n.ID); err == nil && !r.DeclinedAt().IsZero() && l.DeclineCooldown > 0 {
						return verification.Created{}, verification.RateLimited(verification.LimitDeclined, time.Minute)
					}
					return create(ctx, n, l)
				}
			},
		)},
		{"cools for every request that ended", []string{"are none of a request"}, refusesDeclined(
			func(r *verification.Request, n verification.New, l verification.Limits) time.Time {
				if r.Phase != verification.Expired || !sameLine(r.Phone, n.Phone) {
					return time.Time{}
				}
				return r.CreatedAt.Add(l.DeclineCooldown)
			},
		)},
		{"keeps declines of deleted requests", []string{"end with their request"}, func(environment) func(*faultyStore) {
			var declined sharedMap[time.Time]
			return func(s *faultyStore) {
				update, create := s.update, s.create
				s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
					r, err := update(ctx, id, m)
					if at := r.DeclinedAt(); !at.IsZero() {
						declined.change(phone.Canonical(r.Phone).E164(), func(time.Time) time.Time { return at })
					}
					return r, err
				}
				s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
					if at := declined.get(phone.Canonical(n.Phone).E164()); !at.IsZero() && l.DeclineCooldown > 0 && at.Add(l.DeclineCooldown).After(s.now()) {
						return verification.Created{}, verification.RateLimited(verification.LimitDeclined, time.Minute)
					}
					return create(ctx, n, l)
				}
			}
		}},
		{"evicts declined requests before their cool-down is over", []string{"keep their request"}, func(w environment) func(*faultyStore) {
			return evictsItself(w, func(r verification.Request) bool { return r.Evictable(verification.Limits{}, w.clock.Now()) }, byCreation)
		}},
		{"never evicts declined requests", []string{"keep their request"}, func(w environment) func(*faultyStore) {
			return evictsItself(w, func(r verification.Request) bool {
				return r.DeclinedAt().IsZero() && r.Evictable(verification.Limits{}, w.clock.Now())
			}, byCreation)
		}},
	}
}
