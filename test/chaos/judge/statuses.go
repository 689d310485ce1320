package judge

import (
	"fmt"
	"slices"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// absent is the status of a request that is not known.
const absent = "404"

// monotone: what the status operation answers never goes backwards, at whatever replica. A request is a register that is
// written once, from PENDING to its final state. Such a history is linearizable exactly if no question that is asked
// after a final answer came (or after the write was acknowledged) is answered with anything else, and no two final
// answers differ; so that is all there is to check, without a search.
func monotone(e *Evidence) *Verdict {
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
	for _, s := range statuses {
		v.Looked++
		if first, known := firsts[s.ID]; known && s.Asked.After(first.At) && s.Status != first.Status && !e.deletedBy(s) {
			v.violatedf("%s was %s at %s and asked for at %s it was %s", s.ID, first.Status, stamp(first.At), stamp(s.Asked), s.Status)
		}
		c := e.claims[s.ID]
		if at := c.acknowledged(); !at.IsZero() && s.Asked.After(at) && s.Status == pending {
			v.violatedf("%s was proven at %s and asked for at %s it was %s", s.ID, stamp(at), stamp(s.Asked), s.Status)
		}
		if s.Status == verified && e.committedAt(s.ID, verified).After(s.At) {
			v.violatedAboutf(e, s.ID, s.At, "%s was %s at %s, before that was committed", s.ID, s.Status, stamp(s.At))
		}
		if s.Status == absent && !e.deletedBy(s) {
			v.violatedf("%s was not known at %s", s.ID, stamp(s.Asked))
		}
	}
	v.Note = fmt.Sprintf("%d requests were seen final", len(firsts))
	return v
}

// deletedBy tells whether the request may have been gone when the answer was given.
func (e *Evidence) deletedBy(s ledger.Status) bool {
	last, ok := e.last(s.ID)
	return ok && s.Status == absent && last.Op == ledger.Deleted && last.At.Before(s.At)
}
