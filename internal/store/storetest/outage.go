package storetest

import (
	"context"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func outage() []check {
	return []check{
		{name: "does nothing for a caller whose context has ended", run: outageOfContext},
		{name: "claims nothing for a caller whose context has ended", needs: aQueue, run: outageOfClaim},
		{name: "does what it says where a context ends in the middle", run: outageMidway},
		{name: "is ready while the backend answers", run: outageReady},
		{name: "is reported as unavailable by every method", needs: anOutage, run: outageOfBackend},
		{name: "is reported as unavailable by the queue", needs: anOutage | aQueue, run: outageOfQueue},
	}
}

// calls are all methods that reach the backend, each in a form that would succeed.
func calls(s verification.Store, stored verification.Request, n verification.New) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Create": func(ctx context.Context) error {
			_, err := s.Create(ctx, n, verification.Limits{})
			return err
		},
		"Create of an id that exists": func(ctx context.Context) error {
			existing := n
			existing.ID = stored.ID
			_, err := s.Create(ctx, existing, verification.Limits{})
			return err
		},
		"Get": func(ctx context.Context) error {
			_, err := s.Get(ctx, stored.ID)
			return err
		},
		"Get of nothing": func(ctx context.Context) error {
			_, err := s.Get(ctx, n.ID)
			return err
		},
		"Peek": func(ctx context.Context) error {
			_, err := s.Peek(ctx, stored.ID) // not final, so not from memory
			return err
		},
		"Update": func(ctx context.Context) error {
			_, err := s.Update(ctx, stored.ID, verify(true))
			return err
		},
		"Delete": func(ctx context.Context) error { return s.Delete(ctx, stored.ID, stored.Version) },
		"Delete of nothing": func(ctx context.Context) error {
			return s.Delete(ctx, n.ID, stored.Version)
		},
		"Awaiting": func(ctx context.Context) error {
			_, err := s.Awaiting(ctx, "sender")
			return err
		},
		"Awaiting of nothing": func(ctx context.Context) error {
			_, err := s.Awaiting(ctx, "nobody")
			return err
		},
		"Ready": s.Ready,
	}
}

func outageOfContext(ctx context.Context, t *trial) {
	s := t.open()
	stored := t.update(ctx, s, t.create(ctx, s, t.new()).ID, bind("sender"))
	n := t.new()
	ended, end := context.WithCancel(ctx)
	end()
	for name, call := range calls(s, stored, n) {
		t.Expect(call(ended)).To(MatchError(context.Canceled), name)
	}
	t.gone(ctx, s, n.ID)
	t.Expect(t.get(ctx, s, stored.ID)).To(be(stored))
}

func outageOfClaim(ctx context.Context, t *trial) {
	s := t.open()
	r := t.due(ctx, s)
	ended, end := context.WithCancel(ctx)
	end()
	_, err := t.harness.Queue(s).Claim(ended, sending(0), plenty, longLease)
	t.Expect(err).To(MatchError(context.Canceled))
	t.Expect(ids(t.claim(ctx, s, sending(0), plenty, longLease))).To(Equal([]string{r.ID}))
}

// outageMidway ends the context where the decision is made but not written.
func outageMidway(ctx context.Context, t *trial) {
	s := t.open()
	before := t.create(ctx, s, t.new())
	midway, end := context.WithCancel(ctx)
	defer end()
	_, err := s.Update(midway, before.ID, func(r *verification.Request, now time.Time) error {
		end()
		return verify(true)(r, now)
	})
	if err == nil {
		t.Expect(t.get(ctx, s, before.ID).Phase).To(Equal(verification.Verified), "it was acknowledged")
		return
	}
	t.Expect(err).To(MatchError(context.Canceled))
	t.Expect(t.get(ctx, s, before.ID)).To(be(before))
}

func outageReady(ctx context.Context, t *trial) {
	t.Expect(t.open().Ready(ctx)).To(Succeed())
}

func outageOfBackend(ctx context.Context, t *trial) {
	s := t.open()
	stored := t.update(ctx, s, t.create(ctx, s, t.new()).ID, bind("sender"))
	n := t.new()
	repair := t.harness.Break()
	for name, call := range calls(s, stored, n) {
		err := call(ctx)
		t.Expect(err).To(haveCode(verification.CodeStoreUnavailable), name)
		t.Expect(retryAfter(err)).To(BeNumerically(">", 0), name)
	}
	repair()
	t.Eventually(s.Ready).WithContext(ctx).WithTimeout(patience / 2).Should(Succeed())
	t.gone(ctx, s, n.ID)
	t.Expect(t.get(ctx, s, stored.ID)).To(be(stored))
	t.Expect(s.Awaiting(ctx, "sender")).To(be(stored))
}

func outageOfQueue(ctx context.Context, t *trial) {
	s := t.open()
	r := t.due(ctx, s)
	repair := t.harness.Break()
	_, err := t.harness.Queue(s).Claim(ctx, sending(0), plenty, longLease)
	t.Expect(err).To(haveCode(verification.CodeStoreUnavailable))
	repair()
	t.Eventually(s.Ready).WithContext(ctx).WithTimeout(patience / 2).Should(Succeed())
	t.Expect(ids(t.claim(ctx, s, sending(0), plenty, longLease))).To(Equal([]string{r.ID}))
}
