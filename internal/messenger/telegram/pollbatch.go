package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// update is one of a batch, and how far it is.
type update struct {
	progress

	raw    json.RawMessage
	id     int64 // zero if it cannot be used
	sender int64 // zero if there is no sender to answer
}

// progress is how far a fetched update is.
type progress struct {
	since   time.Time // when it was fetched first
	prompts int       // tries
	done    bool
}

// batch holds the updates of one poll.
type batch struct {
	channel  *Channel
	settings *settings.Settings
	updates  []update

	mu       sync.Mutex
	failures int
	failure  error // the first; nil if there was none
	refused  bool  // an update waits for its code to be looked up
}

// newBatch returns the fetched updates, with the progress of those that were fetched before.
func (p *Poller) newBatch(s *settings.Settings, raw []json.RawMessage) *batch {
	b := &batch{channel: p.channel, settings: s, updates: make([]update, len(raw))}
	now := time.Now()
	for i, content := range raw {
		id, _, _ := readUpdate(content) // receiveUpdate judges the rest
		in, _ := readInbound(content, s.Telegram.BotUsername)
		known, held := p.held[id]
		if !held {
			known.since = now
		}
		b.updates[i] = update{progress: known, raw: content, id: id, sender: in.sender}
	}
	return b
}

// handleAll handles all updates that are not done, those of one sender in their order. One that is held keeps back those of its
// sender only: there is one offset for all senders, and any sender can send codes that take long to look up.
func (b *batch) handleAll(ctx context.Context) {
	messenger.HandleBySender(b.updates, pollSenders, func(u *update) int64 { return u.sender }, func(u *update) bool {
		return u.done || b.handleOne(ctx, u)
	})
}

// handleOne handles an update, and reports whether it is done.
func (b *batch) handleOne(ctx context.Context, u *update) bool {
	if ctx.Err() != nil || b.hasFailed() {
		return false
	}
	err := b.channel.receiveUpdate(ctx, b.channel.log, b.settings, u.raw)
	u.done = err == nil || ctx.Err() == nil && b.giveUp(u, err)
	if !u.done {
		b.holdUpdate(err)
	}
	return u.done
}

// giveUp reports whether an update that failed is not tried again: the user could not be asked for the contact too often, or its
// code was refused for so long that it is a made-up one. It counts then as one that was handled.
func (b *batch) giveUp(u *update, err error) bool {
	switch {
	case errors.Is(err, messenger.ErrPrompt):
		if u.prompts++; u.prompts < maxPrompts {
			return false
		}
		b.channel.log.Error(err, "Telegram prompt failed, will not retry")
	case lookUpRefused(err) && time.Since(u.since) >= lookUpPatience:
		b.channel.metrics.Count(messenger.OutcomeLimited, 1)
		b.channel.log.V(1).Info("Telegram message handled", "outcome", string(messenger.OutcomeLimited))
	default:
		return false
	}
	now := b.channel.clock.Now()
	if bound := senderBindings(b.settings, u.sender, now); len(bound) > 0 {
		b.channel.senders.Count(now, bound[0])
	}
	return true
}

// holdUpdate records that an update must come again.
func (b *batch) holdUpdate(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if lookUpRefused(err) {
		b.refused = true
		return
	}
	b.failures++
	if b.failure == nil {
		b.failure = err
	}
}

// hasFailed reports whether what is left of the batch would fail too.
func (b *batch) hasFailed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= maxFailures
}

// lookUpRefused reports whether a code was not looked up because all senders together send too many that are unknown.
func lookUpRefused(err error) bool { return errors.Is(err, verification.TooManyUnknown(nil)) }
