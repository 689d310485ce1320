package judge

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/webhook"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// minWaiting is how many attempts the schedule makes within half a minute: what failed that often comes in minutes.
const minWaiting = 2

// delivered: every verified request's event reached the receiver, or was given up by the schedule's own rules. What is
// recorded as delivered was taken by the receiver. An event whose next attempt lies minutes ahead waits; that is counted.
func delivered(e *Evidence) *Verdict {
	v := &Verdict{Name: "I3", Holds: "every verified request's event is delivered, or exhausted by the schedule"}
	waiting, exhausted := 0, 0
	for id := range e.histories {
		last, _ := e.last(id)
		if last.Phase != verified {
			continue
		}
		v.Looked++
		took, gone := false, false
		for _, d := range e.deliveries[id] {
			took = took || d.Valid && d.Answer.Took()
			gone = gone || d.Answer == ledger.Gone
		}
		switch {
		case last.Delivered && !took:
			v.violatedf("%s is recorded as delivered, and the receiver never took it", id)
		case last.Delivered:
		case last.Exhausted && last.Code == http.StatusGone && gone:
			exhausted++
		case last.Exhausted && last.Attempts != webhook.MaxAttempts:
			v.violatedf("%s is exhausted after %d attempts", id, last.Attempts)
		case last.Exhausted:
			exhausted++
		case last.Attempts >= minWaiting && last.Next.After(e.End):
			waiting++
		default:
			v.violatedf("%s was never delivered: %d attempts, next at %s", id, last.Attempts, stamp(last.Next))
		}
	}
	v.Note = fmt.Sprintf("%d exhausted, %d wait for an attempt that is minutes away", exhausted, waiting)
	return v
}

// counted: every attempt that was made is recorded, once, with the answer that the receiver gave, and every recorded one was
// made. What differs has a fault of its own.
func counted(e *Evidence) *Verdict {
	v := &Verdict{Name: "I4", Holds: "attempts are recorded as they were made, but where a fault hit the very one"}
	why := reasons{}
	for _, id := range e.ids() {
		c := e.courses[id]
		if len(c.turns) > 0 {
			v.Looked++
		}
		for _, t := range c.turns {
			countTurn(e, v, why, id, t)
		}
	}
	v.Note = fmt.Sprintf("explained by faults: %s", why)
	return v
}

// countTurn judges one attempt.
func countTurn(e *Evidence, v *Verdict, why reasons, id string, t *turn) {
	if t.record != nil && t.record.Attempts != t.number {
		v.violatedAboutf(e, id, committed(t.record), "%s: attempt %d is recorded as number %d", id, t.number, t.record.Attempts)
	}
	if kind, needed := e.explainTurn(t); needed {
		why.add(kind)
		if kind == "" {
			v.violatedAboutf(e, id, t.record.Tried, "%s: attempt %d is recorded with answer %d at %s; the receiver saw %s, and no fault hit it",
				id, t.number, t.record.Code, stamp(t.record.Tried), answersOf(t.sent))
		}
	}
	if t.record != nil {
		return // where it was made more than once, that is judged as a repetition
	}
	for i := range t.sent {
		var again time.Time
		if i+1 < len(t.sent) {
			again = t.sent[i+1].At
		}
		kind := e.explainLoss(&t.sent[i], again)
		why.add(kind)
		if kind == "" {
			v.violatedAboutf(e, id, t.sent[i].At, "%s came at %s from %s and is not recorded, and no fault hit that",
				id, stamp(t.sent[i].At), t.sent[i].Process)
		}
	}
}

// answersOf are the receiver's answers.
func answersOf(sent []ledger.Delivery) string {
	if len(sent) == 0 {
		return "nothing"
	}
	var all []string
	for _, d := range sent {
		all = append(all, string(d.Answer))
	}
	return strings.Join(all, ", ")
}

