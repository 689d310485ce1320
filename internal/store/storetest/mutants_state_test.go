package storetest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func creationMutants() []mutant {
	return []mutant{
		{"never reports an existing request", []string{"returns the stored request", "neither limit nor count"}, perInstance(func(s *faultyStore) {
			create := s.create
			s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
				c, err := create(ctx, n, l)
				c.Existing = false
				return c, err
			}
		})},
		{"reads before it creates, without a lock", []string{"creates one request from two hundred"}, perInstance(func(s *faultyStore) {
			create := s.create
			s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
				_, err := s.inner.Read(ctx, n.ID)
				letOthersRun()
				c, createErr := create(ctx, n, l)
				c.Existing = err == nil
				return c, createErr
			}
		})},
		{"loses one creation in seven", []string{"loses none of many", "shows a new request at once"}, func(environment) func(*faultyStore) {
			var count sharedMap[int]
			return func(s *faultyStore) {
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
		{"forgets metadata", []string{"keeps what the client gave"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(n *verification.New, _ *verification.Limits) { n.Metadata = nil })
		})},
		{"shares metadata with its callers", []string{"keeps what the client gave"}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) {
				if r.Metadata != nil {
					r.Metadata["cart"] = "spoiled"
				}
			})
		})},
		{"forgets hints", []string{"returns every field of a request that is asked by an echo", "hands out the event of a pending"}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) { r.Hints = nil })
		})},
		{"keeps no event of an expired request", []string{"returns every field of a request that is declined", "makes the event of an expired"}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) {
				if r.Phase == verification.Expired {
					r.Delivery = verification.Delivery{}
				}
			})
		})},
		{"forgets the nonce of an echo", []string{"returns every field of a request that is asked by an echo"}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) {
				for i := range r.Contacts {
					r.Contacts[i].Nonce = ""
				}
			})
		})},
		{"uses its own clock", []string{"stores a pending request"}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) { r.CreatedAt = r.CreatedAt.Add(time.Second) })
		})},
		{
			"knows only one project",
			[]string{"keeps projects apart", "admit as many requests per key", "admit as many requests per phone", "hands out work of its own"},
			perInstance(func(s *faultyStore) { s.useStore(s.elsewhere("shared")) }),
		},
		{"compares only the beginning of project names", []string{"keeps projects of one namespace", "hands out work of its own"}, perInstance(func(s *faultyStore) {
			s.useStore(s.elsewhere(strings.TrimSuffix(s.project, "-2")))
		})},
		{"returns an empty request for an unknown id", []string{"finds nothing for an id"}, perInstance(func(s *faultyStore) {
			s.readNow = func(ctx context.Context, id string) (verification.Request, error) {
				r, err := s.inner.Read(ctx, id)
				if errors.Is(err, verification.ErrNotFound) {
					err = nil
				}
				return r, err
			}
		})},
	}
}

// letOthersRun lets all other goroutines run until they wait, in a bubble of synctest.
func letOthersRun() { <-time.After(time.Nanosecond) }

func forgetsField(what, caughtBy string, forget func(*verification.Request)) mutant {
	return mutant{"forgets " + what, []string{"returns every field of a request that is " + caughtBy}, perInstance(func(s *faultyStore) { s.changeAnswers(forget) })}
}

func stateMutants() []mutant {
	return slices.Concat(forgetfulMutants(), mixedUpMutants(), cachingMutants())
}

// forgetfulMutants lose part of the data.
func forgetfulMutants() []mutant {
	return []mutant{
		forgetsField("the last senders", "bound", func(r *verification.Request) { r.Contacts = r.Contacts[:min(4, len(r.Contacts))] }),
		forgetsField("the kind of a contact", "bound", func(r *verification.Request) {
			for i := range r.Contacts {
				r.Contacts[i].Kind = ""
			}
		}),
		{"forgets the other messengers", []string{"stores a pending request"}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) { r.OtherMethods = nil })
		})},
		{"forgets the display name", []string{"stores a pending request"}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) { r.DisplayName = "" })
		})},
		forgetsField("the number reported", "verified without", func(r *verification.Request) { r.Actual = mustNumber(claimedNumber) }),
		forgetsField("the messenger", "verified by the other messenger", func(r *verification.Request) { r.VerifiedBy = "" }),
		forgetsField("the assurance", "verified by a", func(r *verification.Request) { r.Assurance = "" }),
		forgetsField("the reason", "between two attempts", func(r *verification.Request) { r.Delivery.LastReason = "" }),
		forgetsField("the last extra attempt", "between two attempts", func(r *verification.Request) { r.Delivery.ExtraFrom = time.Time{} }),
		forgetsField("the last status", "delivered", func(r *verification.Request) { r.Delivery.LastStatusCode = 0 }),
		forgetsField("milliseconds", "exhausted", func(r *verification.Request) {
			r.Delivery.ExhaustedAt = r.Delivery.ExhaustedAt.Truncate(time.Millisecond)
		}),
		forgetsField("the redelivery", "due again", func(r *verification.Request) { r.Redelivered = "" }),
		forgetsField("the body", "expired", func(r *verification.Request) {
			if r.Phase == verification.Expired {
				r.BodyHash = ""
			}
		}),
		{"restores what Create decided in silence", []string{"refuses a mutation of what Create decided"}, perInstance(func(s *faultyStore) {
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				return s.inner.Update(ctx, id, func(r *verification.Request, now time.Time) error {
					before := r.Clone()
					err := m(r, now)
					r.ID, r.Phone, r.KeyName = before.ID, before.Phone, before.KeyName
					r.CreatedAt, r.ExpiresAt = before.CreatedAt, before.ExpiresAt
					return err
				})
			}
		})},
		{"answers with finer times than it keeps", []string{"keeps times to the microsecond"}, perInstance(func(s *faultyStore) {
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				var given time.Time
				r, err := s.inner.Update(ctx, id, func(r *verification.Request, now time.Time) error {
					err := m(r, now)
					given = r.Delivery.NextAttemptAt
					return err
				})
				r.Delivery.NextAttemptAt = given
				return r, err
			}
		})},
	}
}

