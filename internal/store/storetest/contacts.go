package storetest

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func contactChecks() []check {
	return []check{
		{name: "map several senders to one request", run: contactsOfOne},
		{name: "map a sender to the request they were last bound to", run: contactsLatest},
		{name: "never restore an earlier request after the later one is final", run: contactsFinal},
		{name: "never restore an earlier request after the later one is deleted", run: contactsDeleted},
		{name: "drop the oldest beyond eight", run: contactsOverflow},
		{name: "return the current state", run: contactsCurrent},
		{name: "keep what a sender was asked for two requests, unless that is the contact", run: contactsOfEchoes},
	}
}

// expectAwaiting expects every replica to map the sender to that request.
func (t *trial) expectAwaiting(ctx context.Context, binding string, want verification.Request) {
	ginkgo.GinkgoHelper()
	for _, s := range t.openReplicas(2) {
		got, err := s.Awaiting(ctx, binding)
		t.Expect(err).NotTo(HaveOccurred(), binding)
		t.Expect(got.ID).To(Equal(want.ID), "the request of %s", binding)
	}
}

func (t *trial) expectNotAwaiting(ctx context.Context, binding string) {
	ginkgo.GinkgoHelper()
	for _, s := range t.openReplicas(2) {
		_, err := s.Awaiting(ctx, binding)
		t.Expect(err).To(haveCode(verification.CodeNotFound), binding)
	}
}

// bindLater binds a sender, later than all earlier events.
func (t *trial) bindLater(ctx context.Context, s verification.Store, id, binding string) verification.Request {
	ginkgo.GinkgoHelper()
	t.passMoment(ctx)
	return t.updateRequest(ctx, s, id, bindSender(binding))
}

func contactsOfOne(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	one, other := t.createRequest(ctx, a, t.newCreation()), t.createRequest(ctx, b, t.newCreation())
	t.bindLater(ctx, a, one.ID, "anna")
	t.bindLater(ctx, b, one.ID, "bruno")
	t.bindLater(ctx, a, other.ID, "carla")
	t.expectAwaiting(ctx, "anna", one)
	t.expectAwaiting(ctx, "bruno", one)
	t.expectAwaiting(ctx, "carla", other)
	t.expectNotAwaiting(ctx, "dora")
	t.Expect(t.getRequest(ctx, a, one.ID).Contacts).To(HaveLen(2))
}

func contactsLatest(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	early, late := t.createRequest(ctx, a, t.newCreation()), t.createRequest(ctx, b, t.newCreation())
	t.bindLater(ctx, a, early.ID, "anna")
	t.expectAwaiting(ctx, "anna", early)
	t.bindLater(ctx, b, late.ID, "anna")
	t.expectAwaiting(ctx, "anna", late)
	t.bindLater(ctx, a, early.ID, "bruno")
	t.expectAwaiting(ctx, "anna", late) // a write to the earlier request changes nothing
	t.bindLater(ctx, a, early.ID, "anna")
	t.expectAwaiting(ctx, "anna", early) // the latest binding
	t.bindLater(ctx, b, early.ID, "anna")
	t.expectAwaiting(ctx, "anna", early)
	t.bindLater(ctx, b, late.ID, "anna")
	t.expectAwaiting(ctx, "anna", late)
}

func contactsFinal(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	early, late := t.createRequest(ctx, a, t.newCreation()), t.createRequest(ctx, a, t.newCreation())
	t.bindLater(ctx, a, early.ID, "anna")
	t.bindLater(ctx, b, late.ID, "anna")
	final := t.updateRequest(ctx, a, late.ID, verifyClaimed(false))
	t.expectAwaiting(ctx, "anna", late)
	t.bindLater(ctx, b, early.ID, "bruno")
	t.expectAwaiting(ctx, "anna", late)
	t.Expect(b.Awaiting(ctx, "anna")).To(equalRequest(final))
}

func contactsDeleted(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	early, late := t.createRequest(ctx, a, t.newCreation()), t.createRequest(ctx, a, t.newCreation())
	t.bindLater(ctx, a, early.ID, "anna")
	t.bindLater(ctx, b, late.ID, "anna")
	t.deleteRequest(ctx, a, late.ID)
	t.expectNotAwaiting(ctx, "anna")
	t.bindLater(ctx, b, early.ID, "bruno")
	t.expectNotAwaiting(ctx, "anna")
	t.bindLater(ctx, b, early.ID, "anna")
	t.expectAwaiting(ctx, "anna", early)
	t.deleteRequest(ctx, b, early.ID)
	t.expectNotAwaiting(ctx, "anna")
	t.expectNotAwaiting(ctx, "bruno")
}

func contactsOverflow(ctx context.Context, t *trial) {
	const senders = verification.MaxContacts + 3
	a, b := t.openReplica(), t.openReplica()
	before, r := t.createRequest(ctx, a, t.newCreation()), t.createRequest(ctx, a, t.newCreation())
	sender := func(i int) string { return fmt.Sprintf("sender-%d", i) }
	t.bindLater(ctx, a, before.ID, sender(0))
	for i := range senders {
		t.bindLater(ctx, []verification.Store{a, b}[i%2], r.ID, sender(i))
	}
	for i := range senders {
		if i < senders-verification.MaxContacts {
			t.expectNotAwaiting(ctx, sender(i)) // sender 0 does not fall back to the earlier request
			continue
		}
		t.expectAwaiting(ctx, sender(i), r)
	}
}

func contactsCurrent(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	id := t.createRequest(ctx, a, t.newCreation()).ID
	t.Expect(b.Awaiting(ctx, "anna")).Error().To(haveCode(verification.CodeNotFound))
	for range 10 {
		written := t.bindLater(ctx, a, id, "anna")
		t.Expect(b.Awaiting(ctx, "anna")).To(equalRequest(written))
	}
	written := t.updateRequest(ctx, a, id, verifyClaimed(true))
	t.Expect(b.Awaiting(ctx, "anna")).To(equalRequest(written))
}

// contactsOfEchoes asks for two requests of one sender whose number is hidden. Each answer names its request, so both go on.
func contactsOfEchoes(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	early, late := t.createRequest(ctx, a, t.newCreation()), t.createRequest(ctx, b, t.newCreation())
	for i, id := range []string{early.ID, late.ID} {
		t.passMoment(ctx)
		t.updateRequest(ctx, []verification.Store{a, b}[i], id, askByEcho("anna", 0))
	}
	for _, id := range []string{early.ID, late.ID} {
		r := t.getRequest(ctx, a, id)
		echo, found := r.EchoOf([]string{"anna"})
		t.Expect(found).To(BeTrue(), "the echo of %s", id)
		t.Expect(echo.Nonce).NotTo(BeEmpty())
	}
	t.expectNotAwaiting(ctx, "anna")
	t.bindLater(ctx, a, early.ID, "bruno")
	t.bindLater(ctx, b, late.ID, "bruno")
	t.expectAwaiting(ctx, "bruno", late)
	r := t.getRequest(ctx, b, early.ID)
	_, found := r.EchoOf([]string{"anna"})
	t.Expect(found).To(BeTrue(), "only the binding of the contact ends")
}
