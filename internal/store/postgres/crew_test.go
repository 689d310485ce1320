package postgres

import (
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Operations during the shutdown of a store", func() {
	It("are waited for, or rejected", func() {
		for range 200 {
			var (
				group                     workerGroup
				callers                   sync.WaitGroup
				accepted, rejected, ended atomic.Int32
			)
			for range 8 {
				callers.Go(func() {
					if group.Go(func() { ended.Add(1) }) {
						accepted.Add(1)
					} else {
						rejected.Add(1)
					}
				})
			}
			group.Wait()
			left := ended.Load()
			callers.Wait()
			Expect(left).To(Equal(accepted.Load()), "nothing runs after Wait")
			Expect(accepted.Load() + rejected.Load()).To(BeEquivalentTo(8))
		}
	})

	It("fail with an error that names the shutdown", func(ctx SpecContext) {
		b := batcher[int, int]{workers: &workerGroup{}, maxConcurrent: 1}
		b.workers.Wait()
		_, err := b.do(ctx, 1)
		Expect(err).To(MatchError(ContainSubstring("the store is closing")))
	})
})
