package app

import (
	"math"
	"os"
	"runtime/debug"
)

// roomyPercent is how much garbage there may be for each byte in use, where there is room: a server has little in use and
// makes much garbage, so the collector took an eighth of its processor time.
const roomyPercent = 300

// limitShare is the part of the limit up to which garbage may pile up: what a flood makes must not fill the pod, whose
// memory is not the heap's alone.
const limitShare = 3.0 / 5

// collectByLimit has the garbage collector use the memory that the process may have (GOMEMLIMIT, as the operator sets it),
// and work the harder the closer it gets. Where nobody said how much that is, or how to collect (GOGC), it stays as Go has it.
func collectByLimit() {
	limit := debug.SetMemoryLimit(-1)
	if roomy(os.Getenv("GOGC"), limit) {
		debug.SetGCPercent(roomyPercent)
		debug.SetMemoryLimit(int64(float64(limit) * limitShare))
	}
}

// roomy tells whether the limit alone decides.
func roomy(gogc string, limit int64) bool { return gogc == "" && limit != math.MaxInt64 }
