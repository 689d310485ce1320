package request

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// staleStore is a store whose cache is behind. It counts the reads of the current state.
type staleStore struct {
	countingStore

	stale verification.Request
}

// ReadCached returns the stale state.
func (s *staleStore) ReadCached(context.Context, string) (verification.Request, error) {
	return s.stale, nil
}

func TestReconcile_readsNothingThatIsCached(t *testing.T) {
	w := newScriptedReceiver(t)
	w.answer = answers(webhook.Delivered, 200, 0)
	w.create("a")
	pending := w.get("a")
	store := &staleStore{countingStore{Store: w.store}, pending}
	w.controller.Store = store
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(ttl + verification.ExpiryGrace))
	w.Expect(store.reads).To(BeZero())
}

func TestReconcile_doesNothingToWhatChangedSinceItWasCached(t *testing.T) {
	w := newScriptedReceiver(t)
	w.answer = answers(webhook.Delivered, 200, 0)
	w.create("a")
	pending := w.get("a")
	_, err := w.store.Update(t.Context(), "a", func(r *verification.Request, now time.Time) error {
		return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
	})
	w.Expect(err).NotTo(HaveOccurred())
	verified := w.get("a")
	w.stepClock(ttl + verification.ExpiryGrace)
	store := &staleStore{countingStore{Store: w.store}, pending}
	w.controller.Store = store
	w.reconcile(Item{ID: "a"}) // to expire it
	w.Expect(w.get("a").Phase).To(Equal(verification.Verified))
	w.Expect(w.sent).To(HaveLen(1), "the current state decides")
	store.stale = verified
	w.reconcile(Item{ID: "a"}) // to send its event
	w.Expect(w.sent).To(HaveLen(1))
	w.Expect(store.reads).To(BeNumerically(">", 0))
}
