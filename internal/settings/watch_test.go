package settings

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestNotifications_unavailable(t *testing.T) {
	g := NewWithT(t)
	log, logs := newLogger()
	n := &notifications{log: log}
	g.Expect(n.pollInterval()).To(Equal(slowPoll))
	n.reportIncomplete(errors.New("too many open files"))
	n.reportIncomplete(errors.New("too many open files"))
	g.Expect(n.pollInterval()).To(And(Equal(fastPoll), BeNumerically("<", time.Second)))
	g.Expect(strings.Count(string(logs.Contents()), "too many open files")).To(Equal(1))
	g.Expect(n.watchDirs([]string{t.TempDir()})).To(BeFalse())
	g.Expect(n.events()).To(BeNil())
	g.Expect(n.errors()).To(BeNil())
	n.close()
}

func TestNotifications_watchDirs(t *testing.T) {
	g := NewWithT(t)
	log, _ := newLogger()
	n := newNotifications(log)
	defer n.close()
	a, b := t.TempDir(), t.TempDir()
	g.Expect(n.watchDirs([]string{a, a, a + "/nothing"})).To(BeTrue())
	g.Expect(n.watchDirs([]string{a})).To(BeFalse(), "no new folder")
	g.Expect(n.watchDirs([]string{b})).To(BeTrue())
	g.Expect(n.watcher.WatchList()).To(Equal([]string{resolvePath(b)}))
	g.Expect(n.pollInterval()).To(Equal(slowPoll), "a missing folder is no problem")
}

func TestWatch_polls_by_its_clock(t *testing.T) {
	g := NewWithT(t)
	log, _ := newLogger()
	clk := clocktesting.NewFakeClock(start)
	reloads := make(chan struct{}, 1)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- watchFolders(ctx, clk, log, watched{
			dirs:   func() []string { return nil },
			reload: func() { reloads <- struct{}{} },
		})
	}()
	for _, step := range []time.Duration{1, slowPoll, slowPoll} {
		g.Eventually(clk.HasWaiters).WithTimeout(30 * time.Second).Should(BeTrue())
		clk.Step(step)
		g.Eventually(reloads).WithTimeout(30 * time.Second).Should(Receive())
	}
	stop()
	g.Eventually(done).WithTimeout(30 * time.Second).Should(Receive(BeNil()))
}
