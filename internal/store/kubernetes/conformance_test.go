package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/store/storetest"
	"github.com/phoneproof/phoneproof/internal/verification"
)

var _ = Describe("The store contract", func() {
	storetest.Exercise(func() storetest.Harness {
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 2, 28, 23, 59, 59, 987654321, time.UTC))
		config := rest.CopyConfig(server)
		line := &line{}
		config.Wrap(line.wrap)
		ctx := context.Background() // Exercise has none for us
		var stores []*Store
		return storetest.Harness{
			Open: func(project string) verification.Store {
				s := open(ctx, project, Options{Config: config, Clock: clock})
				stores = append(stores, s)
				return formed{s}
			},
			Advance: func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) },
			Settle: func() {
				for _, s := range stores {
					settle(ctx, s)
				}
			},
			Break: line.cut,
		}
	}, storetest.Queue|storetest.ExactLimits)
})

// line is a connection to the API server that can be cut.
type line struct{ dead atomic.Bool }

func (l *line) cut() (repair func()) {
	l.dead.Store(true)
	return func() { l.dead.Store(false) }
}

func (l *line) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if l.dead.Load() {
			return nil, errors.New("the line is cut")
		}
		return next.RoundTrip(r)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
