package boundedhttp

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// cgroupLimit is where the kernel says how much memory a container may use.
const cgroupLimit = "/sys/fs/cgroup/memory.max"

// Budget returns the bytes that all connections of this process may make it hold: a third of its memory, by GOMEMLIMIT or
// the limit of its container, whichever is less.
func Budget() int64 {
	limit, err := os.ReadFile(cgroupLimit)
	if err != nil {
		limit = nil // no cgroup v2: GOMEMLIMIT alone counts
	}
	return computeBudget(debug.SetMemoryLimit(-1), string(limit))
}

func computeBudget(goLimit int64, cgroup string) int64 {
	memory := goLimit
	if bytes, err := strconv.ParseInt(strings.TrimSpace(cgroup), 10, 64); err == nil { // "max" is no limit
		memory = min(memory, bytes)
	}
	if memory == math.MaxInt64 {
		memory = usualMemory
	}
	return min(max(memory/connectionsShare, minConnections*ConnectionCost), maxConnections*ConnectionCost)
}
