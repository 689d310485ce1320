package operator

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/health"
)

// caches are filled when the test sets it.
type caches struct{ filled atomic.Bool }

func (c *caches) WaitForCacheSync(ctx context.Context) bool {
	if !c.filled.Load() {
		<-ctx.Done()
	}
	return c.filled.Load()
}

func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, stop := context.WithCancel(t.Context())
		c := &caches{}
		readiness := newReadiness(ctx, c, func() string { return "" }, logr.Discard())
		handler := health.NewProbesHandler(readiness)
		probe := func(path string) int {
			began := time.Now()
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, http.NoBody))
			g.Expect(time.Since(began)).To(BeZero(), "no probe waits")
			return answer.Code
		}
		g.Expect(probe("/readyz")).To(Equal(http.StatusServiceUnavailable), "not started yet")
		started, end := context.WithCancel(t.Context()) // it goes on until the manager has stopped
		defer end()
		go func() { _ = readiness.Start(started) }()
		<-time.After(time.Minute)
		g.Expect(probe("/readyz")).To(Equal(http.StatusServiceUnavailable), "the caches are not filled")
		g.Expect(probe("/livez")).To(Equal(http.StatusOK))
		c.filled.Store(true)
		<-time.After(2 * time.Second)
		g.Expect(probe("/readyz")).To(Equal(http.StatusOK))
		stop()
		g.Expect(probe("/readyz")).To(Equal(http.StatusServiceUnavailable), "at once when the operator is to stop")
	})
}
