package judge

import (
	"fmt"
	"strings"
	"time"
)

// Verdict is the result of one invariant.
type Verdict struct {
	Name string
	// Holds is the invariant in words.
	Holds string
	// Looked is the number of things checked. Zero is a failure unless Optional: not every run has what the invariant
	// is about.
	Looked   int
	Optional bool
	// Violations are the first contradictions, Count is their total number.
	Violations []string
	Count      int
	// Note has figures for the reader of the report.
	Note string
}

const (
	// maxViolations is how many contradictions are listed, and maxChains how many of them with their ledger lines.
	maxViolations = 20
	maxChains     = 3
)

// OK reports whether the invariant was tested and held.
func (v *Verdict) OK() bool { return v.Looked > 0 && v.Count == 0 }

// Skipped reports whether there was nothing to test an optional invariant on.
func (v *Verdict) Skipped() bool { return v.Optional && v.Looked == 0 && v.Count == 0 }

// Summary returns the first contradiction on one line, for the end of a report; empty if there is none.
func (v *Verdict) Summary() string {
	switch {
	case v.OK(), v.Skipped():
		return ""
	case v.Count == 0:
		return v.Name + ": there was nothing to check"
	default:
		first, _, _ := strings.Cut(v.Violations[0], "\n")
		return fmt.Sprintf("%s: %d violations, the first: %s", v.Name, v.Count, first)
	}
}

// violatedAboutf records a contradiction about a request at a time. The first few get the ledger lines that show it.
func (v *Verdict) violatedAboutf(e *Evidence, id string, at time.Time, format string, args ...any) {
	if v.Count < maxChains {
		format += "\n         %s"
		args = append(args, strings.Join(e.evidenceLines(id, at), "\n         "))
	}
	v.violatedf(format, args...)
}

func (v *Verdict) violatedf(format string, args ...any) {
	if v.Count++; v.Count <= maxViolations {
		v.Violations = append(v.Violations, fmt.Sprintf(format, args...))
	}
}

// Judge applies every invariant.
func Judge(e *Evidence) []*Verdict {
	e.buildIndex()
	verdicts := []*Verdict{
		judgeDurable(e), judgeOneKey(e), judgeProven(e), judgeConfirmed(e), judgeFinal(e), judgeDelivered(e), judgeCounted(e), judgeRepeated(e),
		judgeSilent(e), judgeMonotone(e), judgeWitness(e), judgeOutage(e), judgeKeys(e),
	}
	if e.CodeKills > 0 {
		verdicts = append(verdicts, judgeSentAfterCommit(e), judgeSentOnce(e), judgeResults(e))
	}
	return verdicts
}
