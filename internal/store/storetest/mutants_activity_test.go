package storetest

import (
	"context"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

type activityFunc = func(context.Context, verification.Method, time.Time) (verification.Activity, error)

func activityMutants() []mutant {
	const expired, heard = "count requests that expired since", "report the last message"
	faulty := func(bend func(s *faultyStore, inner activityFunc) activityFunc) func(environment) func(*faultyStore) {
		return perInstance(func(s *faultyStore) { s.activity = bend(s, s.activity) })
	}
	// missing returns the fault of a store whose answer is changed.
	missing := func(change func(a *verification.Activity)) func(environment) func(*faultyStore) {
		return faulty(func(_ *faultyStore, inner activityFunc) activityFunc {
			return func(ctx context.Context, m verification.Method, since time.Time) (verification.Activity, error) {
				a, err := inner(ctx, m, since)
				change(&a)
				return a, err
			}
		})
	}
	return []mutant{
		{"counts the requests of both messengers", []string{expired, heard}, faulty(func(_ *faultyStore, inner activityFunc) activityFunc {
			return func(ctx context.Context, m verification.Method, since time.Time) (verification.Activity, error) {
				a, err := inner(ctx, m, since)
				other, otherErr := inner(ctx, verification.Telegram, since)
				a.Expired += other.Expired
				if other.LastHeard.After(a.LastHeard) {
					a.LastHeard = other.LastHeard
				}
				if err == nil {
					err = otherErr
				}
				return a, err
			}
		})},
		{"counts whatever is stored", []string{expired, heard}, faulty(func(_ *faultyStore, inner activityFunc) activityFunc {
			return func(ctx context.Context, m verification.Method, _ time.Time) (verification.Activity, error) {
				return inner(ctx, m, time.Time{})
			}
		})},
		{"counts none that ended at that very time", []string{expired}, faulty(func(_ *faultyStore, inner activityFunc) activityFunc {
			return func(ctx context.Context, m verification.Method, since time.Time) (verification.Activity, error) {
				return inner(ctx, m, since.Add(time.Microsecond))
			}
		})},
		{"hears nothing", []string{expired, heard}, missing(func(a *verification.Activity) { a.LastHeard = time.Time{} })},
		{"hears when a request began", []string{heard}, faulty(func(_ *faultyStore, inner activityFunc) activityFunc {
			return func(ctx context.Context, m verification.Method, since time.Time) (verification.Activity, error) {
				a, err := inner(ctx, m, since)
				if a.LastHeard.IsZero() {
					a.LastHeard = since
				}
				return a, err
			}
		})},
	}
}
