package controllers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
)

// begin runs a loop with a fake clock, and returns a function that ends it.
func begin(t *testing.T, o Options) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	synctest.Wait()
	return func() {
		cancel()
		NewWithT(t).Expect(<-ended).To(Succeed())
	}
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestRun_reconcilesAtFirstAfterChangesAndWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var runs, again atomic.Int64
		one, two := make(chan struct{}, 1), make(chan struct{}, 1)
		defer begin(t, Options{
			Reconcile: func(context.Context) (time.Duration, error) {
				runs.Add(1)
				return time.Duration(again.Load()), nil
			},
			Changes: []<-chan struct{}{one, nil, two},
		})()
		g.Expect(runs.Load()).To(BeEquivalentTo(1))
		pass(24 * time.Hour)
		g.Expect(runs.Load()).To(BeEquivalentTo(1), "nothing changed")
		one <- struct{}{}
		synctest.Wait()
		g.Expect(runs.Load()).To(BeEquivalentTo(2))
		again.Store(int64(time.Minute))
		two <- struct{}{}
		synctest.Wait()
		g.Expect(runs.Load()).To(BeEquivalentTo(3))
		pass(time.Minute - 1)
		g.Expect(runs.Load()).To(BeEquivalentTo(3))
		pass(1)
		g.Expect(runs.Load()).To(BeEquivalentTo(4))
	})
}

// beginCounting runs a loop that counts its reconciliations, and returns the count and a channel of changes.
func beginCounting(t *testing.T, o Options) (runs *atomic.Int64, changes chan struct{}, end func()) {
	t.Helper()
	runs, changes = &atomic.Int64{}, make(chan struct{}, 1)
	o.Reconcile = func(context.Context) (time.Duration, error) { runs.Add(1); return 0, nil }
	o.Changes = []<-chan struct{}{changes}
	return runs, changes, begin(t, o)
}

func TestRun_collectsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		runs, changes, end := beginCounting(t, Options{Quiet: 200 * time.Millisecond})
		defer end()
		g.Expect(runs.Load()).To(BeZero(), "the beginning is a change, too")
		pass(200 * time.Millisecond)
		g.Expect(runs.Load()).To(BeEquivalentTo(1))
		for range 10 {
			changes <- struct{}{}
			pass(10 * time.Millisecond)
		}
		pass(100 * time.Millisecond)
		g.Expect(runs.Load()).To(BeEquivalentTo(2))
		pass(time.Hour)
		g.Expect(runs.Load()).To(BeEquivalentTo(2), "all that changed meanwhile was seen")
	})
}

func TestRun_keepsTheGapBetweenChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		runs, changes, end := beginCounting(t, Options{MinGap: time.Second})
		defer end()
		for range 1000 {
			changes <- struct{}{}
			pass(10 * time.Millisecond)
		}
		g.Expect(runs.Load()).To(BeNumerically("~", 10, 1))
		pass(time.Hour)
		runs.Store(0)
		changes <- struct{}{}
		synctest.Wait()
		g.Expect(runs.Load()).To(BeEquivalentTo(1), "at once after a pause")
	})
}

func TestRun_backsOffAndLogsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var works atomic.Bool
		times, lines := make(chan time.Time, 1000), make(chan string, 1000)
		defer begin(t, Options{
			Reconcile: func(context.Context) (time.Duration, error) {
				times <- time.Now()
				if works.Load() {
					return 0, nil
				}
				return 0, errors.New("down")
			},
			Failure: "status update failed, will retry",
			Log:     funcr.New(func(_, args string) { lines <- args }, funcr.Options{}),
		})()
		pass(time.Hour)
		g.Expect(len(times)).To(BeNumerically("~", 3600/27, 12))
		last := <-times
		for i := range 5 {
			next := <-times
			g.Expect(next.Sub(last)).To(BeNumerically("~", MinBackoff<<i*9/10, MinBackoff<<i/10))
			last = next
		}
		g.Expect(<-lines).To(And(ContainSubstring("will retry"), ContainSubstring("down")))
		works.Store(true)
		pass(MaxBackoff)
		runs := len(times)
		pass(time.Hour)
		g.Expect(times).To(HaveLen(runs), "done")
	})
}

func TestRun_endsAtOnce(t *testing.T) {
	for name, reconcile := range map[string]func(context.Context) (time.Duration, error){
		"waiting for a change": func(context.Context) (time.Duration, error) { return 0, nil },
		"waiting for its time": func(context.Context) (time.Duration, error) { return time.Hour, nil },
		"backing off":          func(context.Context) (time.Duration, error) { return 0, errors.New("down") },
		"reconciling":          func(ctx context.Context) (time.Duration, error) { <-ctx.Done(); return 0, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := begin(t, Options{Reconcile: reconcile, Changes: []<-chan struct{}{make(chan struct{})}})
				began := time.Now()
				end()
				NewWithT(t).Expect(time.Now()).To(Equal(began))
			})
		})
	}
}
