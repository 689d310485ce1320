package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func limitMutants() []mutant {
	return []mutant{
		{"counts only stored requests", []string{"count deleted requests"}, func() func(*faultyStore) {
			return countsItself(func(ctx context.Context, s *faultyStore, id string) bool {
				_, err := s.Store.Read(ctx, id)
				return err == nil
			})
		}},
		{"counts before it creates, without a lock", []string{"are not exceeded by concurrent"}, func() func(*faultyStore) {
			return countsItself(func(context.Context, *faultyStore, string) bool {
				letOthersRun()
				return true
			})
		}},
		{"keeps the first limits", []string{"follow a limit that is changed"}, func() func(*faultyStore) {
			var first sharedMap[verification.Limits]
			return func(s *faultyStore) {
				s.changeCreations(func(_ *verification.New, l *verification.Limits) { *l = first.keepFirst("", *l) })
			}
		}},
		{"ignores the cap", []string{"is not exceeded", "never evicts open requests"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(_ *verification.New, l *verification.Limits) { l.MaxStored = 0 })
		})},
		{"takes codes for links", []string{"send a number", "send for a key", "send no"}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(n *verification.New, _ *verification.Limits) { n.Terms.Deliver = "" })
		})},
		{"counts codes in each replica", []string{"count on after a flood"}, perInstance(func(s *faultyStore) {
			var numbers sharedMap[int]
			create := s.create
			s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
				if n.Terms.Deliver != "" && numbers.change(n.Phone.E164(), func(i int) int { return i + 1 }) > 5 {
					return verification.Created{}, verification.CodesLimited(verification.LimitCodeNumber, time.Hour)
				}
				n.Terms.Deliver = ""
				return create(ctx, n, l)
			}
		})},
		{"knows no cool-down", []string{
			"start no request", "refuse each of many", "leave the limit", "end with their request", "count after another end",
		}, perInstance(func(s *faultyStore) {
			s.changeCreations(func(_ *verification.New, l *verification.Limits) { l.DeclineCooldown = 0 })
		})},
	}
}

// countsItself replaces the limit per key of the store, and counts only the creations that suits accepts.
func countsItself(suits func(ctx context.Context, s *faultyStore, id string) bool) func(*faultyStore) {
	var admitted sharedMap[[]string]
	return func(s *faultyStore) {
		s.create = func(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
			counted := 0
			for _, id := range admitted.get(n.KeyName) {
				if suits(ctx, s, id) {
					counted++
				}
			}
			if l.PerKey.Limited() && counted >= l.PerKey.Requests {
				return verification.Created{}, verification.RateLimited(verification.LimitPerKey, l.PerKey.Period)
			}
			l.PerKey = verification.Rate{}
			c, err := s.Store.Create(ctx, n, l)
			if err == nil {
				admitted.change(n.KeyName, func(ids []string) []string { return append(ids, n.ID) })
			}
			return c, err
		}
	}
}

func queueMutants() []mutant {
	same := func(list []verification.Request) []verification.Request { return list }
	asAsked := func(lease time.Duration) time.Duration { return lease }
	return []mutant{
		{"drops the last of a batch", []string{"hands each of 500", "hands out due work"}, changeClaims(asAsked, func(r []verification.Request) []verification.Request {
			return r[:max(min(1, len(r)), len(r)-1)]
		})},
		{"hands out events of verified requests only", []string{"hands out the event of a pending", "makes the event of an expired"}, changeClaims(
			asAsked, func(list []verification.Request) []verification.Request {
				return slices.DeleteFunc(list, func(r verification.Request) bool {
					return r.Delivery.Wanted() && r.Phase != verification.Verified
				})
			},
		)},
		{"hands out requests again", []string{"hands each of 500", "keep work from others"}, func() func(*faultyStore) {
			var last sharedMap[[]verification.Request]
			return func(s *faultyStore) {
				s.claim = func(ctx context.Context, p verification.Policy, n int, lease time.Duration) ([]verification.Request, error) {
					list, err := s.Store.Claim(ctx, p, n, lease)
					again := last.get(s.project)
					last.change(s.project, func([]verification.Request) []verification.Request { return list })
					return append(list, again...)[:min(n, len(list)+len(again))], err
				}
			}
		}},
		{"ignores leases", []string{"keep work from others", "end neither early nor late", "hands each of 500"}, changeClaims(
			func(time.Duration) time.Duration { return 0 }, same,
		)},
		{"never ends a lease", []string{"keep work from others", "fence off a holder", "return work in its original order"}, changeClaims(
			func(time.Duration) time.Duration { return 1000 * time.Hour }, same,
		)},
		{"forgets epochs", []string{"fence off a holder", "count an epoch"}, func() func(*faultyStore) {
			claims := changeClaims(asAsked, func(list []verification.Request) []verification.Request {
				for i := range list {
					list[i].Epoch = 0
				}
				return list
			})()
			updates := changeUpdates(func(m mutation) mutation {
				return func(r *verification.Request, now time.Time) error {
					r.Epoch = 0
					return m(r, now)
				}
			})()
			return func(s *faultyStore) {
				claims(s)
				updates(s)
			}
		}},
	}
}
