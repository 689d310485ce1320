package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAwaitReady_doesNotCountAnOutage(t *testing.T) {
	g := NewWithT(t)
	late := fmt.Errorf("wait until replica is ready: %w", context.DeadlineExceeded)
	i := &injector{}
	waits := 0
	await := func(during ...func()) func() error {
		waits = 0
		return func() error {
			waits++
			if waits > len(during) {
				return nil
			}
			during[waits-1]()
			return late
		}
	}
	change := func() { i.outages.Add(1) }
	calm := func() {}

	g.Expect(i.awaitReady(await(calm))).To(MatchError(late), "the store was there")
	g.Expect(waits).To(Equal(1))

	g.Expect(i.awaitReady(await(change, calm, change))).To(Succeed(), "an outage began, lasted, and ended")
	g.Expect(waits).To(Equal(4))

	g.Expect(i.awaitReady(await(change, change, calm))).To(MatchError(late), "and its time counts after that")
	g.Expect(waits).To(Equal(3))

	exited := errors.New("it exited")
	i.outages.Store(1)
	g.Expect(i.awaitReady(func() error { return exited })).To(MatchError(exited), "waiting is of no use")
}
