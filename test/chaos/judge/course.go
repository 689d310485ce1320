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
	turns []*turn
	// strays came when no attempt was due: after one was recorded and before the next, if there is one.
	strays []stray
}

// turn is one attempt of the schedule: the deliveries that came while it was due, and the state that records it.
type turn struct {
	number int
	sent   []ledger.Delivery
	record *ledger.Change
}

// stray is a delivery and the state that it contradicts.
type stray struct {
	ledger.Delivery

	after ledger.Change
}

// courseOf lays the deliveries of a request out along its history.
func (e *Evidence) courseOf(id string) course {
	var (
		c       course
		steps   []ledger.Change // every state that says something about deliveries
		records int
	)
	history := e.histories[id]
	for i := 1; i < len(history); i++ {
		switch {
		case history[i].Attempts > history[i-1].Attempts:
			records++
			steps = append(steps, history[i])
			c.turn(records).record = &history[i]
		case history[i].Op == ledger.Deleted:
			steps = append(steps, history[i])
		}
	}
	for _, d := range e.deliveries[id] {
		before := slices.IndexFunc(steps, func(s ledger.Change) bool { return committed(&s).After(d.At) })
		if before < 0 {
			before = len(steps)
		}
		switch {
		case before == 0 || dueAfter(&steps[before-1], d.At):
			t := c.turn(before + 1)
			t.sent = append(t.sent, d)
		case c.awaits(before, &steps[before-1]):
			c.turns[before-1].sent = []ledger.Delivery{d}
		default:
			c.strays = append(c.strays, stray{d, steps[before-1]})
		}
	}
	return c
}

// awaits reports whether the event of an attempt that ended without an answer is still on its way: it came to nobody yet.
func (c *course) awaits(number int, record *ledger.Change) bool {
	return !settled(record) && record.Code == 0 && len(c.turns[number-1].sent) == 0
}

// before returns the state that an attempt follows; nil before the first one.
func (c *course) before(t *turn) *ledger.Change {
	if t.number == 1 {
		return nil
	}
	return c.turns[t.number-2].record
}

// turn returns the attempt of a number, from 1. There is none without those before it.
func (c *course) turn(number int) *turn {
	for len(c.turns) < number {
		c.turns = append(c.turns, &turn{number: len(c.turns) + 1})
	}
	return c.turns[number-1]
}

// committed is the best that is known of when a state was committed.
func committed(c *ledger.Change) time.Time {
	if c.Committed.IsZero() {
		return c.At
	}
	return c.Committed
}

// dueAfter reports whether an attempt may be made at a time, by the state before it.
func dueAfter(c *ledger.Change, at time.Time) bool {
	return c.Op != ledger.Deleted && !c.Delivered && !c.Exhausted && !c.Next.IsZero() && !at.Before(c.Next)
}

// settled reports whether nothing is to be sent after a state.
func settled(c *ledger.Change) bool { return c.Op == ledger.Deleted || c.Delivered || c.Exhausted }

// answered reports whether the receiver gave the answer that is recorded.
func (t *turn) answered() bool {
	return slices.ContainsFunc(t.sent, func(d ledger.Delivery) bool { return slices.Contains(codes(d.Answer), t.record.Code) })
}

// outlived reports whether the attempt lasted as long as it may and ended without an answer, and its event came soon after
// that: the machine was slow.
func (t *turn) outlived(attempt time.Duration) bool {
	return t.record.Code == 0 && slices.ContainsFunc(t.sent, func(d ledger.Delivery) bool {
		began, err := strconv.ParseInt(d.Stamp, 10, 64)
		return err == nil && t.record.Tried.Sub(time.Unix(began, 0)) >= attempt-time.Second && // stamps are in whole seconds
			d.At.After(t.record.Tried) && !d.At.After(t.record.Tried.Add(attempt))
	})
}

// codes are what a sender may record of an answer; 0 is none.
func codes(a ledger.Answer) []int {
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
