package storetest

import (
	"context"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func deletion() []check {
	return []check{
		{name: "removes the state that the caller saw", run: deletesSeen},
		{name: "refuses a state that is no longer the current one", run: deletesNothingNew},
		{name: "leaves the id free, and its successor alone", run: deletesNoSuccessor},
	}
}

func deletesSeen(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	r, other := t.create(ctx, a, t.new()), t.create(ctx, a, t.new())
	r = t.update(ctx, b, r.ID, verify(false))
	t.Expect(a.Delete(ctx, r.ID, r.Version)).To(Succeed())
	t.gone(ctx, a, r.ID)
	t.gone(ctx, b, r.ID)
	_, err := b.Update(ctx, r.ID, expire)
	t.Expect(err).To(haveCode(verification.CodeNotFound))
	t.Expect(a.Delete(ctx, r.ID, r.Version)).To(Succeed(), "gone already")
	t.Expect(b.Delete(ctx, r.ID, "another")).To(Succeed(), "gone already, in whatever state")
	t.Expect(t.get(ctx, a, other.ID)).To(be(other))
}

func deletesNothingNew(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	old := t.create(ctx, a, t.new())
	current := t.update(ctx, b, old.ID, verify(true))
	t.Expect(a.Delete(ctx, old.ID, old.Version)).To(MatchError(verification.ErrConflict))
	t.Expect(t.get(ctx, a, old.ID)).To(be(current))
	t.Expect(a.Delete(ctx, old.ID, current.Version)).To(Succeed())
	t.gone(ctx, b, old.ID)
}

// deletesNoSuccessor lets an id come back, as a retry with the same Idempotency-Key does once its request is gone.
// Versions that start anew with it would let a slow loop delete the request that it never saw.
func deletesNoSuccessor(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	n := t.new()
	first := t.create(ctx, a, n)
	t.Expect(b.Delete(ctx, n.ID, first.Version)).To(Succeed())
	t.moment(ctx)
	second := t.create(ctx, a, n)
	t.Expect(second.CreatedAt).To(BeTemporally(">", first.CreatedAt))
	t.Expect(b.Delete(ctx, n.ID, first.Version)).To(MatchError(verification.ErrConflict))
	t.Expect(t.get(ctx, b, n.ID)).To(be(second))
}
