package judge

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// refusals are what is to be answered to what strangers try.
//
//nolint:gochecknoglobals // a constant, which Go has no maps of
var refusals = map[ledger.Offence]int{
	ledger.GuessedID:   http.StatusNotFound,
	ledger.ChangedKey:  http.StatusUnauthorized,
	ledger.RevokedKey:  http.StatusUnauthorized,
	ledger.KeyInURL:    http.StatusUnauthorized,
	ledger.BrokenLines: http.StatusBadRequest,
	ledger.LongHeader:  http.StatusRequestHeaderFieldsTooLarge,
	ledger.OddPath:     http.StatusNotFound,
	ledger.OddMethod:   http.StatusMethodNotAllowed,
}

// refused: nobody gets anything by an id or a key that is not his, whatever breaks meanwhile, and what he makes up gets
// nowhere. No answer, or that of a replica whose store is away, is none that says anything.
func refused(e *Evidence) *Verdict {
	v := &Verdict{Name: "A", Holds: "what strangers try is refused, tells nothing, and leaves no trace of their words"}
	tried, absences := map[ledger.Offence]int{}, map[string]bool{}
	for _, t := range e.Trespasses {
		if t.Answer == 0 || t.Answer == http.StatusServiceUnavailable {
			continue
		}
		v.Looked++
		tried[t.Offence]++
		if want := refusals[t.Offence]; t.Answer != want {
			v.violatedf("%s was answered %d at %s instead of %d", t.Offence, t.Answer, stamp(t.At), want)
		}
		if t.Offence == ledger.GuessedID && t.Answer == http.StatusNotFound {
			absences[t.Body] = true
		}
	}
	if len(absences) > 1 {
		v.violatedf("ids that nobody has were answered with %d different bodies", len(absences))
	}
	for _, trace := range e.Traces {
		v.violatedf("a stranger's words: %s", trace)
	}
	var notes []string
	for _, offence := range slices.Sorted(maps.Keys(tried)) {
		notes = append(notes, fmt.Sprintf("%s %d", offence, tried[offence]))
	}
	v.Note = strings.Join(notes, ", ")
	return v
}
