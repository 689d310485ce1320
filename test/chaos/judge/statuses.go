package judge

import (
	"fmt"
	"slices"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
)

// statusNotFound is the status of a request that was not found.
const statusNotFound = "404"

// judgeMonotone checks I8: the status never goes backwards, at any replica. A request is a register that is written
// once, from PENDING to its final state. Such a history is linearizable exactly if no query that begins after a final
// answer (or after the write was acknowledged) gets a different answer, and no two final answers differ; so no search
// is needed. While two primaries run, the former one answers what it had; nothing that was acknowledged is missing from the other.
func judgeMonotone(e *Evidence) *Verdict {
	v := &Verdict{Name: "I8", Holds: "a status never goes backwards, at any replica"}
	statuses := slices.Clone(e.Statuses)
	slices.SortFunc(statuses, func(a, b ledger.Status) int { return a.At.Compare(b.At) })
	firsts := map[string]ledger.Status{} // the first final answer of each
	for _, s := range statuses {
		if s.Status == verified || s.Status == expired {
			if first, known := firsts[s.ID]; !known {
				firsts[s.ID] = s
			} else if first.Status != s.Status {
				v.violatedf("%s was answered %s and %s", s.ID, first.Status, s.Status)
			}
		}
	}
	former := 0
	for _, s := range statuses {
		v.Looked++
		if e.isOfFormerPrimary(s) {
			former++
			continue
		}
		if first, known := firsts[s.ID]; known && s.Asked.After(first.At) && s.Status != first.Status && !e.deletedBy(s) {
			v.violatedf("%s was %s at %s, but %[5]s for a query at %[4]s", s.ID, first.Status, formatTime(first.At), formatTime(s.Asked), s.Status)
		}
		c := e.claims[s.ID]
		if at := c.acknowledgedAt(); !at.IsZero() && s.Asked.After(at) && s.Status == pending {
			v.violatedf("%s was proven at %s, but %[4]s for a query at %[3]s", s.ID, formatTime(at), formatTime(s.Asked), s.Status)
		}
		if s.Status == verified && e.committedAt(s.ID, verified).After(s.At) {
			v.violatedAboutf(e, s.ID, s.At, "%s was %s at %s, before that was committed", s.ID, s.Status, formatTime(s.At))
		}
		if s.Status == statusNotFound && !e.deletedBy(s) {
			v.violatedf("%s was not found by a query at %s", s.ID, formatTime(s.Asked))
		}
	}
	v.Note = fmt.Sprintf("%d requests were seen in a final state", len(firsts))
	if former > 0 {
		v.Note += fmt.Sprintf("; %d answers were given while two primaries ran", former)
	}
	return v
}

// isOfFormerPrimary reports whether a former primary, which lacks what the new one has, may have given the answer.
func (e *Evidence) isOfFormerPrimary(s ledger.Status) bool {
	return (s.Status == pending || s.Status == statusNotFound) && slices.ContainsFunc(e.Faults, func(f ledger.Fault) bool {
		return schedule.Kind(f.Kind) == schedule.Isolate && f.Up.Before(s.At) && s.Asked.Before(f.Until)
	})
}

// deletedBy reports whether the request may have been deleted when the answer was given.
func (e *Evidence) deletedBy(s ledger.Status) bool {
	last, ok := e.lastState(s.ID)
	return ok && s.Status == statusNotFound && last.Op == ledger.Deleted && last.At.Before(s.At)
}
