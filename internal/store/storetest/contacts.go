package storetest

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func contacts() []check {
	return []check{
		{name: "lead several senders to one request", run: contactsOfOne},
		{name: "lead a sender to the request he was bound to last", run: contactsLatest},
		{name: "never bring an earlier request back once the later one is final", run: contactsFinal},
		{name: "never bring an earlier request back once the later one is deleted", run: contactsDeleted},
		{name: "beyond eight lose the oldest", run: contactsOverflow},
		{name: "lead to the current state", run: contactsCurrent},
	}
}

// awaits expects that every replica leads the sender to that very request.
func (t *trial) awaits(ctx context.Context, binding string, want verification.Request) {
	ginkgo.GinkgoHelper()
	for _, s := range t.replicas(2) {
		got, err := s.Awaiting(ctx, binding)
		t.Expect(err).NotTo(HaveOccurred(), binding)
		t.Expect(got.ID).To(Equal(want.ID), "the request of %s", binding)
	}
}

func (t *trial) awaitsNothing(ctx context.Context, binding string) {
	ginkgo.GinkgoHelper()
	for _, s := range t.replicas(2) {
		_, err := s.Awaiting(ctx, binding)
		t.Expect(err).To(haveCode(verification.CodeNotFound), binding)
	}
}

// bound binds a sender, later than everything before.
func (t *trial) bound(ctx context.Context, s verification.Store, id, binding string) verification.Request {
	ginkgo.GinkgoHelper()
	t.moment(ctx)
	return t.update(ctx, s, id, bind(binding))
}

func contactsOfOne(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	one, other := t.create(ctx, a, t.new()), t.create(ctx, b, t.new())
	t.bound(ctx, a, one.ID, "anna")
	t.bound(ctx, b, one.ID, "bruno")
	t.bound(ctx, a, other.ID, "carla")
	t.awaits(ctx, "anna", one)
	t.awaits(ctx, "bruno", one)
	t.awaits(ctx, "carla", other)
	t.awaitsNothing(ctx, "dora")
	t.Expect(t.get(ctx, a, one.ID).Contacts).To(HaveLen(2))
}

func contactsLatest(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	early, late := t.create(ctx, a, t.new()), t.create(ctx, b, t.new())
	t.bound(ctx, a, early.ID, "anna")
	t.awaits(ctx, "anna", early)
	t.bound(ctx, b, late.ID, "anna")
	t.awaits(ctx, "anna", late)
	t.bound(ctx, a, early.ID, "bruno")
	t.awaits(ctx, "anna", late) // a write to the earlier one changes nothing
	t.bound(ctx, a, early.ID, "anna")
	t.awaits(ctx, "anna", early) // his last word
	t.bound(ctx, b, early.ID, "anna")
	t.awaits(ctx, "anna", early)
	t.bound(ctx, b, late.ID, "anna")
	t.awaits(ctx, "anna", late)
}

func contactsFinal(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	early, late := t.create(ctx, a, t.new()), t.create(ctx, a, t.new())
	t.bound(ctx, a, early.ID, "anna")
	t.bound(ctx, b, late.ID, "anna")
	final := t.update(ctx, a, late.ID, verify(false))
	t.awaits(ctx, "anna", late)
	t.bound(ctx, b, early.ID, "bruno")
	t.awaits(ctx, "anna", late)
	t.Expect(b.Awaiting(ctx, "anna")).To(be(final))
}

func contactsDeleted(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	early, late := t.create(ctx, a, t.new()), t.create(ctx, a, t.new())
	t.bound(ctx, a, early.ID, "anna")
	t.bound(ctx, b, late.ID, "anna")
	t.remove(ctx, a, late.ID)
	t.awaitsNothing(ctx, "anna")
	t.bound(ctx, b, early.ID, "bruno")
	t.awaitsNothing(ctx, "anna")
	t.bound(ctx, b, early.ID, "anna")
	t.awaits(ctx, "anna", early)
	t.remove(ctx, b, early.ID)
	t.awaitsNothing(ctx, "anna")
	t.awaitsNothing(ctx, "bruno")
}

func contactsOverflow(ctx context.Context, t *trial) {
	const senders = verification.MaxContacts + 3
	a, b := t.open(), t.open()
	before, r := t.create(ctx, a, t.new()), t.create(ctx, a, t.new())
	sender := func(i int) string { return fmt.Sprintf("sender-%d", i) }
	t.bound(ctx, a, before.ID, sender(0))
	for i := range senders {
		t.bound(ctx, []verification.Store{a, b}[i%2], r.ID, sender(i))
	}
	for i := range senders {
		if i < senders-verification.MaxContacts {
			t.awaitsNothing(ctx, sender(i)) // sender 0 does not fall back to the request before
			continue
		}
		t.awaits(ctx, sender(i), r)
	}
}

func contactsCurrent(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	id := t.create(ctx, a, t.new()).ID
	t.Expect(b.Awaiting(ctx, "anna")).Error().To(haveCode(verification.CodeNotFound))
	for range 10 {
		written := t.bound(ctx, a, id, "anna")
		t.Expect(b.Awaiting(ctx, "anna")).To(be(written))
	}
	written := t.update(ctx, a, id, verify(true))
	t.Expect(b.Awaiting(ctx, "anna")).To(be(written))
}
