package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// verdict is what a run of a suite showed.
type verdict string

// The verdicts. Only noticed is good for a mutant, and only green for a suite without one.
const (
	noticed      verdict = "noticed"
	green        verdict = "green"         // the suite passed
	notBuilt     verdict = "not built"     // it does not compile
	timedOut     verdict = "timed out"     // and was not to
	notApplied   verdict = "not applied"   // the edit does not fit the product
	interrupted  verdict = "interrupted"   // nothing is known
	noTests      verdict = "no tests"      // nothing ran that could notice
	suiteIsRed   verdict = "suite is red"  // without the mutant too, so it shows nothing
	otherProblem verdict = "could not run" // such as a full disk
)

// result is what is kept of a run.
type result struct {
	Verdict verdict `json:"verdict"`
	// By names the first test that failed.
	By      string        `json:"by,omitempty"`
	Took    time.Duration `json:"took"`
	Details string        `json:"details,omitempty"`
}

// results keeps results in a folder, each under the hash of all that can change it: a run that was interrupted goes on
// where it ended, and what is not concerned by a change is not run again.
type results struct{ dir string }

func key(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d %s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (r results) load(key string) (result, bool) {
	var kept result
	text, err := os.ReadFile(filepath.Join(r.dir, key+".json"))
	if err != nil || json.Unmarshal(text, &kept) != nil {
		return result{}, false
	}
	return kept, true
}

// save keeps a result if it says anything about the mutant, and not about this machine at this moment.
func (r results) save(key string, result result) error {
	switch result.Verdict {
	case noticed, green, notBuilt:
	default:
		return nil
	}
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return fmt.Errorf("save result: %w", err)
	}
	name := filepath.Join(r.dir, key+".json")
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		return fmt.Errorf("save result: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("save result: %w", err)
	}
	return nil
}
