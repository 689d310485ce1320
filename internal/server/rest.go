package server

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// A server is at rest while it allocates less than restAllocation in each restPeriod: some dozens of inits a second.
const (
	restPeriod     = 20 * time.Second
	restAllocation = 8 << 20
)

// An allocation of restGarbage bytes is worth a collection, or of one part in restShare of the memory in use: a collection takes time for
// all that is in use, about 10 ms for the 6 MiB of a server that has just begun.
const (
	restGarbage = 1 << 20
	restShare   = 8
)

// restingMemory returns memory to the kernel while the server is at rest. Go keeps what a burst of work has used, and its
// collector runs only when the garbage is a multiple of the memory in use, which a server at rest reaches after minutes.
type restingMemory struct {
	read    func() heap
	collect func()
}

// ReturnMemory returns a runnable that returns the memory of this process to the kernel while the process is at rest.
func ReturnMemory() manager.Runnable {
	return &restingMemory{read: readHeap, collect: debug.FreeOSMemory}
}

// Start returns when ctx ends.
func (m *restingMemory) Start(ctx context.Context) error {
	tick := time.NewTicker(restPeriod)
	defer tick.Stop()
	last, collected := m.read().allocated, uint64(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := m.read()
		if now.allocated-last < restAllocation && now.allocated-collected >= max(restGarbage, now.inUse/restShare) {
			m.collect()
			collected = now.allocated
		}
		last = now.allocated
	}
}

// heap is the sum of all allocations of a process so far, and what the last collection found in use, in bytes.
type heap struct{ allocated, inUse uint64 }

func readHeap() heap {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return heap{samples[0].Value.Uint64(), samples[1].Value.Uint64()}
}
