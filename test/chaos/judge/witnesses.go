package judge

import (
	"fmt"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// witnessed: the witness's last word on each request is what the store itself has at the end. Without that its history
// would prove nothing.
func witnessed(e *Evidence) *Verdict {
	v := &Verdict{Name: "W", Holds: "the witness and the store agree at the end"}
	stored := map[string]ledger.Change{}
	for _, f := range e.Final {
		v.Looked++
		stored[f.ID] = f
		last, ok := e.last(f.ID)
		switch {
		case !ok:
			v.violatedf("%s is stored, and the witness never saw it", f.ID)
		case last.Op == ledger.Deleted:
			v.violatedf("%s is stored, and the witness saw its end", f.ID)
		case last.Phase != f.Phase || last.Attempts != f.Attempts || last.Delivered != f.Delivered || last.Exhausted != f.Exhausted:
			v.violatedf("%s is stored as %s after %d attempts, and the witness saw %s after %d",
				f.ID, f.Phase, f.Attempts, last.Phase, last.Attempts)
		}
	}
	deleted := 0
	for id := range e.histories {
		last, _ := e.last(id)
		if _, ok := stored[id]; !ok && last.Op != ledger.Deleted {
			v.violatedf("%s is not stored, and the witness did not see its end", id)
		}
		if last.Op == ledger.Deleted {
			deleted++
		}
	}
	v.Note = fmt.Sprintf("%d are stored, %d were deleted", len(e.Final), deleted)
	return v
}

// outage: while the store can commit nothing, nothing is acknowledged.
func outage(e *Evidence) *Verdict {
	v := &Verdict{Name: "O", Holds: "nothing is acknowledged while the store is down", Optional: true}
	for _, f := range e.Faults {
		if f.Down.IsZero() {
			continue
		}
		v.Looked++
		for _, a := range e.Acks {
			if a.Asked.After(f.Down) && a.At.Before(f.Up) {
				v.violatedf("%s was acknowledged at %s, in the outage from %s to %s", a.ID, stamp(a.At), stamp(f.Down), stamp(f.Up))
			}
		}
	}
	return v
}
