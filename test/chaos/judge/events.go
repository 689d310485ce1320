package judge

import (
	"fmt"
	"net/http"

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

// counted: no recorded attempt was not made. The receiver saw at least as many as are recorded, but for those that the
// network broke on the way; and it saw at most as many more as were in flight when processes died.
func counted(e *Evidence) *Verdict {
	v := &Verdict{Name: "I4", Holds: "attempts are counted exactly, but for what was in flight when something broke"}
	missing, more := 0, 0
	for id := range e.histories {
		last, _ := e.last(id)
		seen := len(e.deliveries[id])
		if last.Attempts == 0 && seen == 0 {
			continue
		}
		v.Looked++
		missing += max(0, last.Attempts-seen)
		more += max(0, seen-last.Attempts)
	}
	bound, held := e.bound(), e.held()
	if missing > held {
		v.violatedf("%d recorded attempts never reached the receiver; the faults explain %d", missing, held)
	}
	if more > bound {
		v.violatedf("the receiver saw %d attempts that are not recorded; the faults explain %d", more, bound)
	}
	v.Note = fmt.Sprintf("%d attempts seen and not recorded, %d recorded and not seen; the bounds are %d and %d", more, missing, bound, held)
	return v
}

// repeated: what comes again is the same event, byte by byte, under one webhook-id, rightly signed, and it comes again
// only as often as the faults explain.
func repeated(e *Evidence) *Verdict {
	v := &Verdict{Name: "I5", Holds: "repetitions have one webhook-id and the same bytes, and are few"}
	owners := map[string]string{}
	duplicates := 0
	for id, of := range e.deliveries {
		took := 0
		for _, d := range of {
			v.Looked++
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
		duplicates += max(0, took-1)
	}
	bound := e.bound()
	if duplicates > bound {
		v.violatedf("%d events were taken again; the faults explain %d", duplicates, bound)
	}
	v.Note = fmt.Sprintf("%d events were taken more than once; the bound is %d", duplicates, bound)
	return v
}

// silent: nothing is sent of a request that is not verified, and nothing after its event was delivered, exhausted or
// deleted, unless a process was stopped, or cut off from its store, between its look and its sending.
func silent(e *Evidence) *Verdict {
	v := &Verdict{Name: "I6", Holds: "nothing is sent of what is not verified, or not any more"}
	late, allowed := 0, e.held()
	for id, of := range e.deliveries {
		history := e.histories[id]
		last, ok := e.last(id)
		if !ok || last.Phase != verified {
			v.violatedf("an event of %s came, which is %q", id, last.Phase)
			continue
		}
		for _, d := range of {
			v.Looked++
			for _, c := range history {
				if (c.Delivered || c.Exhausted || c.Op == ledger.Deleted) && d.At.After(c.At) {
					if late++; late > allowed {
						v.violatedf("%s came at %s, after it was settled at %s", id, stamp(d.At), stamp(c.At))
					}
					break
				}
			}
		}
	}
	v.Note = fmt.Sprintf("%d came after they were settled; the bound is %d", late, allowed)
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
