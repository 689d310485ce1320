package judge

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// refusals are the required answers to what strangers try.
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

// meaningless are answers that prove nothing, like a missing one: 503 while the store is unavailable, 401 to a good key
// that the replica has not learned of yet, and 429 because the key requested too many unknown ids.
//
//nolint:gochecknoglobals // a constant, which Go has no maps of
var meaningless = map[ledger.Offence][]int{
	ledger.GuessedID:   {http.StatusServiceUnavailable, http.StatusUnauthorized, http.StatusTooManyRequests},
	ledger.BrokenLines: {http.StatusUnauthorized},
}

// awaitsSecret reports whether a key was refused as one that may be of a Secret that is missing: in chaos a key is revoked by removing its
// Secret alone.
func awaitsSecret(t *ledger.Trespass) bool {
	return (t.Offence == ledger.UnknownKey || t.Offence == ledger.RevokedKey) &&
		t.Answer == http.StatusServiceUnavailable && t.Error == "keys_unavailable"
}

// judgeStrangers checks A: foreign ids and keys are refused whatever fails meanwhile, and strangers' words appear
// nowhere.
func judgeStrangers(e *Evidence) *Verdict {
	v := &Verdict{Name: "A", Holds: "what strangers try is refused, reveals nothing, and leaves no trace of their words"}
	tried, absences := map[ledger.Offence]int{}, map[string]bool{}
	for _, t := range e.Trespasses {
		if t.Answer == 0 || slices.Contains(meaningless[t.Offence], t.Answer) {
			continue
		}
		v.Looked++
		tried[t.Offence]++
		if want := refusals[t.Offence]; t.Answer != want && !awaitsSecret(&t) {
			v.violatedf("%s was answered %d at %s instead of %d", t.Offence, t.Answer, formatTime(t.At), want)
		}
		if t.Offence == ledger.GuessedID && t.Answer == http.StatusNotFound {
			absences[t.Body] = true
		}
	}
	if len(absences) > 1 {
		v.violatedf("unknown ids were answered with %d different bodies", len(absences))
	}
	for _, trace := range e.Traces {
		v.violatedf("a stranger's words: %s", trace)
	}
	var notes []string
	for _, offence := range slices.Sorted(maps.Keys(refusals)) { // including those that a short run had no time for
		notes = append(notes, fmt.Sprintf("%s %d", offence, tried[offence]))
	}
	v.Note = strings.Join(notes, ", ")
	return v
}
