package request

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// remembering is a store whose memory is behind. It counts its calls.
type remembering struct {
	counted

	stale *verification.Request
}

func (r *remembering) Recall(string) (verification.Request, bool) {
	if r.stale == nil {
		return verification.Request{}, false
	}
	return *r.stale, true
}

func TestReconcile_asksForNothingThatItRemembers(t *testing.T) {
	w := newWorld(t)
	w.answer = answers(webhook.Delivered, 200, 0)
	w.create("a")
	pending := w.get("a")
	store := &remembering{counted{Store: w.store}, &pending}
	w.controller.Store = store
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(ttl + verification.ExpiryGrace))
	w.Expect(store.peeks + store.gets).To(BeZero())
	store.stale = nil
	w.Expect(w.reconcile(Item{ID: "a"})).To(Equal(ttl + verification.ExpiryGrace))
	w.Expect(store.peeks).To(Equal(1), "a request that is not in memory")
}

func TestReconcile_doesNothingToWhatChangedSinceItWasRemembered(t *testing.T) {
	w := newWorld(t)
	w.answer = answers(webhook.Delivered, 200, 0)
	w.create("a")
	pending := w.get("a")
	_, err := w.store.Update(t.Context(), "a", func(r *verification.Request, now time.Time) error {
		return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, true)
	})
	w.Expect(err).NotTo(HaveOccurred())
	verified := w.get("a")
	w.stepClock(ttl + verification.ExpiryGrace)
	store := &remembering{counted{Store: w.store}, &pending}
	w.controller.Store = store
	w.reconcile(Item{ID: "a"}) // to expire it
	w.Expect(w.get("a").Phase).To(Equal(verification.Verified))
	w.Expect(w.sent).To(HaveLen(1), "the current state decides")
	store.stale = &verified
	w.reconcile(Item{ID: "a"}) // to send its event
	w.Expect(w.sent).To(HaveLen(1))
	w.Expect(store.gets).To(BeNumerically(">", 0))
}
