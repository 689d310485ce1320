package storetest

import (
	"context"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func counts() []check {
	return []check{{name: "counts what is stored by what it waits for", run: countsStored}}
}

func countsStored(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	t.create(ctx, a, t.new())
	undelivered, delivered := t.create(ctx, a, t.new()), t.create(ctx, a, t.new())
	expired, gone := t.create(ctx, b, t.new()), t.create(ctx, b, t.new())
	t.update(ctx, a, undelivered.ID, verify(true))
	t.update(ctx, b, delivered.ID, verify(false))
	t.update(ctx, a, expired.ID, func(r *verification.Request, _ time.Time) error {
		r.Phase = verification.Expired
		return nil
	})
	t.Expect(a.Delete(ctx, gone.ID, gone.Version)).To(Succeed())
	t.harness.Settle()
	for _, store := range []verification.Store{a, b} {
		counter, ok := store.(verification.Counter)
		t.Expect(ok).To(BeTrue(), "the store counts")
		stored, err := counter.Stored(ctx)
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(stored).To(Equal(verification.Stored{Pending: 1, Undelivered: 1, Finished: 2}))
	}
}
