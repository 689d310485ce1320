package storetest

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func subscription() []check {
	return []check{
		{name: "tells of a change by the same instance", run: tellsOwnChange},
		{name: "tells of a change by another instance", run: tellsOthersChange},
		{name: "tells of deletion", run: tellsDeletion},
		{name: "never makes a writer wait for a subscriber", run: tellsWithoutWaiting},
		{name: "ends when it is cancelled", run: tellsNobodyWhoLeft},
	}
}

func (t *trial) told(ctx context.Context, changes <-chan struct{}) {
	ginkgo.GinkgoHelper()
	t.Eventually(changes).WithContext(ctx).WithTimeout(t.news).WithPolling(time.Millisecond).Should(Receive())
}

// toldUntil waits as a long poll does: it reads after each change, and once more before it gives up.
func (t *trial) toldUntil(ctx context.Context, s verification.Store, changes <-chan struct{}, id string, phase verification.Phase) {
	ginkgo.GinkgoHelper()
	for t.get(ctx, s, id).Phase != phase {
		t.told(ctx, changes)
	}
}

func tellsOwnChange(ctx context.Context, t *trial) {
	s := t.open()
	id := t.create(ctx, s, t.new()).ID
	t.harness.Settle()
	changes, cancel := s.Subscribe(id)
	defer cancel()
	t.update(ctx, s, id, verify(true))
	t.told(ctx, changes)
	t.toldUntil(ctx, s, changes, id, verification.Verified)
}

func tellsOthersChange(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	for range 5 {
		id := t.create(ctx, a, t.new()).ID
		t.harness.Settle()
		changes, cancel := a.Subscribe(id)
		t.update(ctx, b, id, verify(true))
		t.told(ctx, changes)
		t.toldUntil(ctx, a, changes, id, verification.Verified)
		cancel()
	}
}

func tellsDeletion(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	id := t.create(ctx, a, t.new()).ID
	t.harness.Settle()
	changes, cancel := a.Subscribe(id)
	defer cancel()
	t.remove(ctx, b, id)
	t.told(ctx, changes)
}

func tellsWithoutWaiting(ctx context.Context, t *trial) {
	s := t.open()
	id := t.create(ctx, s, t.new()).ID
	changes, cancel := s.Subscribe(id)
	defer cancel()
	for range 20 {
		t.moment(ctx)
		t.update(ctx, s, id, bind("sender"))
	}
	t.told(ctx, changes)
}

// tellsNobodyWhoLeft uses a second subscription to know when the change was told.
func tellsNobodyWhoLeft(ctx context.Context, t *trial) {
	s := t.open()
	id := t.create(ctx, s, t.new()).ID
	t.harness.Settle()
	left, leave := s.Subscribe(id)
	stayed, cancel := s.Subscribe(id)
	defer cancel()
	leave()
	leave()
	t.update(ctx, s, id, verify(true))
	t.told(ctx, stayed)
	t.Expect(left).NotTo(Receive())
}