// mixedUpMutants confuse states: they share slices or versions.
func mixedUpMutants() []mutant {
	return []mutant{
		{"returns its own slices", []string{"returns copies"}, func(environment) func(*faultyStore) {
			var kept sharedMap[[]verification.Contact]
			return func(s *faultyStore) {
				s.changeAnswers(func(r *verification.Request) {
					r.Contacts = kept.change(r.Version, func(c []verification.Contact) []verification.Contact {
						if c == nil {
							c = r.Contacts
						}
						return c
					})
				})
			}
		}},
		{"restarts versions with each creation", []string{"frees the id"}, func(environment) func(*faultyStore) {
			var versions sharedMap[map[string]string]
			return func(s *faultyStore) {
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
				s.changeAnswers(name)
				s.remove = func(ctx context.Context, id, version string) error {
					r, err := s.inner.Read(ctx, id)
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

// cachingMutants answer with outdated states.
func cachingMutants() []mutant {
	return []mutant{
		{"answers from a cache", []string{"shows each write at once"}, perInstance(func(s *faultyStore) {
			var cache sharedMap[*verification.Request]
			s.readNow = func(ctx context.Context, id string) (verification.Request, error) {
				r, err := s.inner.Read(ctx, id)
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
		{"caches pending requests", []string{"shows each phase at once"}, perInstance(func(s *faultyStore) {
			var cache sharedMap[*verification.Request]
			s.readFinal = func(ctx context.Context, id string) (verification.Request, error) {
				r, err := s.inner.ReadFinal(ctx, id)
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
		{"caches deleted requests", []string{"shows only stored requests"}, perInstance(func(s *faultyStore) {
			var cache sharedMap[verification.Request]
			s.readFinal = func(ctx context.Context, id string) (verification.Request, error) {
				r, err := s.inner.ReadFinal(ctx, id)
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
			perInstance(func(s *faultyStore) {
				s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
					var now time.Time
					r, err := s.inner.Update(ctx, id, func(_ *verification.Request, at time.Time) error {
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
					return s.overwriteState(ctx, r)
				}
			}),
		},
		{"writes the changes of a failed mutation", []string{"returns a mutation's own error"}, perInstance(func(s *faultyStore) {
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				var refused error
				r, err := s.inner.Update(ctx, id, func(r *verification.Request, now time.Time) error {
					refused = m(r, now)
					return nil
				})
				return r, errors.Join(err, refused)
			}
		})},
		{"writes unchanged requests", []string{"writes nothing if"}, perInstance(func(s *faultyStore) {
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
		{"has one version for all states", []string{"changes the version", "rejects an outdated version"}, perInstance(func(s *faultyStore) {
			s.changeAnswers(func(r *verification.Request) { r.Version = "1" })
		})},
		{"uses the process's clock", []string{"passes mutations the time"}, perInstance(func(s *faultyStore) {
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				return s.inner.Update(ctx, id, func(r *verification.Request, _ time.Time) error { return m(r, time.Now()) })
			}
		})},
		{"hides a final state from mutations", []string{"never leaves a final state"}, perInstance(func(s *faultyStore) {
			s.update = func(ctx context.Context, id string, m mutation) (verification.Request, error) {
				return s.inner.Update(ctx, id, func(r *verification.Request, now time.Time) error {
					r.Phase = verification.Pending
					r.ExpiresAt = now.Add(time.Minute)
					return m(r, now)
				})
			}
		})},
		{
			"deletes any version",
			[]string{"either deletes or updates", "deletes one state once", "rejects an outdated version", "frees the id"},
			perInstance(func(s *faultyStore) {
				s.remove = func(ctx context.Context, id, _ string) error {
					for {
						r, err := s.inner.Read(ctx, id)
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
		{"deletes nothing", []string{"deletes the version"}, perInstance(func(s *faultyStore) {
			s.remove = func(context.Context, string, string) error { return nil }
		})},
	}
}
