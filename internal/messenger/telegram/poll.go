package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// PollState is the state of a poller.
type PollState string

// The states of a poller.
const (
	// PollIdle: the project's updates are not to be fetched, or not yet.
	PollIdle PollState = "idle"
	// PollRunning: the last poll was answered, and what it brought is stored, or has its code looked up again in a moment.
	PollRunning PollState = "running"
	// PollConflict: another poller fetches this bot's updates, or a webhook receives them.
	PollConflict PollState = "conflict"
	// PollCredentials: Telegram refuses the token.
	PollCredentials PollState = "credentials_refused"
	// PollUnavailable: Telegram cannot be reached, or has no usable answer.
	PollUnavailable PollState = "unavailable"
	// PollFailing: Telegram answers that it failed, such as with 500, asks to wait, or refuses the call.
	PollFailing PollState = "failing"
	// PollHeld: an update cannot be stored, or its prompt not be sent; it is fetched again.
	PollHeld PollState = "held"
)

// PollerOptions configure a Poller.
type PollerOptions struct {
	// Permitted decides whether the updates of an account may be fetched. Fetching takes them from every other
	// reader, so it has to be known before that the token is that of the project's bot, and that no webhook is set: Telegram
	// answers 409 as long as there is one. Nil permits all.
	Permitted func(*settings.Telegram) bool
	// Wake makes an idle poller check at once whether it may poll. Nil for none.
	Wake <-chan struct{}
	// Report is called from Start after each change of state, with the error that caused it, if any. It must not block. Nil
	// for none.
	Report func(PollState, error)
	// Timeout is how long Telegram holds a poll that finds nothing, at most 50 s; zero means 30 s.
	Timeout time.Duration
}

// Poller fetches the updates of the project's bot. It is for the one replica that holds the lease: Telegram ends the older
// of two polls with a 409.
//
// An update is confirmed by asking for later ones, so the offset moves past an update only once that and all before it are
// done. Those behind one that is held are done meanwhile, once. All of that is in memory only: a process that starts anew asks for
// everything unconfirmed.
type Poller struct {
	PollerOptions

	channel *Channel
	running atomic.Bool

	token    []byte // whose updates offset counts
	offset   int64
	limit    int
	held     map[int64]progress // of updates that were fetched and are not confirmed, by id
	failures int                // in a row
	state    PollState
}

// errPolling is returned if Start is called twice.
var errPolling = errors.New("poller is running already")

// NewPoller returns a poller that is not started. It polls whenever the settings say so, and idles otherwise.
func (c *Channel) NewPoller(o PollerOptions) *Poller {
	if o.Timeout == 0 {
		o.Timeout = defaultPollTimeout
	}
	o.Timeout = min(max(o.Timeout, minPollTimeout), maxPollTimeout)
	return &Poller{PollerOptions: o, channel: c}
}

// NeedLeaderElection reports true: one replica polls.
func (p *Poller) NeedLeaderElection() bool { return true }

// Start polls until ctx ends.
func (p *Poller) Start(ctx context.Context) error {
	if !p.running.CompareAndSwap(false, true) {
		return errPolling
	}
	defer p.running.Store(false)
	p.resetOffset()
	p.state = ""
	for ctx.Err() == nil {
		wait := p.pollOnce(ctx)
		var wake <-chan struct{}
		if p.state == PollIdle {
			wake = p.Wake
		}
		sleepUntilWoken(ctx, wait, wake)
	}
	return nil
}

