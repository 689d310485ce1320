package server

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// A server is at rest while it allocates less than restAllocation in each restPeriod: a few requests a second. There, a garbage
// collection costs one request nothing and the process about 10 ms.
const (
	restPeriod     = 20 * time.Second
	restAllocation = 8 << 20
)

// restGarbage is the allocation in bytes that is worth a collection. Without it, a server that does nothing would collect forever.
const restGarbage = 1 << 20

// restingMemory returns memory to the kernel while the server is at rest. Go keeps what a burst of work has used, and its
// collector runs only when the garbage is a multiple of the memory in use, which a server at rest reaches after minutes.
type restingMemory struct {
	allocated func() uint64
	collect   func()
}

// ReturnMemory returns a runnable that returns the memory of this process to the kernel while the process is at rest.
func ReturnMemory() manager.Runnable {
	return &restingMemory{allocated: readAllocated, collect: debug.FreeOSMemory}
}

// Start returns when ctx ends.
func (m *restingMemory) Start(ctx context.Context) error {
	tick := time.NewTicker(restPeriod)
	defer tick.Stop()
	last, collected := m.allocated(), uint64(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := m.allocated()
		if now-last < restAllocation && now-collected >= restGarbage {
			m.collect()
			collected = now
		}
		last = now
	}
}

// readAllocated returns the sum of all allocations of the process so far, in bytes.
func readAllocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
