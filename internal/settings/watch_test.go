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

func TestSigns_without_notifications(t *testing.T) {
	g := NewWithT(t)
	log, logs := newLogger()
	s := &signs{log: log}
	g.Expect(s.poll()).To(Equal(slowPoll))
	s.incomplete(errors.New("too many open files"))
	s.incomplete(errors.New("too many open files"))
	g.Expect(s.poll()).To(And(Equal(fastPoll), BeNumerically("<", time.Second)))
	g.Expect(strings.Count(string(logs.Contents()), "too many open files")).To(Equal(1))
	g.Expect(s.follow([]string{t.TempDir()})).To(BeFalse())
	g.Expect(s.events()).To(BeNil())
	g.Expect(s.errors()).To(BeNil())
	s.close()
}

func TestSigns_follow(t *testing.T) {
	g := NewWithT(t)
	log, _ := newLogger()
	s := newSigns(log)
	defer s.close()
	a, b := t.TempDir(), t.TempDir()
	g.Expect(s.follow([]string{a, a, a + "/nothing"})).To(BeTrue())
	g.Expect(s.follow([]string{a})).To(BeFalse(), "nothing is new")
	g.Expect(s.follow([]string{b})).To(BeTrue())
	g.Expect(s.watcher.WatchList()).To(Equal([]string{resolved(b)}))
	g.Expect(s.poll()).To(Equal(slowPoll), "a folder that is not there is no trouble")
}

func TestWatch_polls_by_its_clock(t *testing.T) {
	g := NewWithT(t)
	log, _ := newLogger()
	clk := clocktesting.NewFakeClock(start)
	reloads := make(chan struct{}, 1)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- watch(ctx, clk, log, watched{
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
