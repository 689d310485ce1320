package storetest

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func subscriptionChecks() []check {
	return []check{
		{name: "notifies of a change by the same instance", run: notifiesOwnChange},
		{name: "notifies of a change by another instance", run: notifiesOthersChange},
		{name: "notifies of deletion", run: notifiesDeletion},
		{name: "never makes a writer wait for a subscriber", run: notifiesWithoutWaiting},
		{name: "ends when it is cancelled", run: notifiesNoneAfterCancel},
	}
}

func (t *trial) expectNotified(ctx context.Context, changes <-chan struct{}) {
	ginkgo.GinkgoHelper()
	t.Eventually(changes).WithContext(ctx).WithTimeout(t.notifyTimeout).WithPolling(time.Millisecond).Should(Receive())
}

// waitForPhase waits as a long poll does: it reads, and reads again after each change.
func (t *trial) waitForPhase(ctx context.Context, s verification.Store, changes <-chan struct{}, id string, phase verification.Phase) {
	ginkgo.GinkgoHelper()
	for t.getRequest(ctx, s, id).Phase != phase {
		t.expectNotified(ctx, changes)
	}
}

func notifiesOwnChange(ctx context.Context, t *trial) {
	s := t.openReplica()
	id := t.createRequest(ctx, s, t.newCreation()).ID
	t.harness.Settle()
	changes, cancel := s.Subscribe(id)
	defer cancel()
	t.updateRequest(ctx, s, id, verifyClaimed(true))
	t.expectNotified(ctx, changes)
	t.waitForPhase(ctx, s, changes, id, verification.Verified)
}

func notifiesOthersChange(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	for range 5 {
		id := t.createRequest(ctx, a, t.newCreation()).ID
		t.harness.Settle()
		changes, cancel := a.Subscribe(id)
		t.updateRequest(ctx, b, id, bindSender("sender")) // its hint ends the wait of a client, as a status does
		t.expectNotified(ctx, changes)
		t.updateRequest(ctx, b, id, verifyClaimed(true))
		t.expectNotified(ctx, changes)
		t.waitForPhase(ctx, a, changes, id, verification.Verified)
		cancel()
	}
}

func notifiesDeletion(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	id := t.createRequest(ctx, a, t.newCreation()).ID
	t.harness.Settle()
	changes, cancel := a.Subscribe(id)
	defer cancel()
	t.deleteRequest(ctx, b, id)
	t.expectNotified(ctx, changes)
}

func notifiesWithoutWaiting(ctx context.Context, t *trial) {
	s := t.openReplica()
	id := t.createRequest(ctx, s, t.newCreation()).ID
	changes, cancel := s.Subscribe(id)
	defer cancel()
	for range 20 {
		t.passMoment(ctx)
		t.updateRequest(ctx, s, id, bindSender("sender"))
	}
	t.expectNotified(ctx, changes)
}

// notifiesNoneAfterCancel uses a second subscription to detect the notification of the change.
func notifiesNoneAfterCancel(ctx context.Context, t *trial) {
	s := t.openReplica()
	id := t.createRequest(ctx, s, t.newCreation()).ID
	t.harness.Settle()
	cancelled, cancelFirst := s.Subscribe(id)
	active, cancel := s.Subscribe(id)
	defer cancel()
	cancelFirst()
	cancelFirst()
	t.updateRequest(ctx, s, id, verifyClaimed(true))
	t.expectNotified(ctx, active)
	t.Expect(cancelled).NotTo(Receive())
}
