package server

import (
	"math"
	"os"
	"runtime/debug"
)

// garbagePercent is how much garbage there may be for each byte in use: a server has little in use and makes much garbage, so
// with Go's default the collector took an eighth of its processor time.
const garbagePercent = 300

// limitShare is the part of the limit up to which garbage may pile up: what a flood makes must not fill the pod, whose
// memory is not the heap's alone.
const limitShare = 3.0 / 5

// TuneGarbageCollector lets garbage pile up to a share of the memory that the process may have (GOMEMLIMIT, which the operator
// sets). Without such a limit, or if GOGC is set, it changes nothing. What the limit was cannot be asked for afterwards.
func TuneGarbageCollector() {
	limit := debug.SetMemoryLimit(-1)
	if limitDecides(os.Getenv("GOGC"), limit) {
		debug.SetGCPercent(garbagePercent)
		debug.SetMemoryLimit(int64(float64(limit) * limitShare))
	}
}

// limitDecides reports whether a memory limit is set and GOGC is not.
func limitDecides(gogc string, limit int64) bool { return gogc == "" && limit != math.MaxInt64 }
