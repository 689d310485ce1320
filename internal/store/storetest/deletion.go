package storetest

import (
	"context"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func deletionChecks() []check {
	return []check{
		{name: "deletes the version that the caller read", run: deletesSeen},
		{name: "rejects an outdated version", run: deletesNothingNew},
		{name: "frees the id and never deletes its successor", run: deletesNoSuccessor},
	}
}

func deletesSeen(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	r, other := t.createRequest(ctx, a, t.newCreation()), t.createRequest(ctx, a, t.newCreation())
	r = t.updateRequest(ctx, b, r.ID, verifyClaimed(false))
	t.Expect(a.Delete(ctx, r.ID, r.Version)).To(Succeed())
	t.expectGone(ctx, a, r.ID)
	t.expectGone(ctx, b, r.ID)
	_, err := b.Update(ctx, r.ID, expireLapsed)
	t.Expect(err).To(haveCode(verification.CodeNotFound))
	t.Expect(a.Delete(ctx, r.ID, r.Version)).To(Succeed(), "already deleted")
	t.Expect(b.Delete(ctx, r.ID, "another")).To(Succeed(), "already deleted, with any version")
	t.Expect(t.getRequest(ctx, a, other.ID)).To(equalRequest(other))
}

func deletesNothingNew(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	old := t.createRequest(ctx, a, t.newCreation())
	current := t.updateRequest(ctx, b, old.ID, verifyClaimed(true))
	t.Expect(a.Delete(ctx, old.ID, old.Version)).To(MatchError(verification.ErrConflict))
	t.Expect(t.getRequest(ctx, a, old.ID)).To(equalRequest(current))
	t.Expect(a.Delete(ctx, old.ID, current.Version)).To(Succeed())
	t.expectGone(ctx, b, old.ID)
}

// deletesNoSuccessor creates an id again, as a retry with the same Idempotency-Key does after its request is deleted. If
// versions started again with it, a slow worker could delete a request that it never read.
func deletesNoSuccessor(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	n := t.newCreation()
	first := t.createRequest(ctx, a, n)
	t.Expect(b.Delete(ctx, n.ID, first.Version)).To(Succeed())
	t.passMoment(ctx)
	second := t.createRequest(ctx, a, n)
	t.Expect(second.CreatedAt).To(BeTemporally(">", first.CreatedAt))
	t.Expect(b.Delete(ctx, n.ID, first.Version)).To(MatchError(verification.ErrConflict))
	t.Expect(t.getRequest(ctx, b, n.ID)).To(equalRequest(second))
}
