package app

import (
	"math"
	"os"
	"runtime/debug"
)

// roomyPercent is how much garbage there may be for each byte in use, where there is room: a server has little in use and
// makes much garbage, so the collector took an eighth of its processor time.
const roomyPercent = 300

// collectByLimit has the garbage collector use the memory that the process may have (GOMEMLIMIT, as the operator sets it),
// and work the harder the closer it gets. Where nobody said how much that is, or how to collect (GOGC), it stays as Go has it.
func collectByLimit() {
	if roomy(os.Getenv("GOGC"), debug.SetMemoryLimit(-1)) {
		debug.SetGCPercent(roomyPercent)
	}
}

// roomy tells whether the limit alone decides.
func roomy(gogc string, limit int64) bool { return gogc == "" && limit != math.MaxInt64 }
