package storetest

import (
	"context"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func state() []check {
	checks := []check{
		{name: "keeps times to the microsecond and answers no finer ones", run: keepsMicroseconds},
		{name: "hands out copies that share nothing", run: keepsToItself},
		{name: "shows each write at once through every instance", run: keepsCurrent},
		{name: "shows each phase at once to whoever peeks", run: peeksCurrent},
		{name: "lets those who peek see what is stored, and no more", run: peeksStored},
	}
	for _, s := range states {
		checks = append(checks, check{name: "gives back every field of a request that is " + s.name, run: func(ctx context.Context, t *trial) {
			keepsState(ctx, t, s.make)
		}})
	}
	return checks
}

// states are shapes that requests have in their life, every field differing from every other.
var states = []struct {
	name string
	make func(r *verification.Request, at func(n int) time.Time)
}{
	{"bound to as many senders as it may be", func(r *verification.Request, at func(int) time.Time) {
		for i := range verification.MaxContacts {
			r.Contacts = append(r.Contacts, verification.Contact{Binding: string(rune('a'+i)) + "-sender", BoundAt: at(i)})
		}
		r.Contacts[2].Kind = verification.ContactConfirm
	}},
	{"verified without an event", func(r *verification.Request, at func(int) time.Time) {
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, at(1), r.Phone
	}},
	{"verified by a shared contact in another form", func(r *verification.Request, at func(int) time.Time) {
		r.Contacts = []verification.Contact{{Binding: "b1", BoundAt: at(1)}, {Binding: "b2", BoundAt: at(2)}}
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, at(3), number("+5511987654321")
		r.Assurance = verification.AssuranceSharedContact
		r.Delivery.NextAttemptAt = at(4)
	}},
	{"between two attempts", func(r *verification.Request, at func(int) time.Time) {
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, at(1), r.Phone
		r.Delivery = verification.Delivery{
			Attempts: 3, NextAttemptAt: at(300), LastAttemptAt: at(2), LastStatusCode: 503, LastReason: "status",
		}
	}},
	{"delivered", func(r *verification.Request, at func(int) time.Time) {
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, at(1), r.Phone
		r.Delivery = verification.Delivery{Attempts: 1, LastAttemptAt: at(2), LastStatusCode: 204, DeliveredAt: at(3)}
	}},
	{"exhausted", func(r *verification.Request, at func(int) time.Time) {
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, at(1), r.Phone
		r.Delivery = verification.Delivery{Attempts: 10, LastAttemptAt: at(2), LastReason: "timeout", ExhaustedAt: at(3)}
	}},
	{"due once more by a wish", func(r *verification.Request, at func(int) time.Time) {
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, at(1), r.Phone
		r.Delivery, r.Redelivered = verification.Delivery{NextAttemptAt: at(2)}, r.ID+"/again"
	}},
	{"expired", func(r *verification.Request, _ func(int) time.Time) { r.Phase = verification.Expired }},
}

func keepsState(ctx context.Context, t *trial, shape func(*verification.Request, func(int) time.Time)) {
	a, b := t.open(), t.open()
	n := t.new()
	n.Phone, n.BodyHash, n.DisplayName = number("+551187654321"), "hash", "Ada's Bücher"
	want := t.create(ctx, a, n)
	// Odd microseconds, so that no unit that is too coarse gets through.
	shape(&want, func(n int) time.Time {
		return want.CreatedAt.Add(time.Duration(n)*time.Second + 123457*time.Microsecond)
	})

	written := t.update(ctx, a, n.ID, func(r *verification.Request, _ time.Time) error {
		version := r.Version
		*r = want
		r.Version = version
		return nil
	})
	t.Expect(written).To(be(want, ignoringVersion))
	t.Expect(t.get(ctx, b, n.ID)).To(be(written))
	t.Expect(t.get(ctx, a, n.ID)).To(be(written))
}

func keepsMicroseconds(ctx context.Context, t *trial) {
	s := t.open()
	id := t.create(ctx, s, t.new()).ID
	var read, next time.Time
	written := t.update(ctx, s, id, func(r *verification.Request, now time.Time) error {
		read = now
		next = now.Add(1234567899 * time.Nanosecond).In(time.FixedZone("east", 3600))
		r.Phase, r.VerifiedAt, r.Delivery.NextAttemptAt = verification.Verified, now, next
		return nil
	})
	t.Expect(read).To(BeTemporally("==", read.Truncate(time.Microsecond)), "the store's time is one that it can keep")
	t.Expect(written.Delivery.NextAttemptAt).To(BeTemporally("==", next.Truncate(time.Microsecond)))
	t.Expect(t.get(ctx, s, id)).To(be(written), "what was answered is what is kept")
}

func keepsToItself(ctx context.Context, t *trial) {
	s := t.open()
	id := t.create(ctx, s, t.new()).ID
	var leaked []verification.Contact
	bound := t.update(ctx, s, id, func(r *verification.Request, now time.Time) error {
		r.Contacts = []verification.Contact{{Binding: "sender", BoundAt: now}}
		leaked = r.Contacts
		return nil
	})
	spoil := func(contacts []verification.Contact) {
		t.Expect(contacts).To(HaveLen(1))
		t.Expect(contacts[0].Binding).To(Equal("sender"))
		contacts[0].Binding = "spoiled"
	}
	leaked[0].Binding = "spoiled"
	spoil(bound.Contacts)
	spoil(t.get(ctx, s, id).Contacts)
	awaiting, err := s.Awaiting(ctx, "sender")
	t.Expect(err).NotTo(HaveOccurred())
	spoil(awaiting.Contacts)
	existing, err := s.Create(ctx, verification.New{ID: id}, verification.Limits{})
	t.Expect(err).NotTo(HaveOccurred())
	spoil(existing.Request.Contacts)
	seen := t.update(ctx, s, id, func(r *verification.Request, _ time.Time) error {
		spoil(r.Contacts)
		return verification.ErrUnchanged
	})
	spoil(seen.Contacts)
	t.Expect(t.get(ctx, s, id).Contacts[0].Binding).To(Equal("sender"))
}

func keepsCurrent(ctx context.Context, t *trial) {
	stores := t.replicas(3)
	id := t.create(ctx, stores[0], t.new()).ID
	for i := range 30 {
		for _, s := range stores { // whoever caches has cached
			t.get(ctx, s, id)
		}
		written := t.update(ctx, stores[i%3], id, bind(string(rune('a'+i%26))))
		t.Expect(t.get(ctx, stores[(i+1)%3], id)).To(be(written))
		t.Expect(t.get(ctx, stores[(i+2)%3], id)).To(be(written))
		t.moment(ctx)
	}
}

// peeksCurrent reads before each write, so that whoever remembers does. A final state may come from memory, with what
// its delivery was then; that a request is final may not be missed.
func peeksCurrent(ctx context.Context, t *trial) {
	stores := t.replicas(3)
	for i := range 20 {
		r := t.create(ctx, stores[i%3], t.new())
		for _, m := range []mutation{bind("sender"), verify(true), logged} {
			for _, s := range stores {
				t.peek(ctx, s, r.ID)
			}
			r = t.update(ctx, stores[(i+1)%3], r.ID, m)
			for _, s := range stores {
				peeked := t.peek(ctx, s, r.ID)
				if r.Phase.Final() {
					peeked.Delivery, peeked.Version, peeked.Epoch = r.Delivery, r.Version, r.Epoch
				}
				t.Expect(peeked).To(be(r))
			}
		}
	}
}

func peeksStored(ctx context.Context, t *trial) {
	a, b, foreign := t.open(), t.open(), t.harness.Open(t.project.Name()+"-2")
	nothing := func(s verification.Store, id string) {
		t.harness.Settle()
		_, err := s.Peek(ctx, id)
		t.Expect(err).To(haveCode(verification.CodeNotFound))
	}
	nothing(a, t.newID())
	for _, m := range []mutation{bind("sender"), verify(true)} {
		r := t.create(ctx, a, t.new())
		t.update(ctx, b, r.ID, bind("sender"))
		t.moment(ctx)
		r = t.update(ctx, b, r.ID, m)
		nothing(foreign, r.ID)
		for range 2 {
			peeked := t.peek(ctx, a, r.ID)
			t.Expect(peeked).To(be(r))
			peeked.Contacts[0].Binding = "spoiled"
		}
		t.remove(ctx, b, r.ID)
		nothing(a, r.ID)
		nothing(b, r.ID)
	}
}
