package boundedhttp

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// cgroupLimit is the file with the memory limit of a container.
const cgroupLimit = "/sys/fs/cgroup/memory.max"

// Budget returns the memory that all connections of this process together may use, in bytes: a third of GOMEMLIMIT or of
// the limit of its container, whichever is less.
func Budget() int64 {
	limit, err := os.ReadFile(cgroupLimit)
	if err != nil {
		limit = nil // without cgroup v2 only GOMEMLIMIT applies
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
