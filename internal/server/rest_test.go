package server

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestRestingMemory(t *testing.T) {
	const some, much = restGarbage, restAllocation
	for name, test := range map[string]struct {
		allocations []uint64 // in each period
		collected   int
	}{
		"at rest from the start":        {[]uint64{some, some, some}, 3},
		"does nothing":                  {[]uint64{some, 0, 0}, 1},
		"does little":                   {[]uint64{some, some / 2, some / 2}, 2},
		"busy":                          {[]uint64{much, much, 2 * much}, 0},
		"busy at first":                 {[]uint64{much, much, some}, 1},
		"does nothing after it is busy": {[]uint64{some, much, 0}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var allocated uint64
				var collected int
				m := &restingMemory{allocated: func() uint64 { return allocated }, collect: func() { collected++ }}
				go func() { _ = m.Start(t.Context()) }() // it returns nil
				synctest.Wait()
				for _, more := range test.allocations {
					allocated += more
					<-time.After(restPeriod)
					synctest.Wait()
				}
				g.Expect(collected).To(Equal(test.collected))
			})
		})
	}
}

func TestReadAllocated(t *testing.T) {
	before := readAllocated()
	kept := make([]byte, 1<<20)
	NewWithT(t).Expect(readAllocated()).To(BeNumerically(">=", before+uint64(len(kept))))
}
