package telegram

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

// polling is a world whose updates are fetched, in a bubble of synctest.
type polling struct {
	*world

	poller *Poller
	mu     sync.Mutex
	states []PollState
	stop   func() time.Duration
}

func newPolling(t *testing.T, o PollerOptions) *polling {
	t.Helper()
	p := &polling{world: newWorld(t, true)}
	p.settings.Telegram.Polling = true
	o.Report = func(s PollState, _ error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.states = append(p.states, s)
	}
	p.poller = p.channel.NewPoller(o)
	return p
}

// start runs the poller until stop or the end of the test. stop returns how long it took to end.
func (p *polling) start() {
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.poller.Start(ctx) }()
	p.stop = func() time.Duration {
		began := time.Now()
		cancel()
		p.Expect(<-ended).To(Succeed())
		return time.Since(began)
	}
	synctest.Wait()
}

func (p *polling) reported() []PollState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.states)
}

// pass lets time go by.
func (p *polling) pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// asked returns the offsets of all polls.
func (p *polling) asked() []int64 {
	var offsets []int64
	for _, body := range p.api.got("getUpdates") {
		var in getUpdates
		p.Expect(json.Unmarshal(body, &in)).To(Succeed())
		offsets = append(offsets, in.Offset)
	}
	return offsets
}

func bubble(t *testing.T, o PollerOptions, test func(*polling)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPolling(t, o)
		test(p)
		if p.stop != nil {
			p.stop()
		}
	})
}
