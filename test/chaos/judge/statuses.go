package judge

import (
	"fmt"
	"net/http"
	"slices"
	"time"

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
	settled := e.acknowledged()
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
		if at, known := settled[s.ID]; known && s.Asked.After(at) && s.Status == pending {
			v.violatedf("%s was proven at %s and asked for at %s it was %s", s.ID, stamp(at), stamp(s.Asked), s.Status)
		}
		if s.Status == absent && !e.deletedBy(s) {
			v.violatedf("%s was not known at %s", s.ID, stamp(s.Asked))
		}
	}
	v.Note = fmt.Sprintf("%d requests were seen final", len(firsts))
	return v
}

// acknowledged returns when each request's proof was first acknowledged in its time.
func (e *Evidence) acknowledged() map[string]time.Time {
	expires := map[string]time.Time{}
	for _, a := range e.Acks {
		expires[a.ID] = a.Expires
	}
	settled := map[string]time.Time{}
	for _, in := range e.Inbound {
		if in.Answer != http.StatusOK || !in.Signed {
			continue
		}
		for _, m := range in.Messages {
			if first, known := settled[m.Request]; m.Proves && in.At.Before(expires[m.Request]) && (!known || in.At.Before(first)) {
				settled[m.Request] = in.At
			}
		}
	}
	return settled
}

// deletedBy tells whether the request may have been gone when the answer was given.
func (e *Evidence) deletedBy(s ledger.Status) bool {
	last, ok := e.last(s.ID)
	return ok && s.Status == absent && last.Op == ledger.Deleted && last.At.Before(s.At)
}
