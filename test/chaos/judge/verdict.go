package judge

import (
	"fmt"
	"strings"
	"time"
)

// Verdict is what one invariant found.
type Verdict struct {
	Name string
	// Holds is what it says, in words.
	Holds string
	// Looked is at how many things it looked. Zero is a failure, unless Optional: not every run has what it is about.
	Looked   int
	Optional bool
	// Violations are the first contradictions, Count is how many there were.
	Violations []string
	Count      int
	// Note are figures that a reader wants to see.
	Note string
}

const (
	// maxViolations is how many contradictions are told, and maxChains how many of them with what shows them.
	maxViolations = 20
	maxChains     = 3
)

// OK tells whether the invariant was tested and held.
func (v *Verdict) OK() bool { return v.Looked > 0 && v.Count == 0 }

// Skipped tells whether there was nothing to test it on, and need not be.
func (v *Verdict) Skipped() bool { return v.Optional && v.Looked == 0 && v.Count == 0 }

// violatedAboutf notes a contradiction about a request, at a time, with the lines of the ledgers that show it, for the first
// few.
func (v *Verdict) violatedAboutf(e *Evidence, id string, at time.Time, format string, args ...any) {
	if v.Count < maxChains {
		format += "\n         %s"
		args = append(args, strings.Join(e.chain(id, at), "\n         "))
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
	e.index()
	return []*Verdict{
		durable(e), oneKey(e), proven(e), final(e), delivered(e), counted(e), repeated(e), silent(e), secret(e), monotone(e),
		witnessed(e), outage(e), refused(e),
	}
}
