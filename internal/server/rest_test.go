package server

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestRestingMemory(t *testing.T) {
	const some, much = restGarbage, restAllocation
	for name, test := range map[string]struct {
		allocations []uint64 // in each period
		inUse       uint64
		collected   int
	}{
		"at rest from the start":        {[]uint64{some, some, some}, 0, 3},
		"does nothing":                  {[]uint64{some, 0, 0}, 0, 1},
		"does little":                   {[]uint64{some, some / 2, some / 2}, 0, 2},
		"busy":                          {[]uint64{much, much, 2 * much}, 0, 0},
		"busy at first":                 {[]uint64{much, much, some}, 0, 1},
		"does nothing after it is busy": {[]uint64{some, much, 0}, 0, 2},
		"much in use":                   {[]uint64{some, some, some}, 3 * restShare * some, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var allocated, collected atomic.Uint64
				m := &restingMemory{
					read: func() heap { return heap{allocated.Load(), test.inUse} }, collect: func() { collected.Add(1) },
				}
				go func() { _ = m.Start(t.Context()) }() // it returns nil
				synctest.Wait()
				for _, more := range test.allocations {
					allocated.Add(more)
					<-time.After(restPeriod)
					synctest.Wait()
				}
				g.Expect(collected.Load()).To(BeEquivalentTo(test.collected))
			})
		})
	}
}

func TestReadHeap(t *testing.T) {
	g := NewWithT(t)
	before := readHeap().allocated
	kept := make([]byte, 1<<20)
	g.Expect(readHeap().allocated).To(BeNumerically(">=", before+uint64(len(kept))))
	runtime.GC()
	g.Expect(readHeap().inUse).To(BeNumerically(">=", len(kept)))
	runtime.KeepAlive(kept)
}
