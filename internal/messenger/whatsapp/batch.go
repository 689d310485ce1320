package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
)

// errLeftOver says that a batch ended before all of its messages had their turn.
var errLeftOver = errors.New("some messages had no turn")

// batch is the messages of one webhook at work.
type batch struct {
	*delivery

	log      logr.Logger
	failures atomic.Int64

	mu    sync.Mutex
	first error
}

// receiveAll does all messages, those of one sender in their order. One that fails keeps no other back. An error means
// that the webhook must come again; what is done by then is done, and a copy of it changes nothing.
func (b *batch) receiveAll(ctx context.Context, messages []message) error {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(senders)
	for _, of := range bySender(messages) {
		group.Go(func() error {
			for _, m := range of {
				b.receiveOne(ctx, m)
			}
			return nil
		})
	}
	_ = group.Wait() // receiveOne keeps the errors
	return b.first
}

// receiveOne does a message and counts what it came to.
func (b *batch) receiveOne(ctx context.Context, m *message) {
	if ctx.Err() != nil || b.failures.Load() >= maxFailures {
		b.fail(errLeftOver)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, messageTimeout)
	defer cancel()
	came, err := b.recovered(ctx, m)
	if err != nil {
		b.fail(err)
		return
	}
	b.hook.metrics.count(came, 1)
	level := 1
	if came == outcomeVerified || came == outcomeNeedContact || came == outcomeNeedConfirmation {
		level = 0 // a request changed
	}
	b.log.V(level).Info("WhatsApp message", "outcome", came, "type", knownType(m.Type))
}

func (b *batch) fail(err error) {
	b.failures.Add(1)
	b.hook.metrics.count(outcomeFailed, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first == nil || errors.Is(b.first, errLeftOver) {
		b.first = err
	}
}

// recovered does a message and survives it. A message that met a bug once will meet it again, so it is acknowledged.
func (b *batch) recovered(ctx context.Context, m *message) (came outcome, err error) {
	defer func() {
		if value := recover(); value != nil {
			came, err = outcomePanicked, nil
			b.log.Error(panicError(value), "WhatsApp message", "outcome", came, "type", knownType(m.Type))
		}
	}()
	return b.receive(ctx, m)
}

// panicError describes a panic by where it happened. Its value may be anything, a part of the message too, so only the
// runtime's own are told.
func panicError(value any) error {
	if err, ok := value.(runtime.Error); ok {
		return fmt.Errorf("panic: %w\n%s", err, debug.Stack())
	}
	return fmt.Errorf("panic: %T\n%s", value, debug.Stack())
}

// bySender groups messages by who sent them, in order.
func bySender(messages []message) [][]*message {
	groups := make([][]*message, 0, len(messages))
	index := make(map[string]int, len(messages))
	for i := range messages {
		from, _ := messages[i].sender()
		at, seen := index[from.key()]
		if !seen {
			at = len(groups)
			index[from.key()] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], &messages[i])
	}
	return groups
}

// knownType folds types that we do not know into one: they come from outside.
func knownType(t string) string {
	switch t {
	case "text", "button", "interactive", "contacts", "reaction", "system", "unsupported", "edit", "revoke",
		"image", "video", "audio", "document", "sticker", "location", "order":
		return t
	default:
		return "other"
	}
}
