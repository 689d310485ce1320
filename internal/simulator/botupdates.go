package simulator

import (
	"net/http"
	"time"
)

// getUpdates forgets what is before the offset and answers what is there, or holds the call until something is. Of two
// callers the one that came last goes on.
func (s *Simulator) getUpdates(w http.ResponseWriter, r *http.Request, b *bot, in parameters) {
	wait := time.Duration(in.number("timeout", 0, 0, int64(maxPoll/time.Second))) * time.Second
	limit := int(in.number("limit", maxUpdatesBatch, 1, maxUpdatesBatch))
	s.mu.Lock()
	if b.Webhook != "" {
		s.mu.Unlock()
		refuseBot(w, conflict("can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"))
		return
	}
	b.allow(in)
	b.confirm(in.number("offset", 0, -maxUpdates, 1<<53))
	s.endPoll(b, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
	mine := make(chan struct{})
	b.poll = mine
	s.mu.Unlock()

	var batch []tgUpdate
	ended := false
	s.until(r.Context(), wait, func() bool {
		select {
		case <-mine:
			ended = true
			return true
		default:
			batch = b.take(limit)
			return len(batch) > 0
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.poll == mine {
		b.poll = nil
	}
	if ended {
		refuseBot(w, &tgError{code: http.StatusConflict, text: b.pollEnd})
		return
	}
	answerBot(w, append([]tgUpdate{}, batch...), "")
}

func conflict(text string) *tgError {
	return &tgError{code: http.StatusConflict, text: "Conflict: " + text}
}

// confirm forgets the updates before an offset; a negative one keeps that many of the newest.
func (b *bot) confirm(offset int64) {
	if offset < 0 {
		offset = b.nextUpdate + offset
	}
	for len(b.pending) > 0 && b.pending[0].id < offset {
		b.forget(b.pending[0], result{})
	}
}

// take returns the first updates that wait.
func (b *bot) take(limit int) []tgUpdate {
	batch := make([]tgUpdate, 0, limit)
	for _, up := range b.pending[:min(limit, len(b.pending))] {
		batch = append(batch, up.body)
	}
	return batch
}
