package simulator

import (
	"net/http"
	"time"
)

// getUpdates forgets what is before the offset and answers what is there, or holds the call until something is. Of two
// callers the one that came last goes on.
func (tg *telegram) getUpdates(w http.ResponseWriter, r *http.Request, b *bot, in parameters) {
	wait := time.Duration(in.number("timeout", 0, 0, int64(maxPoll/time.Second))) * time.Second
	limit := int(in.number("limit", maxUpdatesBatch, 1, maxUpdatesBatch))
	tg.mu.Lock()
	if b.Webhook != "" {
		tg.mu.Unlock()
		refuseBot(w, conflictError("can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"))
		return
	}
	b.setAllowedUpdates(in)
	b.confirmBefore(in.number("offset", 0, -maxUpdates, 1<<53))
	tg.endPoll(b, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
	mine := make(chan struct{})
	b.poll = mine
	tg.mu.Unlock()

	var batch []tgUpdate
	ended := false
	tg.waitUntil(r.Context(), wait, func() bool {
		select {
		case <-mine:
			ended = true
			return true
		default:
			batch = b.takePending(limit)
			return len(batch) > 0
		}
	})
	tg.mu.Lock()
	defer tg.mu.Unlock()
	if b.poll == mine {
		b.poll = nil
	}
	if ended {
		refuseBot(w, &tgError{code: http.StatusConflict, text: b.pollEnd})
		return
	}
	answerBot(w, append([]tgUpdate{}, batch...), "")
}

func conflictError(text string) *tgError {
	return &tgError{code: http.StatusConflict, text: "Conflict: " + text}
}

// confirmBefore forgets the updates before an offset; a negative one keeps that many of the newest.
func (b *bot) confirmBefore(offset int64) {
	if offset < 0 {
		offset = b.nextUpdate + offset
	}
	for len(b.pending) > 0 && b.pending[0].id < offset {
		b.removeTaken(b.pending[0], result{})
	}
}

// takePending returns the first updates that wait.
func (b *bot) takePending(limit int) []tgUpdate {
	batch := make([]tgUpdate, 0, limit)
	for _, up := range b.pending[:min(limit, len(b.pending))] {
		batch = append(batch, up.body)
	}
	return batch
}
