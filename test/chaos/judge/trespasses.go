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
	ledger.UnknownKey:  http.StatusUnauthorized,
	ledger.RevokedKey:  http.StatusUnauthorized,
	ledger.KeyInURL:    http.StatusUnauthorized,
	ledger.BrokenLines: http.StatusBadRequest,
	ledger.LongHeader:  http.StatusRequestHeaderFieldsTooLarge,
	ledger.OddPath:     http.StatusNotFound,
	ledger.OddMethod:   http.StatusMethodNotAllowed,
}

// meaningless are the answers that say nothing about what was tried, beside none at all: that of a replica whose store is away
// to those who had it asked, to whoever uses a good key that of a replica that has not learned of it yet, and that a key
// asked for too many unknown ids.
//
//nolint:gochecknoglobals // a constant, which Go has no maps of
var meaningless = map[ledger.Offence][]int{
	ledger.GuessedID:   {http.StatusServiceUnavailable, http.StatusUnauthorized, http.StatusTooManyRequests},
	ledger.BrokenLines: {http.StatusUnauthorized},
}

// refused: nobody gets anything by an id or a key that is not his, whatever breaks meanwhile, and what he makes up gets
// nowhere.
func refused(e *Evidence) *Verdict {
	v := &Verdict{Name: "A", Holds: "what strangers try is refused, tells nothing, and leaves no trace of their words"}
	tried, absences := map[ledger.Offence]int{}, map[string]bool{}
	for _, t := range e.Trespasses {
		if t.Answer == 0 || slices.Contains(meaningless[t.Offence], t.Answer) {
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
	for _, offence := range slices.Sorted(maps.Keys(refusals)) { // also those that a short run had no time for
		notes = append(notes, fmt.Sprintf("%s %d", offence, tried[offence]))
	}
	v.Note = strings.Join(notes, ", ")
	return v
}
