package judge

import (
	"fmt"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// judgeWitness checks W: the last state of each request that the witness saw is the one that is stored at the end.
// Otherwise its history would prove nothing.
func judgeWitness(e *Evidence) *Verdict {
	v := &Verdict{Name: "W", Holds: "the witness and the store agree at the end"}
	stored := map[string]ledger.Change{}
	for _, f := range e.Final {
		v.Looked++
		stored[f.ID] = f
		last, ok := e.lastState(f.ID)
		switch {
		case !ok:
			v.violatedf("%s is stored, but the witness never saw it", f.ID)
		case last.Op == ledger.Deleted:
			v.violatedf("%s is stored, but the witness saw its deletion", f.ID)
		case last.Phase != f.Phase || last.Attempts != f.Attempts || last.Delivered != f.Delivered || last.Exhausted != f.Exhausted:
			v.violatedf("%s is stored as %s after %d attempts, but the witness saw %s after %d",
				f.ID, f.Phase, f.Attempts, last.Phase, last.Attempts)
		}
	}
	deleted := 0
	for id := range e.histories {
		last, _ := e.lastState(id)
		if _, ok := stored[id]; !ok && last.Op != ledger.Deleted {
			v.violatedf("%s is not stored, but the witness did not see its deletion", id)
		}
		if last.Op == ledger.Deleted {
			deleted++
		}
	}
	v.Note = fmt.Sprintf("%d are stored, %d were deleted", len(e.Final), deleted)
	return v
}

// judgeOutage checks O: while the store can commit nothing, nothing is acknowledged.
func judgeOutage(e *Evidence) *Verdict {
	v := &Verdict{Name: "O", Holds: "nothing is acknowledged while the store is down", Optional: true}
	for _, f := range e.Faults {
		if f.Down.IsZero() {
			continue
		}
		v.Looked++
		for _, a := range e.Acks {
			if a.Asked.After(f.Down) && a.At.Before(f.Up) {
				v.violatedf("%s was acknowledged at %s, in the outage from %s to %s", a.ID, formatTime(a.At), formatTime(f.Down), formatTime(f.Up))
			}
		}
	}
	return v
}
