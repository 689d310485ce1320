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

// ProbeShare is the part of the memory for connections that is reserved for probes, as a divisor.
const ProbeShare = 8

// ShareConnections returns how many connections each of the servers of a process has, of its memory for connections in bytes.
func ShareConnections(budget int64, servers int) int64 {
	each := budget / int64(servers)
	return (each - each/ProbeShare) / ConnectionCost
}

// MaxServers returns how many servers a process with a memory limit in bytes can have, so that each has MinConnections: at most the
// given number.
func MaxServers(limit int64, most int) int {
	budget, servers := computeBudget(limit, ""), 1
	for servers < most && ShareConnections(budget, servers+1) >= MinConnections {
		servers++
	}
	return servers
}

func computeBudget(goLimit int64, cgroup string) int64 {
	memory := goLimit
	if bytes, err := strconv.ParseInt(strings.TrimSpace(cgroup), 10, 64); err == nil { // "max" is no limit
		memory = min(memory, bytes)
	}
	if memory == math.MaxInt64 {
		memory = usualMemory
	}
	return min(max(memory/connectionsShare, MinConnections*ConnectionCost), maxConnections*ConnectionCost)
}
