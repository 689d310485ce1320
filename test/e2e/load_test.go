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

// load is clients that ask on and on, two kinds of them: one keeps its connections, one makes a new one each time. They
// repeat only what the store had no time for.
type load struct {
	shop   *shop
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu       sync.Mutex
	done     int
	slow     int // what was repeated, on a machine that has other work: no fault of what a spec does
	failures []string
	ids      []string
}

// pace is how often each client asks; well below what a project of this store is made for.
const pace = 400 * time.Millisecond

// every does something again and again until ctx ends.
func every(ctx context.Context, pause time.Duration, do func()) {
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

func (s *shop) load(ctx context.Context) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{shop: s, cancel: cancel}
	for _, keep := range []bool{true, false} {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: !keep}, Timeout: 30 * time.Second}
		l.group.Go(func() { every(ctx, pace, func() { l.once(context.WithoutCancel(ctx), c) }) })
	}
	DeferCleanup(l.cancel)
	return l
}

// A client repeats what the store had no time for up to maxRepeats times, after as long as Retry-After says.
const (
	maxRepeats = 5
	retryAfter = 2 * time.Second
)

// once begins a verification and asks for its state.
func (l *load) once(ctx context.Context, c *http.Client) {
	began := time.Now()
	r, got, err := l.exchange(ctx, c)
	slow := storeTooSlow(got, err)
	for range maxRepeats {
		if !storeTooSlow(got, err) {
			break
		}
		<-time.After(retryAfter)
		r, got, err = l.exchange(ctx, c)
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

func (l *load) exchange(ctx context.Context, c *http.Client) (r request, got answer, err error) {
	s := l.shop
	got, err = s.do(ctx, c, http.MethodPost, s.api+"/api/verify/init", s.key, map[string]string{"phoneNumber": newNumber()})
	if err != nil || got.code != http.StatusOK {
		return r, got, err
	}
	if err = json.Unmarshal([]byte(got.body), &r); err == nil {
		got, err = s.do(ctx, c, http.MethodGet, s.api+"/api/verify/status?id="+r.ID, s.key, nil)
	}
	return r, got, err
}

func storeTooSlow(got answer, err error) bool {
	return err == nil && got.code == http.StatusServiceUnavailable && strings.Contains(got.body, "storage did not answer in time")
}

// requests returns how many were answered well.
func (l *load) requests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ids)
}

// keepsOn waits for further requests, so that what happened just before had the chance to hurt.
func (l *load) keepsOn(ctx context.Context) {
	GinkgoHelper()
	enough := l.requests() + 10
	Eventually(l.requests).WithContext(ctx).Should(BeNumerically(">=", enough))
}

// end stops the clients and returns what failed.
func (l *load) end() []string {
	GinkgoHelper()
	l.cancel()
	l.group.Wait()
	GinkgoWriter.Printf("%d requests under load, %d failed, %d repeated\n", l.done, len(l.failures), l.slow)
	if l.slow > 0 {
		AddReportEntry("the store had no time for", fmt.Sprintf("%d of %d requests, which were repeated", l.slow, l.done))
	}
	return slices.Clone(l.failures)
}