// repeated: what comes again is the same event, byte by byte, under one webhook-id, rightly signed; and it comes again only
// by the schedule, or because of a fault that hit the sender of the one before.
func repeated(e *Evidence) *Verdict {
	v := &Verdict{Name: "I5", Holds: "repetitions have one webhook-id and the same bytes, and each has a fault or the schedule behind it"}
	owners, why := map[string]string{}, reasons{}
	taken, unknown := 0, 0
	for _, id := range slices.Sorted(maps.Keys(e.deliveries)) {
		of, took := e.deliveries[id], 0
		for _, d := range of {
			v.Looked++
			if d.Process == "" {
				unknown++
			}
			if !d.Valid {
				v.violatedf("%s came at %s with a wrong signature", id, stamp(d.At))
			}
			if d.Webhook != of[0].Webhook || d.Body != of[0].Body {
				v.violatedf("%s came at %s with another id or body than before", id, stamp(d.At))
			}
			if owner, known := owners[d.Webhook]; known && owner != id {
				v.violatedf("%s and %s have one webhook-id", id, owner)
			}
			owners[d.Webhook] = id
			if d.Answer.Took() {
				took++
			}
		}
		taken += max(0, took-1)
		repeatCourse(e, v, why, id)
	}
	v.Note = fmt.Sprintf("%d events were taken more than once; repetitions explained by faults: %s; %d came from a process that had gone",
		taken, why, unknown)
	return v
}

// repeatCourse judges what came again of one request.
func repeatCourse(e *Evidence, v *Verdict, why reasons, id string) {
	c := e.courses[id]
	for _, t := range c.turns {
		for i := 1; i < len(t.sent); i++ {
			first, second := &t.sent[i-1], &t.sent[i]
			kind := e.explainAgain(c.before(t), first, second)
			why.add(kind)
			if kind == "" {
				v.violatedAboutf(e, id, second.At, "%s came at %s from %s and again at %s from %s, and no fault hit the first",
					id, stamp(first.At), first.Process, stamp(second.At), second.Process)
			}
		}
	}
	for i := range c.strays {
		s := &c.strays[i]
		if settled(&s.after) {
			continue // I6
		}
		kind := e.explainLate(&s.Delivery, &s.after)
		why.add(kind)
		if kind == "" {
			v.violatedAboutf(e, id, s.At, "%s came at %s from %s, before its next attempt was due at %s",
				id, stamp(s.At), s.Process, stamp(s.after.Next))
		}
	}
}

// silent: nothing is sent of a request that is not verified, and nothing after its event was delivered, exhausted or
// deleted, unless a fault held up that very delivery.
func silent(e *Evidence) *Verdict {
	v := &Verdict{Name: "I6", Holds: "nothing is sent of what is not verified, or not any more"}
	why := reasons{}
	for _, id := range slices.Sorted(maps.Keys(e.deliveries)) {
		last, ok := e.last(id)
		if !ok || last.Phase != verified {
			v.violatedf("an event of %s came, which is %q", id, last.Phase)
			continue
		}
		v.Looked += len(e.deliveries[id])
		if first := e.deliveries[id][0]; e.committedAt(id, verified).After(first.At) {
			v.violatedAboutf(e, id, first.At, "%s came at %s, before its verification was committed", id, stamp(first.At))
		}
		strays := e.courses[id].strays
		for i := range strays {
			s := &strays[i]
			if !settled(&s.after) {
				continue // I5
			}
			kind := e.explainLate(&s.Delivery, &s.after)
			why.add(kind)
			if kind == "" {
				v.violatedAboutf(e, id, s.At, "%s came at %s from %s, after it was settled at %s, and no fault held it up",
					id, stamp(s.At), s.Process, stamp(committed(&s.after)))
			}
		}
	}
	v.Note = fmt.Sprintf("late ones explained by faults: %s", why)
	return v
}

// secret: no secret, code or number is where operators look.
func secret(e *Evidence) *Verdict {
	v := &Verdict{Name: "I7", Holds: "no secret, code or number in logs, metrics, events, statuses and errors", Looked: e.Searched}
	for _, leak := range e.Leaks {
		v.violatedf("%s", leak)
	}
	return v
}
