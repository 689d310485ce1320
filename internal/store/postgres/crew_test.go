package postgres

import (
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Operations that come while a store closes", func() {
	It("are waited for, or refused", func() {
		for range 200 {
			var (
				c                     crew
				callers               sync.WaitGroup
				taken, refused, ended atomic.Int32
			)
			for range 8 {
				callers.Go(func() {
					if c.Go(func() { ended.Add(1) }) {
						taken.Add(1)
					} else {
						refused.Add(1)
					}
				})
			}
			c.Wait()
			left := ended.Load()
			callers.Wait()
			Expect(left).To(Equal(taken.Load()), "nobody runs after Wait")
			Expect(taken.Load() + refused.Load()).To(BeEquivalentTo(8))
		}
	})

	It("learn that it closes", func(ctx SpecContext) {
		b := batcher[int, int]{crew: &crew{}, flights: 1}
		b.crew.Wait()
		_, err := b.do(ctx, 1)
		Expect(err).To(MatchError(ContainSubstring("the store is closing")))
	})
})
