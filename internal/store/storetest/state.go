package storetest

import (
	"context"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func stateChecks() []check {
	checks := []check{
		{name: "keeps times to the microsecond and returns no finer ones", run: keepsMicroseconds},
		{name: "returns copies that share nothing", run: returnsCopies},
		{name: "returns copies of a final request, which memory may answer, that share nothing", run: returnsFinalCopies},
		{name: "shows each write at once through every instance", run: keepsCurrent},
		{name: "shows each phase at once to ReadFinal", run: peeksEachPhase},
		{name: "shows the result of a code at once to ReadFinal, also that of a final request", run: peeksCodeResult},
		{name: "shows only stored requests to ReadFinal and ReadCached", run: peeksStored},
	}
	for _, s := range states {
		checks = append(checks, check{name: "returns every field of a request that is " + s.name, run: func(ctx context.Context, t *trial) {
			keepsState(ctx, t, s.make)
		}})
	}
	return checks
}

// states are typical states of requests. All fields of a state have different values.
var states = []struct {
	name string
	make func(r *verification.Request, at func(n int) time.Time)
}{
	{"bound to the maximum number of senders", func(r *verification.Request, at func(int) time.Time) {
		for i := range verification.MaxContacts {
			r.Contacts = append(r.Contacts, verification.Contact{Binding: string(rune('a'+i)) + "-sender", BoundAt: at(i)})
		}
		r.Contacts[2].Kind = verification.ContactConfirm
	}},
	{"asked by an echo, with every hint", func(r *verification.Request, at func(int) time.Time) {
		r.Contacts = []verification.Contact{
			{Binding: "b1", BoundAt: at(1), Kind: verification.ContactEcho, Nonce: "00112233445566778899aabbccddeeff"},
		}
		for i, kind := range verification.HintKinds() {
			r.Hints = append(r.Hints, verification.Hint{Kind: kind, At: at(i)})
		}
		r.Delivery = verification.Delivery{Attempts: 2, NextAttemptAt: at(9), LastAttemptAt: at(8), LastReason: "timeout"}
	}},
	{"declined, with an event that is due", func(r *verification.Request, at func(int) time.Time) {
		r.Phase, r.Hints = verification.Expired, []verification.Hint{{Kind: verification.HintDeclined, At: at(1)}}
		r.Delivery.NextAttemptAt = at(2)
	}},
	{"proven by the other messenger, with wrong codes", func(r *verification.Request, at func(int) time.Time) {
		r.ProvenAt, r.Actual, r.Assurance, r.VerifiedBy = at(1), r.Phone, verification.AssuranceEcho, verification.WhatsApp
		r.WrongCodes = 3
		r.Contacts = []verification.Contact{{Binding: "b1", BoundAt: at(2)}}
		r.Hints = []verification.Hint{{Kind: verification.HintAwaitingConfirmation, At: at(1)}}
		r.Delivery.NextAttemptAt = at(3)
	}},
	{"confirmed", func(r *verification.Request, at func(int) time.Time) {
		r.Phase, r.ProvenAt, r.VerifiedAt, r.Actual, r.WrongCodes = verification.Verified, at(1), at(2), r.Phone, 4
	}},
	{"ended by wrong codes", func(r *verification.Request, at func(int) time.Time) {
		r.Phase, r.ProvenAt, r.Actual, r.WrongCodes = verification.Expired, at(1), r.Phone, verification.MaxConfirmTries
		r.Hints = []verification.Hint{{Kind: verification.HintWrongCode, At: at(2)}}
	}},
	{"not sent a code", func(r *verification.Request, at func(int) time.Time) {
		r.Code = verification.CodeResult{State: verification.CodeNotSent, Reason: "payment"}
		r.Hints = []verification.Hint{{Kind: verification.HintCodeNotSent, At: at(1)}}
	}},
	{"proven by a code", func(r *verification.Request, at func(int) time.Time) {
		r.ProvenAt, r.Actual, r.Via, r.WrongCodes = at(1), r.Phone, verification.ViaCode, 2
	}},
	{"verified by a code that was sent", func(r *verification.Request, at func(int) time.Time) {
		r.Phase, r.ProvenAt, r.VerifiedAt, r.Actual, r.Via = verification.Verified, at(1), at(1), r.Phone, verification.ViaCode
		r.Code = verification.CodeResult{State: verification.CodeSent}
	}},
	{"verified by an echo", func(r *verification.Request, at func(int) time.Time) {
		r.Phase, r.VerifiedAt, r.Actual, r.Assurance = verification.Verified, at(1), r.Phone, verification.AssuranceEcho
	}},
	{"verified by the other messenger", func(r *verification.Request, at func(int) time.Time) {
		r.Phase, r.VerifiedAt, r.Actual, r.VerifiedBy = verification.Verified, at(1), r.Phone, verification.WhatsApp
	}},
	{"verified without an event", func(r *verification.Request, at func(int) time.Time) {
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, at(1), r.Phone
	}},
	{"verified by a shared contact in another form", func(r *verification.Request, at func(int) time.Time) {
		r.Contacts = []verification.Contact{{Binding: "b1", BoundAt: at(1)}, {Binding: "b2", BoundAt: at(2)}}
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, at(3), mustNumber("+5511987654321")
		r.Assurance = verification.AssuranceSharedContact
		r.Delivery.NextAttemptAt = at(4)
	}},
	{"between two attempts", func(r *verification.Request, at func(int) time.Time) {
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, at(1), r.Phone
		r.Delivery = verification.Delivery{
			Attempts: 3, NextAttemptAt: at(300), LastAttemptAt: at(2), LastStatusCode: 503, LastReason: "status", ExtraFrom: at(200),
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
	{"due again by a redelivery", func(r *verification.Request, at func(int) time.Time) {
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, at(1), r.Phone
		r.Delivery, r.Redelivered = verification.Delivery{NextAttemptAt: at(2)}, r.ID+"/again"
	}},
	{"expired", func(r *verification.Request, _ func(int) time.Time) { r.Phase = verification.Expired }},
}

func keepsState(ctx context.Context, t *trial, shape func(*verification.Request, func(int) time.Time)) {
	a, b := t.openReplica(), t.openReplica()
	n := t.newCreation()
	n.Phone, n.BodyHash, n.DisplayName = mustNumber("+551187654321"), "hash", "Ada's Bücher"
	n.ClientData = verification.ClientData{Reference: "7", Metadata: map[string]string{"cart": "3"}, Locale: "es"}
	n.Terms = verification.Terms{
		Level: verification.LevelSession, Purpose: "sign-in", Browser: "CHROME/WINDOWS", Deliver: verification.DeliverCode,
	}
	n.Creator = "0123456789abcdef"
	want := t.createRequest(ctx, a, n)
	// An odd number of microseconds, so that truncation to a coarser unit is noticed.
	shape(&want, func(n int) time.Time {
		return want.CreatedAt.Add(time.Duration(n)*time.Second + 123457*time.Microsecond)
	})

	written := t.updateRequest(ctx, a, n.ID, func(r *verification.Request, _ time.Time) error {
		version := r.Version
		*r = want
		r.Version = version
		return nil
	})
	t.Expect(written).To(equalRequest(want, ignoringVersion))
	t.Expect(t.getRequest(ctx, b, n.ID)).To(equalRequest(written))
	t.Expect(t.getRequest(ctx, a, n.ID)).To(equalRequest(written))
}

func keepsMicroseconds(ctx context.Context, t *trial) {
	s := t.openReplica()
	id := t.createRequest(ctx, s, t.newCreation()).ID
	var read, next time.Time
	written := t.updateRequest(ctx, s, id, func(r *verification.Request, now time.Time) error {
		read = now
		next = now.Add(1234567899 * time.Nanosecond).In(time.FixedZone("east", 3600))
		r.Phase, r.VerifiedAt, r.Delivery.NextAttemptAt = verification.Verified, now, next
		return nil
	})
	t.Expect(read).To(BeTemporally("==", read.Truncate(time.Microsecond)), "the store can keep its own time")
	t.Expect(written.Delivery.NextAttemptAt).To(BeTemporally("==", next.Truncate(time.Microsecond)))
	t.Expect(t.getRequest(ctx, s, id)).To(equalRequest(written), "the answer equals the stored state")
}

func returnsCopies(ctx context.Context, t *trial) {
	s := t.openReplica()
	id := t.createRequest(ctx, s, t.newCreation()).ID
	var leaked []verification.Contact
	bound := t.updateRequest(ctx, s, id, func(r *verification.Request, now time.Time) error {
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
	spoil(t.getRequest(ctx, s, id).Contacts)
	awaiting, err := s.Awaiting(ctx, "sender")
	t.Expect(err).NotTo(HaveOccurred())
	spoil(awaiting.Contacts)
	existing, err := s.Create(ctx, verification.New{ID: id}, verification.Limits{})
	t.Expect(err).NotTo(HaveOccurred())
	spoil(existing.Request.Contacts)
	seen := t.updateRequest(ctx, s, id, func(r *verification.Request, _ time.Time) error {
		spoil(r.Contacts)
		return verification.ErrUnchanged
	})
	spoil(seen.Contacts)
	t.Expect(t.getRequest(ctx, s, id).Contacts[0].Binding).To(Equal("sender"))
}

func returnsFinalCopies(ctx context.Context, t *trial) {
	s := t.openReplica()
	n := t.newKeyed()
	n.Metadata, n.OtherMethods = map[string]string{"cart": "3"}, []verification.Method{verification.WhatsApp}
	id := t.createRequest(ctx, s, n).ID
	t.updateRequest(ctx, s, id, refuseNumber)
	t.updateRequest(ctx, s, id, bindSender("sender"))
	want := t.updateRequest(ctx, s, id, verifyClaimed(false))
	// Copied here, and not by Clone, which is under test.
	want.Metadata, want.OtherMethods = maps.Clone(want.Metadata), slices.Clone(want.OtherMethods)
	want.Hints, want.Contacts = slices.Clone(want.Hints), slices.Clone(want.Contacts)
	t.harness.Settle()
	read := func(r verification.Request, err error) verification.Request {
		t.Expect(err).NotTo(HaveOccurred())
		return r
	}
	for name, way := range map[string]func() verification.Request{
		"Read":       func() verification.Request { return read(s.Read(ctx, id)) },
		"ReadFinal":  func() verification.Request { return read(s.ReadFinal(ctx, id)) },
		"ReadCached": func() verification.Request { return read(s.ReadCached(ctx, id)) },
		"Awaiting":   func() verification.Request { return read(s.Awaiting(ctx, "sender")) },
		"Create": func() verification.Request {
			created, err := s.Create(ctx, n, verification.Limits{})
			return read(created.Request, err)
		},
		"Update": func() verification.Request {
			return read(s.Update(ctx, id, func(*verification.Request, time.Time) error { return verification.ErrUnchanged }))
		},
	} {
		spoiled := way()
		t.Expect(spoiled).To(equalRequest(want), name)
		spoiled.Metadata["cart"], spoiled.OtherMethods[0] = "spoiled", "spoiled"
		spoiled.Hints[0].Kind, spoiled.Contacts[0].Binding = "SPOILED", "spoiled"
		for _, again := range []func(context.Context, string) (verification.Request, error){s.ReadFinal, s.ReadCached} {
			t.Expect(read(again(ctx, id))).To(equalRequest(want), "after a copy of %s was spoiled", name)
		}
	}
}

func keepsCurrent(ctx context.Context, t *trial) {
	stores := t.openReplicas(3)
	id := t.createRequest(ctx, stores[0], t.newCreation()).ID
	for i := range 30 {
		for _, s := range stores { // fills caches
			t.getRequest(ctx, s, id)
		}
		written := t.updateRequest(ctx, stores[i%3], id, bindSender(string(rune('a'+i%26))))
		t.Expect(t.getRequest(ctx, stores[(i+1)%3], id)).To(equalRequest(written))
		t.Expect(t.getRequest(ctx, stores[(i+2)%3], id)).To(equalRequest(written))
		t.passMoment(ctx)
	}
}

// peeksEachPhase reads before each write to fill caches. A final state may come from memory with an older delivery, but a
// change to a final state must not be missed.
func peeksEachPhase(ctx context.Context, t *trial) {
	stores := t.openReplicas(3)
	for i := range 20 {
		r := t.createRequest(ctx, stores[i%3], t.newCreation())
		for _, m := range []mutation{bindSender("sender"), verifyClaimed(true), recordFailure} {
			for _, s := range stores {
				t.peekRequest(ctx, s, r.ID)
			}
			r = t.updateRequest(ctx, stores[(i+1)%3], r.ID, m)
			for _, s := range stores {
				peeked := t.peekRequest(ctx, s, r.ID)
				if r.Phase.Final() {
					peeked.Delivery, peeked.Version, peeked.Epoch = r.Delivery, r.Version, r.Epoch
				}
				t.Expect(peeked).To(equalRequest(r))
			}
		}
	}
}

// peeksCodeResult has the result come after the end, which all caches know.
func peeksCodeResult(ctx context.Context, t *trial) {
	stores := t.openReplicas(3)
	for i, end := range []mutation{expireRequest, cancelRequest} {
		r := t.createRequest(ctx, stores[0], t.newCodeFor("key", numberOf(i)))
		t.updateRequest(ctx, stores[0], r.ID, end)
		t.harness.Settle()
		for _, s := range stores {
			t.Expect(t.peekRequest(ctx, s, r.ID).Code).To(BeZero())
		}
		r = t.updateRequest(ctx, stores[1], r.ID, func(r *verification.Request, now time.Time) error {
			return r.RecordCodeResult(verification.CodeResult{State: verification.CodeSent, Reason: "undeliverable"}, now, 0)
		})
		for _, s := range stores {
			t.Expect(t.peekRequest(ctx, s, r.ID)).To(equalRequest(r))
		}
	}
}

func peeksStored(ctx context.Context, t *trial) {
	a, b, foreign := t.openReplica(), t.openReplica(), t.harness.Open(t.project.Name()+"-2")
	expectNothing := func(s verification.Store, id string) {
		t.harness.Settle()
		for _, read := range []func(context.Context, string) (verification.Request, error){s.ReadFinal, s.ReadCached} {
			_, err := read(ctx, id)
			t.Expect(err).To(haveCode(verification.CodeNotFound))
		}
	}
	expectNothing(a, t.newID())
	for _, m := range []mutation{bindSender("sender"), verifyClaimed(true)} {
		r := t.createRequest(ctx, a, t.newCreation())
		t.updateRequest(ctx, b, r.ID, bindSender("sender"))
		t.passMoment(ctx)
		r = t.updateRequest(ctx, b, r.ID, m)
		expectNothing(foreign, r.ID)
		for range 2 {
			peeked := t.peekRequest(ctx, a, r.ID)
			t.Expect(peeked).To(equalRequest(r))
			peeked.Contacts[0].Binding = "spoiled"
		}
		t.deleteRequest(ctx, b, r.ID)
		expectNothing(a, r.ID)
		expectNothing(b, r.ID)
	}
}
