package judge

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// minWaiting is how many attempts the schedule makes within half a minute; the next one is minutes away.
const minWaiting = 2

// judgeDelivered checks I3: the event of every verified request reached the receiver, or was exhausted by the
// schedule's rules. What is recorded as delivered was taken by the receiver. An event whose next attempt is minutes
// away is counted as waiting.
func judgeDelivered(e *Evidence) *Verdict {
	v := &Verdict{Name: "I3", Holds: "every verified request's event is delivered, or exhausted by the schedule"}
	waiting, exhausted := 0, 0
	for id := range e.histories {
		last, _ := e.lastState(id)
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
			v.violatedf("%s is recorded as delivered, but the receiver never took it", id)
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
			v.violatedf("%s was never delivered: %d attempts, next at %s", id, last.Attempts, formatTime(last.Next))
		}
	}
	v.Note = fmt.Sprintf("%d exhausted, %d wait for an attempt that is minutes away", exhausted, waiting)
	return v
}

// judgeCounted checks I4: every attempt is recorded once, with the answer that the receiver gave, and every recorded
// attempt was made. Each deviation needs a fault of its own.
func judgeCounted(e *Evidence) *Verdict {
	v := &Verdict{Name: "I4", Holds: "attempts are recorded as they were made, unless a fault hit that attempt"}
	why := reasons{}
	for _, id := range e.requestIDs() {
		c := e.courses[id]
		if len(c.attempts) > 0 {
			v.Looked++
		}
		var last time.Time
		for _, t := range c.attempts {
			judgeAttempt(e, v, why, id, t)
			if !t.extra {
				continue
			}
			if t.record.Tried.Sub(last) < verification.ExtraGap {
				v.violatedAboutf(e, id, t.record.Tried, "%s: extra attempts at %s and %s", id, formatTime(last), formatTime(t.record.Tried))
			}
			last = t.record.Tried
		}
	}
	v.Note = fmt.Sprintf("explained by faults: %s", why)
	return v
}

// judgeAttempt checks one attempt.
func judgeAttempt(e *Evidence, v *Verdict, why reasons, id string, t *attempt) {
	if t.record != nil && t.record.Attempts != t.counted {
		v.violatedAboutf(e, id, commitTime(t.record), "%s: attempt %d of the schedule is recorded as number %d", id, t.counted, t.record.Attempts)
	}
	if kind, needed := e.explainAttempt(t); needed {
		why.add(kind)
		if kind == "" {
			v.violatedAboutf(e, id, t.record.Tried, "%s: attempt %d is recorded with answer %d at %s; the receiver saw %s, and no fault hit it",
				id, t.number, t.record.Code, formatTime(t.record.Tried), answersOf(t.sent))
		}
	}
	if t.record != nil {
		return // repeated deliveries are judged by judgeRepeated
	}
	for i := range t.sent {
		var again time.Time
		if i+1 < len(t.sent) {
			again = t.sent[i+1].At
		}
		kind := e.explainLoss(&t.sent[i], again)
		why.add(kind)
		if kind == "" {
			v.violatedAboutf(e, id, t.sent[i].At, "%s came at %s from %s and is not recorded, and no fault hit it",
				id, formatTime(t.sent[i].At), t.sent[i].Process)
		}
	}
}

// answersOf lists the receiver's answers.
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

// judgeRepeated checks I5: a repetition is the same event, byte by byte, with the same webhook-id and a valid
// signature; and it comes only by the schedule, or because of a fault that hit the sender of the one before.
func judgeRepeated(e *Evidence) *Verdict {
	v := &Verdict{Name: "I5", Holds: "repetitions have one webhook-id and the same bytes, and each is due to a fault or the schedule"}
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
				v.violatedf("%s came at %s with a wrong signature", id, formatTime(d.At))
			}
			if d.Webhook != of[0].Webhook || d.Body != of[0].Body {
				v.violatedf("%s came at %s with a different webhook-id or body", id, formatTime(d.At))
			}
			if owner, known := owners[d.Webhook]; known && owner != id {
				v.violatedf("%s and %s have the same webhook-id", id, owner)
			}
			owners[d.Webhook] = id
			if d.Answer.Took() {
				took++
			}
		}
		taken += max(0, took-1)
		judgeRepetitions(e, v, why, id)
	}
	v.Note = fmt.Sprintf("%d events were taken more than once; repetitions explained by faults: %s; %d came from a process that had ended",
		taken, why, unknown)
	return v
}

// judgeRepetitions checks the repetitions of one request.
func judgeRepetitions(e *Evidence, v *Verdict, why reasons, id string) {
	c := e.courses[id]
	for _, t := range c.attempts {
		for i := 1; i < len(t.sent); i++ {
			first, second := &t.sent[i-1], &t.sent[i]
			kind := e.explainAgain(c.stateBefore(t), first, second)
			why.add(kind)
			if kind == "" {
				v.violatedAboutf(e, id, second.At, "%s came at %s from %s and again at %s from %s, and no fault hit the first",
					id, formatTime(first.At), first.Process, formatTime(second.At), second.Process)
			}
		}
	}
	for i := range c.strays {
		s := &c.strays[i]
		if isSettled(&s.after) {
			continue // I6
		}
		kind := e.explainLate(&s.Delivery, &s.after)
		if kind == "" && s.At.Add(verification.ExtraLead).Before(s.after.Next) {
			kind = e.explainLoss(&s.Delivery, time.Time{}) // an extra attempt that was not recorded
		}
		why.add(kind)
		if kind == "" {
			v.violatedAboutf(e, id, s.At, "%s came at %s from %s, before its next attempt was due at %s",
				id, formatTime(s.At), s.Process, formatTime(s.after.Next))
		}
	}
}

// judgeSilent checks I6: nothing is sent for a request that is not verified, and nothing after its event was delivered
// or exhausted, or the request deleted, unless a fault held up that delivery.
func judgeSilent(e *Evidence) *Verdict {
	v := &Verdict{Name: "I6", Holds: "nothing is sent for requests that are not verified, or already settled"}
	why := reasons{}
	for _, id := range slices.Sorted(maps.Keys(e.deliveries)) {
		last, ok := e.lastState(id)
		if !ok || last.Phase != verified {
			v.violatedf("an event of %s came, but it is %q", id, last.Phase)
			continue
		}
		v.Looked += len(e.deliveries[id])
		if first := e.deliveries[id][0]; e.committedAt(id, verified).After(first.At) {
			v.violatedAboutf(e, id, first.At, "%s came at %s, before its verification was committed", id, formatTime(first.At))
		}
		strays := e.courses[id].strays
		for i := range strays {
			s := &strays[i]
			if !isSettled(&s.after) {
				continue // I5
			}
			kind := e.explainLate(&s.Delivery, &s.after)
			why.add(kind)
			if kind == "" {
				v.violatedAboutf(e, id, s.At, "%s came at %s from %s, after it was settled at %s, and no fault held it up",
					id, formatTime(s.At), s.Process, formatTime(commitTime(&s.after)))
			}
		}
	}
	v.Note = fmt.Sprintf("late events explained by faults: %s", why)
	return v
}
