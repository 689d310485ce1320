package storetest

import (
	"context"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func outageChecks() []check {
	return []check{
		{name: "does nothing for a caller whose context has ended", run: outageOfContext},
		{name: "claims nothing for a caller whose context has ended", needs: Queue, run: outageOfClaim},
		{name: "reports the actual outcome if a context ends midway", run: outageMidway},
		{name: "is ready while the backend answers", run: outageReady},
		{name: "is reported as unavailable by every method", run: outageOfBackend},
		{name: "is reported as unavailable by the queue", needs: Queue, run: outageOfQueue},
	}
}

// backendCalls returns calls of all methods that reach the backend, with arguments that would succeed.
func backendCalls(s verification.Store, stored verification.Request, n verification.New) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Create": func(ctx context.Context) error { return errorOf(s.Create(ctx, n, verification.Limits{})) },
		"Create of an id that exists": func(ctx context.Context) error {
			existing := n
			existing.ID = stored.ID
			return errorOf(s.Create(ctx, existing, verification.Limits{}))
		},
		"Read":                 func(ctx context.Context) error { return errorOf(s.Read(ctx, stored.ID)) },
		"Get of an unknown id": func(ctx context.Context) error { return errorOf(s.Read(ctx, n.ID)) },
		"ReadFinal":            func(ctx context.Context) error { return errorOf(s.ReadFinal(ctx, stored.ID)) }, // not final, so not from memory
		"Update":               func(ctx context.Context) error { return errorOf(s.Update(ctx, stored.ID, verifyClaimed(true))) },
		"Delete":               func(ctx context.Context) error { return s.Delete(ctx, stored.ID, stored.Version) },
		"Delete of an unknown id": func(ctx context.Context) error {
			return s.Delete(ctx, n.ID, stored.Version)
		},
		"Awaiting":                      func(ctx context.Context) error { return errorOf(s.Awaiting(ctx, "sender")) },
		"Awaiting of an unknown sender": func(ctx context.Context) error { return errorOf(s.Awaiting(ctx, "unbound")) },
		"Ready":                         s.Ready,
	}
}

// errorOf drops the result of a call.
func errorOf[T any](_ T, err error) error { return err }

func outageOfContext(ctx context.Context, t *trial) {
	s := t.openReplica()
	stored := t.updateRequest(ctx, s, t.createRequest(ctx, s, t.newCreation()).ID, bindSender("sender"))
	n := t.newCreation()
	ended, end := context.WithCancel(ctx)
	end()
	for name, call := range backendCalls(s, stored, n) {
		t.Expect(call(ended)).To(MatchError(context.Canceled), name)
	}
	t.expectGone(ctx, s, n.ID)
	t.Expect(t.getRequest(ctx, s, stored.ID)).To(equalRequest(stored))
}

func outageOfClaim(ctx context.Context, t *trial) {
	s := t.openReplica()
	r := t.createDue(ctx, s)
	ended, end := context.WithCancel(ctx)
	end()
	_, err := t.harness.Queue(s).Claim(ended, sendingPolicy(0), manyRequests, longLease)
	t.Expect(err).To(MatchError(context.Canceled))
	t.Expect(requestIDs(t.claimWork(ctx, s, sendingPolicy(0), manyRequests, longLease))).To(Equal([]string{r.ID}))
}

// outageMidway ends the context after the decision and before the write.
func outageMidway(ctx context.Context, t *trial) {
	s := t.openReplica()
	before := t.createRequest(ctx, s, t.newCreation())
	midway, end := context.WithCancel(ctx)
	defer end()
	_, err := s.Update(midway, before.ID, func(r *verification.Request, now time.Time) error {
		end()
		return verifyClaimed(true)(r, now)
	})
	if err == nil {
		t.Expect(t.getRequest(ctx, s, before.ID).Phase).To(Equal(verification.Verified), "the write was acknowledged")
		return
	}
	t.Expect(err).To(MatchError(context.Canceled))
	t.Expect(t.getRequest(ctx, s, before.ID)).To(equalRequest(before))
}

func outageReady(ctx context.Context, t *trial) {
	t.Expect(t.openReplica().Ready(ctx)).To(Succeed())
}

func outageOfBackend(ctx context.Context, t *trial) {
	s := t.openReplica()
	stored := t.updateRequest(ctx, s, t.createRequest(ctx, s, t.newCreation()).ID, bindSender("sender"))
	n := t.newCreation()
	repair := t.harness.Break()
	for name, call := range backendCalls(s, stored, n) {
		err := call(ctx)
		t.Expect(err).To(haveCode(verification.CodeStoreUnavailable), name)
		t.Expect(retryAfter(err)).To(BeNumerically(">", 0), name)
	}
	repair()
	t.Eventually(s.Ready).WithContext(ctx).WithTimeout(specTimeout / 2).Should(Succeed())
	t.expectGone(ctx, s, n.ID)
	t.Expect(t.getRequest(ctx, s, stored.ID)).To(equalRequest(stored))
	t.Expect(s.Awaiting(ctx, "sender")).To(equalRequest(stored))
}

func outageOfQueue(ctx context.Context, t *trial) {
	s := t.openReplica()
	r := t.createDue(ctx, s)
	repair := t.harness.Break()
	_, err := t.harness.Queue(s).Claim(ctx, sendingPolicy(0), manyRequests, longLease)
	t.Expect(err).To(haveCode(verification.CodeStoreUnavailable))
	repair()
	t.Eventually(s.Ready).WithContext(ctx).WithTimeout(specTimeout / 2).Should(Succeed())
	t.Expect(requestIDs(t.claimWork(ctx, s, sendingPolicy(0), manyRequests, longLease))).To(Equal([]string{r.ID}))
}
