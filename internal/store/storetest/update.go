package storetest

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

var errRefused = errors.New("refused by the mutation")

func update() []check {
	return []check{
		{name: "returns a mutation's own error with the current state and writes nothing", run: updateFails},
		{name: "writes nothing where the mutation finds nothing to do", run: updateUnchanged},
		{name: "changes the version with every write", run: updateVersions},
		{name: "tells mutations the time of the clock that stamps requests", run: updateClock},
		{name: "never leaves a final state", run: updateFinal},
	}
}

// vandal changes a request in every way before it fails.
func vandal(err error) mutation {
	return func(r *verification.Request, now time.Time) error {
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, now, r.Phone
		r.Delivery = verification.Delivery{Attempts: 7, NextAttemptAt: now, LastReason: "vandal"}
		for i := range r.Contacts {
			r.Contacts[i].Binding = "vandal"
		}
		r.Contacts = append(r.Contacts, verification.Contact{Binding: "vandal", BoundAt: now})
		return err
	}
}

func updateFails(ctx context.Context, t *trial) {
	s := t.open()
	id := t.create(ctx, s, t.new()).ID
	before := t.update(ctx, s, id, bind("sender"))
	returned, err := s.Update(ctx, id, vandal(errRefused))
	t.Expect(err).To(MatchError(errRefused))
	t.Expect(returned).To(be(before))
	t.unvandalised(ctx, before)
}

func updateUnchanged(ctx context.Context, t *trial) {
	s := t.open()
	id := t.create(ctx, s, t.new()).ID
	before := t.update(ctx, s, id, bind("sender"))
	returned, err := s.Update(ctx, id, vandal(verification.ErrUnchanged))
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(returned).To(be(before), "the version included")
	t.unvandalised(ctx, before)
}

func (t *trial) unvandalised(ctx context.Context, before verification.Request) {
	s := t.open()
	t.Expect(t.get(ctx, s, before.ID)).To(be(before))
	t.Expect(s.Awaiting(ctx, "sender")).To(be(before))
	_, err := s.Awaiting(ctx, "vandal")
	t.Expect(err).To(haveCode(verification.CodeNotFound))
}

func updateVersions(ctx context.Context, t *trial) {
	s := t.open()
	r := t.create(ctx, s, t.new())
	seen := map[string]bool{r.Version: true}
	for range 10 {
		t.moment(ctx) // so that each write differs from the one before
		r = t.update(ctx, s, r.ID, bind("sender"))
		t.Expect(seen).NotTo(HaveKey(r.Version))
		seen[r.Version] = true
	}
}

func updateClock(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	id := t.create(ctx, a, t.new()).ID
	before := t.clock(ctx, a, id)
	t.pass(ctx, t.harness.Tick)
	after := t.clock(ctx, b, id)
	t.Expect(after.Sub(before)).To(BeNumerically(">=", t.harness.Tick))
	if t.stepped() {
		t.Expect(after.Sub(before)).To(Equal(t.harness.Tick))
	}
	t.Expect(t.create(ctx, a, t.new()).CreatedAt).NotTo(BeTemporally("<", after))
}

func updateFinal(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	expired := t.create(ctx, a, t.lapsing(1))
	verified := t.create(ctx, a, t.new())
	verified = t.update(ctx, b, verified.ID, verify(true))
	t.lapse()
	expired = t.update(ctx, b, expired.ID, expire)
	t.Expect(expired.Phase).To(Equal(verification.Expired))

	for _, s := range []verification.Store{a, b} {
		t.Expect(s.Update(ctx, verified.ID, expire)).To(be(verified))
		for _, final := range []verification.Request{expired, verified} {
			returned, err := s.Update(ctx, final.ID, verify(true))
			t.Expect(err).To(MatchError(verification.ErrFinal))
			t.Expect(returned).To(be(final))
			t.Expect(t.get(ctx, s, final.ID)).To(be(final))
		}
	}
}
