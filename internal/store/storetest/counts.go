package storetest

import (
	"context"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func countChecks() []check {
	return []check{{name: "count stored requests by their next step", run: countsStored}}
}

func countsStored(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	t.createRequest(ctx, a, t.newCreation())
	undelivered, delivered := t.createRequest(ctx, a, t.newCreation()), t.createRequest(ctx, a, t.newCreation())
	expired, gone := t.createRequest(ctx, b, t.newCreation()), t.createRequest(ctx, b, t.newCreation())
	t.updateRequest(ctx, a, undelivered.ID, verifyClaimed(true))
	t.updateRequest(ctx, b, delivered.ID, verifyClaimed(false))
	t.updateRequest(ctx, a, expired.ID, func(r *verification.Request, _ time.Time) error {
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
