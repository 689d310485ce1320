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

// verdict is the verdict on a run of a suite.
type verdict string

// The verdicts. Only noticed is good for a mutant, and only green for a suite without one.
const (
	noticed      verdict = "noticed"
	green        verdict = "green"         // the suite passed
	notBuilt     verdict = "not built"     // the mutant does not compile
	timedOut     verdict = "timed out"     // although the mutant does not set Hangs
	notApplied   verdict = "not applied"   // the edit does not fit the product
	interrupted  verdict = "interrupted"   // the result is unknown
	noTests      verdict = "no tests"      // no test ran that could notice
	suiteIsRed   verdict = "suite is red"  // it also fails without the mutant
	otherProblem verdict = "could not run" // such as a full disk
)

// result is the stored result of a run.
type result struct {
	Verdict verdict `json:"verdict"`
	// By names the first test that failed.
	By      string        `json:"by,omitempty"`
	Took    time.Duration `json:"took"`
	Details string        `json:"details,omitempty"`
}

// results stores results in a folder, by a hash of everything that can change them: an interrupted run continues where
// it ended, and only what a change affects runs again.
type results struct{ dir string }

func hashKey(parts ...string) string {
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

// save stores a result if it is about the mutant, and not about the machine at this moment.
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
