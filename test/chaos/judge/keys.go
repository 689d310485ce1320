package judge

import (
	"net/http"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// judgeKeys checks A: a revoked API key is refused at every replica, whatever fails meanwhile.
func judgeKeys(e *Evidence) *Verdict {
	v := &Verdict{Name: "A", Holds: "a revoked API key is refused, at every replica"}
	answered := map[string]bool{} // by each replica that ran at the end
	for i := range e.KeyTries {
		t := &e.KeyTries[i]
		if t.Last {
			answered[t.Replica] = answered[t.Replica] || t.Answer != 0
		}
		if t.Answer == 0 { // a missing answer proves nothing
			continue
		}
		if t.Answer != http.StatusUnauthorized && !awaitsSecret(t) {
			v.violatedf("a revoked key was answered %d at %s by %s instead of %d", t.Answer, formatTime(t.At), t.Replica, http.StatusUnauthorized)
		}
	}
	v.Looked = len(answered)
	for replica, did := range answered {
		if !did {
			v.violatedf("the replica at %s never answered a revoked key", replica)
		}
	}
	return v
}

// awaitsSecret reports whether a key was refused as one that may be of a Secret that is missing: in chaos a key is revoked by removing its
// Secret alone.
func awaitsSecret(t *ledger.KeyTry) bool {
	return t.Answer == http.StatusServiceUnavailable && t.Error == "keys_unavailable"
}
