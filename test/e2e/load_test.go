//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// clientLoad is a continuous load of two clients: one keeps its connections, one opens a new one for each call. They repeat
// only calls that the store had no time for.
type clientLoad struct {
	shop   *shop
	verify bool // whether each request is verified, so that there are events
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu       sync.Mutex
	done     int
	slow     int // repeated calls, caused by a loaded machine and not by the spec
	failures []string
	ids      []string
}

// pace is the interval of each client's calls, well below the capacity of a project with this store.
const pace = 400 * time.Millisecond

// repeatEvery calls do at every pause until ctx ends.
func repeatEvery(ctx context.Context, pause time.Duration, do func()) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

func (s *shop) startLoad(ctx context.Context) *clientLoad { return s.startClients(ctx, false) }

func (s *shop) startClients(ctx context.Context, verify bool) *clientLoad {
	ctx, cancel := context.WithCancel(ctx)
	asBegun := *s // a spec may take another key meanwhile
	l := &clientLoad{shop: &asBegun, verify: verify, cancel: cancel}
	for _, keep := range []bool{true, false} {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: !keep}, Timeout: 30 * time.Second}
		l.group.Go(func() { repeatEvery(ctx, pace, func() { l.runOnce(context.WithoutCancel(ctx), c) }) })
	}
	DeferCleanup(l.cancel)
	return l
}

// A client repeats a call that the store had no time for up to maxRepeats times, each after the time in Retry-After.
const (
	maxRepeats = 5
	retryAfter = 2 * time.Second
)

// runOnce begins a verification and reads its status.
func (l *clientLoad) runOnce(ctx context.Context, c *http.Client) {
	began := time.Now()
	r, got, err := l.beginAndRead(ctx, c)
	slow := storeTooSlow(got, err)
	for range maxRepeats {
		if !storeTooSlow(got, err) {
			break
		}
		<-time.After(retryAfter)
		r, got, err = l.beginAndRead(ctx, c)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done++
	if slow {
		l.slow++
	}
	if err != nil || got.code != http.StatusOK {
		l.failures = append(l.failures, fmt.Sprintf("%s, after %s: %d %s %v",
			began.Format(time.TimeOnly), time.Since(began).Round(time.Millisecond), got.code, got.body, err))
		return
	}
	l.ids = append(l.ids, r.ID)
}

func (l *clientLoad) beginAndRead(ctx context.Context, c *http.Client) (r request, got answer, err error) {
	s, wait := l.shop, ""
	r.number = newNumber()
	got, err = s.sendRequest(ctx, c, http.MethodPost, s.api+"/api/verify/init", s.key, map[string]string{"phoneNumber": r.number, "method": "WHATSAPP"})
	if err != nil || got.code != http.StatusOK {
		return r, got, err
	}
	if err = json.Unmarshal([]byte(got.body), &r); err != nil {
		return r, got, err
	}
	if l.verify {
		user := s.sim + "/sim/users"
		s.trySendRequest(ctx, http.MethodPost, user, map[string]string{"name": "Ada", "phone": r.number}, nil)
		defer s.trySendRequest(ctx, http.MethodDelete, user+"/"+r.number, nil, nil) // the simulator keeps a limited number
		s.trySendMessage(ctx, r)
		wait = "&wait=20s"
	}
	got, err = s.sendRequest(ctx, c, http.MethodGet, s.api+"/api/verify/status?id="+r.ID+wait, s.key, nil)
	return r, got, err
}

func storeTooSlow(got answer, err error) bool {
	return err == nil && got.code == http.StatusServiceUnavailable && strings.Contains(got.body, "storage did not answer in time")
}

// countRequests returns the number of successful requests.
func (l *clientLoad) countRequests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ids)
}

// awaitMore waits for more requests, so that an effect of the previous fault would be seen.
func (l *clientLoad) awaitMore(ctx context.Context) {
	GinkgoHelper()
	enough := l.countRequests() + 10
	Eventually(l.countRequests).WithContext(ctx).Should(BeNumerically(">=", enough))
}

// stop stops the clients and returns the failures.
func (l *clientLoad) stop() []string {
	GinkgoHelper()
	l.cancel()
	l.group.Wait()
	GinkgoWriter.Printf("%d requests under load, %d failed, %d repeated\n", l.done, len(l.failures), l.slow)
	if l.slow > 0 {
		AddReportEntry("the store had no time for", fmt.Sprintf("%d of %d requests, which were repeated", l.slow, l.done))
	}
	return slices.Clone(l.failures)
}
