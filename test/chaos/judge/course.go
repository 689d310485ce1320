package judge

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// course is how the event of a request was delivered, attempt by attempt.
type course struct {
	attempts []*attempt
	// strays arrived when no attempt was due: after one was recorded and before the next, if there is one.
	strays []stray
}

// attempt is one attempt: the deliveries that arrived while it was due, and the state that records it. An extra one is none of the
// schedule's: after a repair it comes before its state is due, and is not counted.
type attempt struct {
	number  int
	counted int // those of the schedule up to this one
	extra   bool
	sent    []ledger.Delivery
	record  *ledger.Change
}

// stray is a delivery and the state that it contradicts.
type stray struct {
	ledger.Delivery

	after ledger.Change
}

// courseOf assigns the deliveries of a request to its attempts.
func (e *Evidence) courseOf(id string) course {
	var (
		c       course
		steps   []ledger.Change // every state that is about deliveries
		records int
		counted int
	)
	history := e.histories[id]
	for i := 1; i < len(history); i++ {
		switch {
		case history[i].Attempts > history[i-1].Attempts, isExtra(&history[i-1], &history[i]):
			records++
			steps = append(steps, history[i])
			t := c.attemptAt(records)
			t.record, t.extra = &history[i], isExtra(&history[i-1], &history[i])
			if !t.extra {
				counted++
			}
			t.counted = counted
		case history[i].Op == ledger.Deleted:
			steps = append(steps, history[i])
		}
	}
	for _, d := range e.deliveries[id] {
		before := slices.IndexFunc(steps, func(s ledger.Change) bool { return commitTime(&s).After(d.At) })
		if before < 0 {
			before = len(steps)
		}
		switch {
		case before == 0 || dueAfter(&steps[before-1], d.At) || before < records && c.attempts[before].extra:
			t := c.attemptAt(before + 1)
			t.sent = append(t.sent, d)
		case c.awaitsDelivery(before, &steps[before-1]):
			c.attempts[before-1].sent = []ledger.Delivery{d}
		default:
			c.strays = append(c.strays, stray{d, steps[before-1]})
		}
	}
	return c
}

// isExtra reports whether a state records an extra attempt of the event that waited in the state before.
func isExtra(before, after *ledger.Change) bool {
	return after.Op == ledger.Updated && !after.Tried.Equal(before.Tried) && !before.Tried.IsZero() && after.Attempts == before.Attempts &&
		after.Tried.Before(before.Next)
}

// awaitsDelivery reports whether the event of an attempt that ended without an answer is still on its way.
func (c *course) awaitsDelivery(number int, record *ledger.Change) bool {
	return !isSettled(record) && record.Code == 0 && len(c.attempts[number-1].sent) == 0
}

// stateBefore returns the state that an attempt follows; nil for the first one.
func (c *course) stateBefore(t *attempt) *ledger.Change {
	if t.number == 1 {
		return nil
	}
	return c.attempts[t.number-2].record
}

// attemptAt returns the attempt with a number, counted from 1, and adds it and those before it if needed.
func (c *course) attemptAt(number int) *attempt {
	for len(c.attempts) < number {
		c.attempts = append(c.attempts, &attempt{number: len(c.attempts) + 1})
	}
	return c.attempts[number-1]
}

// commitTime returns when a state was committed or, if the store does not record that, when the witness saw it.
func commitTime(c *ledger.Change) time.Time {
	if c.Committed.IsZero() {
		return c.At
	}
	return c.Committed
}

// dueAfter reports whether an attempt may be made at a time, by the state before it.
func dueAfter(c *ledger.Change, at time.Time) bool {
	return c.Op != ledger.Deleted && !c.Delivered && !c.Exhausted && !c.Next.IsZero() && !at.Before(c.Next)
}

// isSettled reports whether nothing may be sent after a state.
func isSettled(c *ledger.Change) bool { return c.Op == ledger.Deleted || c.Delivered || c.Exhausted }

// wasAnswered reports whether the receiver gave the answer that is recorded.
func (t *attempt) wasAnswered() bool {
	return slices.ContainsFunc(t.sent, func(d ledger.Delivery) bool { return slices.Contains(recordedCodes(d.Answer), t.record.Code) })
}

// timedOut reports whether the attempt lasted its whole timeout and ended without an answer, and its event arrived soon
// after that: the machine was slow.
func (t *attempt) timedOut(attempt time.Duration) bool {
	return t.record.Code == 0 && slices.ContainsFunc(t.sent, func(d ledger.Delivery) bool {
		began, err := strconv.ParseInt(d.Stamp, 10, 64)
		return err == nil && t.record.Tried.Sub(time.Unix(began, 0)) >= attempt-time.Second && // stamps are in whole seconds
			d.At.After(t.record.Tried) && !d.At.After(t.record.Tried.Add(attempt))
	})
}

// recordedCodes returns the status codes that a sender may record for an answer; 0 is none.
func recordedCodes(a ledger.Answer) []int {
	switch a {
	case ledger.Takes:
		return []int{http.StatusNoContent}
	case ledger.TakesSlowly:
		return []int{http.StatusOK}
	case ledger.TakesResets:
		return []int{http.StatusOK, 0}
	case ledger.Fails:
		return []int{http.StatusInternalServerError}
	case ledger.Unavailable:
		return []int{http.StatusServiceUnavailable}
	case ledger.Limits:
		return []int{http.StatusTooManyRequests}
	case ledger.Gone:
		return []int{http.StatusGone}
	default:
		return []int{0}
	}
}
