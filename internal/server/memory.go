package server

import (
	"math"
	"os"
	"runtime/debug"
)

// garbagePercent is GOGC: the garbage allowed per memory in use, in percent. A server uses little memory and produces much
// garbage: with Go's default, the collector took an eighth of its processor time.
const garbagePercent = 300

// limitShare is the share of the memory limit that the heap may use. A pod also has memory outside the heap, which a flood of
// requests must not exhaust.
const limitShare = 3.0 / 5

// TuneGarbageCollector lets garbage grow to a share of the memory limit (GOMEMLIMIT, which the operator sets). Without a limit,
// or if GOGC is set, it changes nothing. It lowers the limit, so the original cannot be read afterwards.
func TuneGarbageCollector() {
	limit := debug.SetMemoryLimit(-1)
	if limitDecides(os.Getenv("GOGC"), limit) {
		debug.SetGCPercent(garbagePercent)
		debug.SetMemoryLimit(int64(float64(limit) * limitShare))
	}
}

// limitDecides reports whether a memory limit is set and GOGC is not.
func limitDecides(gogc string, limit int64) bool { return gogc == "" && limit != math.MaxInt64 }
