package whatsapp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/panics"
)

// errLeftOver is returned if a batch ended before all of its messages were handled.
var errLeftOver = errors.New("some messages were not handled")

// batch holds the messages of one webhook while they are handled.
type batch struct {
	*delivery

	log      logr.Logger
	failures atomic.Int64

	mu    sync.Mutex
	first error
}

// receiveAll handles all messages, those of one sender in their order, and then all statuses. One that fails keeps no other back. An
// error means that the webhook must come again; a copy of what was handled changes nothing.
func (b *batch) receiveAll(ctx context.Context, messages []message, statuses []status) error {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	messenger.HandleBySender(messages, senders, (*message).senderKey, func(m *message) bool {
		b.receiveOne(ctx, m)
		return true
	})
	for i := range statuses {
		b.receiveStatus(ctx, &statuses[i])
	}
	return b.first
}

// outcomesOfChanges are those of messages that change a request, beyond its hints.
var outcomesOfChanges = []messenger.Outcome{
	messenger.OutcomeVerified, messenger.OutcomeNeedContact, messenger.OutcomeNeedConfirmation, messenger.OutcomeNeedEcho,
	messenger.OutcomeDeclined, messenger.OutcomeProven,
}

// receiveOne handles a message and counts its outcome.
func (b *batch) receiveOne(ctx context.Context, m *message) {
	if ctx.Err() != nil || b.failures.Load() >= maxFailures {
		b.recordFailure(messenger.OutcomeFailed, errLeftOver)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, messageTimeout)
	defer cancel()
	came, err := b.receiveGuarded(ctx, m)
	if err != nil {
		b.recordFailure(came, err)
		return
	}
	b.hook.metrics.Count(came, 1)
	level := 1
	if slices.Contains(outcomesOfChanges, came) {
		level = 0
	}
	b.log.V(level).Info("WhatsApp message handled", "outcome", came, "type", knownType(m.Type))
}

func (b *batch) recordFailure(came messenger.Outcome, err error) {
	b.failures.Add(1)
	b.hook.metrics.Count(came, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first == nil || errors.Is(b.first, errLeftOver) {
		b.first = err
	}
}

// receiveGuarded handles a message and survives a panic.
func (b *batch) receiveGuarded(ctx context.Context, m *message) (came messenger.Outcome, err error) {
	defer panics.Recover(func(failure error) {
		came, err = messenger.OutcomePanicked, nil
		b.log.Error(failure, "WhatsApp message dropped", "outcome", came, "type", knownType(m.Type))
	})
	return b.receiveMessage(ctx, m)
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