// sleepUntilWoken waits, until it is woken or ctx ends.
func sleepUntilWoken(ctx context.Context, wait time.Duration, wake <-chan struct{}) {
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

// resetOffset makes the next step ask for everything unconfirmed.
func (p *Poller) resetOffset() { p.token, p.offset, p.limit, p.held = nil, 0, pollBatch, nil }

// pollOnce polls once and returns how long to wait before the next time.
func (p *Poller) pollOnce(ctx context.Context) time.Duration {
	s := p.channel.settings()
	if s.Telegram == nil || !s.Telegram.Polling || !s.Telegram.BotToken.Usable() || !p.mayFetch(s.Telegram) {
		p.resetOffset()
		p.failures = 0
		p.reportState(PollIdle, nil)
		return idleWait
	}
	if !bytes.Equal(p.token, s.Telegram.BotToken.Current()) {
		p.resetOffset()
		p.token = s.Telegram.BotToken.Current()
	}
	asked, timeout := time.Now(), p.Timeout
	if p.state == PollConflict {
		timeout = minPollTimeout // the end of the conflict shows at once
	}
	updates, err := p.channel.client.GetUpdates(ctx, s.Telegram, p.offset, p.limit, timeout)
	if err != nil {
		return p.pollFailed(ctx, err)
	}
	wait := p.handleUpdates(ctx, s, updates)
	if len(updates) == 0 {
		// An API that answers at once without updates is not asked more often than this.
		wait = max(wait, minPollTimeout-time.Since(asked))
	}
	return wait
}

func (p *Poller) mayFetch(account *settings.Telegram) bool {
	return p.Permitted == nil || p.Permitted(account)
}

// pollFailed decides what follows from a poll without updates to take.
func (p *Poller) pollFailed(ctx context.Context, err error) time.Duration {
	switch {
	case errors.Is(err, ErrTooLarge) && p.limit > 1:
		p.limit /= 2
	case errors.Is(err, ErrConflict):
		p.resetOffset() // the other reader may confirm some
	}
	return max(p.recordFailure(ctx, stateOf(err), err), requestedWait(err))
}

// handleUpdates handles a batch, and moves the offset past the updates in front that are done.
func (p *Poller) handleUpdates(ctx context.Context, s *settings.Settings, updates []json.RawMessage) time.Duration {
	before := p.offset
	b := p.newBatch(s, updates)
	b.handleAll(ctx)
	p.confirmUpdates(b.updates)
	switch {
	case b.failure != nil:
		// The wait that a prompt is asked for may be that of its chat alone, so polls do not heed it.
		return p.recordFailure(ctx, PollHeld, b.failure)
	case b.refused:
		p.recordSuccess()
		return retryLookUp
	case len(updates) > 0 && p.offset == before:
		// Updates without a usable id come again and again; nothing confirms them.
		return p.recordFailure(ctx, PollUnavailable, errNoUpdate)
	case len(updates) == 0:
		// Telegram has confirmed everything before the offset, so it is of no use any more, and harmful later: after
		// a week without updates the next id is random, and may be a lower one (reference, Update).
		p.offset, p.limit = 0, pollBatch
	}
	p.recordSuccess()
	return 0
}

// confirmUpdates moves the offset past the updates in front that are done, and remembers how far those behind are.
func (p *Poller) confirmUpdates(updates []update) {
	p.held = make(map[int64]progress)
	inFront := true
	for _, u := range updates {
		inFront = inFront && u.done
		switch {
		case u.id == 0:
		case inFront:
			p.offset = max(p.offset, u.id+1)
		default:
			p.held[u.id] = u.progress
		}
	}
}

func (p *Poller) recordSuccess() {
	p.failures = 0
	p.reportState(PollRunning, nil)
}

// recordFailure reports a failure and returns how long to wait: twice as long as last time, with jitter.
func (p *Poller) recordFailure(ctx context.Context, state PollState, err error) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	p.reportState(state, err)
	wait := min(minBackoff<<min(p.failures, 10), maxBackoff)
	p.failures++
	return wait/2 + rand.N(wait/2) //nolint:gosec // spread, not secret
}

func (p *Poller) reportState(state PollState, err error) {
	p.channel.metrics.polls.WithLabelValues(string(state)).Inc()
	if state == p.state {
		return
	}
	p.state = state
	if err != nil {
		p.channel.log.Error(err, "Telegram poll state changed", "state", string(state))
	} else {
		p.channel.log.Info("Telegram poll state changed", "state", string(state))
	}
	if p.Report != nil {
		p.Report(state, err)
	}
}

func stateOf(err error) PollState {
	switch {
	case errors.Is(err, ErrConflict):
		return PollConflict
	case errors.Is(err, ErrCredentials), errors.Is(err, ErrNoToken), errors.Is(err, messenger.ErrNoSimulator):
		return PollCredentials
	case errors.Is(err, ErrRateLimited), errors.Is(err, ErrRefused):
		return PollFailing
	default:
		if failure, ok := errors.AsType[*Error](err); ok && failure.PlatformFailed() {
			return PollFailing
		}
		return PollUnavailable
	}
}
