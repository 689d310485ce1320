package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// trial is one run of a check, with its assertions, the store under test, and its own project.
type trial struct {
	Gomega

	harness Harness
	project verification.CodeSpace
	// notifyTimeout bounds the time until subscribers at another replica are notified of a change.
	notifyTimeout time.Duration
	// waited is the total time of waits, if the clock cannot be stepped.
	waited time.Duration
}

func newTrial(g Gomega, h Harness) *trial {
	if h.Tick == 0 {
		h.Tick = 500 * time.Millisecond
	}
	if h.Advance != nil {
		h.Tick = time.Minute
	}
	if h.Settle == nil {
		h.Settle = func() {}
	}
	return &trial{Gomega: g, harness: h, project: newProject(), notifyTimeout: 30 * time.Second}
}

// newProject returns a project in a new namespace.
func newProject() verification.CodeSpace {
	return verification.NewCodeSpace("storetest-" + strings.ToLower(rand.Text()[:12]) + "/project")
}

// tooSlow is the panic value that ends a run for which the machine was too slow.
type tooSlow struct{}

// repeatIfSlow wraps a check that assumes a fast machine if the clock cannot be stepped: its operations between waits must take
// less than half a tick. A slower run that fails is inconclusive and is repeated with ticks twice as long.
func repeatIfSlow(run func(ctx context.Context, t *trial)) func(ctx context.Context, t *trial) {
	return func(ctx context.Context, t *trial) {
		if t.hasSteppedClock() {
			run(ctx, t)
			return
		}
		tick := t.harness.Tick
		for !t.runInTime(ctx, tick, run) {
			tick *= 2
		}
	}
}

// runInTime runs a check with its own project, and reports whether the result is conclusive.
func (t *trial) runInTime(ctx context.Context, tick time.Duration, run func(ctx context.Context, t *trial)) (conclusive bool) {
	began, attempt := time.Now(), &trial{harness: t.harness, project: newProject(), notifyTimeout: t.notifyTimeout}
	attempt.harness.Tick = tick
	attempt.Gomega = NewGomega(func(message string, _ ...int) {
		if time.Since(began)-attempt.waited > tick/2 && ctx.Err() == nil {
			panic(tooSlow{})
		}
		t.Expect(message).To(BeEmpty(), "the check failed in time")
	})
	defer func() {
		switch thrown := recover(); thrown.(type) {
		case nil:
		case tooSlow:
			conclusive = false
		default:
			panic(thrown)
		}
	}()
	run(ctx, attempt)
	return true
}

// openReplica returns another replica.
func (t *trial) openReplica() verification.Store { return t.harness.Open(t.project.Name()) }

func (t *trial) openReplicas(n int) []verification.Store {
	stores := make([]verification.Store, n)
	for i := range stores {
		stores[i] = t.openReplica()
	}
	return stores
}

func (t *trial) newID() string {
	code, err := t.project.NewCode(rand.Reader)
	t.Expect(err).NotTo(HaveOccurred())
	return t.project.RequestID(code)
}

// claimedNumber is the number of requests for which any number will do.
const claimedNumber = "+4915112345678"

func mustNumber(e164 string) phone.Number {
	n, err := phone.FromE164(e164)
	if err != nil {
		panic(err) // numbers in checks are constants
	}
	return n
}

func (t *trial) newCreation() verification.New {
	return verification.New{
		ID: t.newID(), Phone: mustNumber(claimedNumber), Method: verification.Telegram, TTL: 10 * time.Minute, KeyName: "backend",
	}
}

// newKeyed returns a creation with an Idempotency-Key, which can be repeated after its request is deleted.
func (t *trial) newKeyed() verification.New {
	n := t.newCreation()
	n.BodyHash = "hash"
	return n
}

// newForKey returns a creation for that key and number.
func (t *trial) newForKey(key, e164 string) verification.New {
	n := t.newCreation()
	n.KeyName, n.Phone = key, mustNumber(e164)
	return n
}

// createRequest stores a new request, after every replica has seen all earlier writes.
func (t *trial) createRequest(ctx context.Context, s verification.Store, n verification.New) verification.Request {
	ginkgo.GinkgoHelper()
	return t.expectAdmitted(ctx, s, n, verification.Limits{}).Request
}

func (t *trial) expectAdmitted(
	ctx context.Context, s verification.Store, n verification.New, limits verification.Limits,
) verification.Created {
	ginkgo.GinkgoHelper()
	t.harness.Settle()
	created, err := s.Create(ctx, n, limits)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(created.Existing).To(BeFalse(), "the id is new")
	return created
}

// expectRefused expects that a creation is refused with the code, and returns its Retry-After.
func (t *trial) expectRefused(
	ctx context.Context, s verification.Store, n verification.New, limits verification.Limits, code verification.ErrorCode,
) time.Duration {
	ginkgo.GinkgoHelper()
	t.harness.Settle()
	_, err := s.Create(ctx, n, limits)
	t.Expect(err).To(haveCode(code))
	retryAfter := retryAfter(err)
	t.Expect(retryAfter).To(BeNumerically(">", 0), "a refusal has a Retry-After")
	_, err = s.Read(ctx, n.ID)
	t.Expect(err).To(haveCode(verification.CodeNotFound), "a refused creation stores nothing")
	return retryAfter
}

func (t *trial) getRequest(ctx context.Context, s verification.Store, id string) verification.Request {
	ginkgo.GinkgoHelper()
	r, err := s.Read(ctx, id)
	t.Expect(err).NotTo(HaveOccurred())
	return r
}

func (t *trial) peekRequest(ctx context.Context, s verification.Store, id string) verification.Request {
	ginkgo.GinkgoHelper()
	r, err := s.ReadFinal(ctx, id)
	t.Expect(err).NotTo(HaveOccurred())
	return r
}

func (t *trial) updateRequest(ctx context.Context, s verification.Store, id string, m mutation) verification.Request {
	ginkgo.GinkgoHelper()
	r, err := s.Update(ctx, id, m)
	t.Expect(err).NotTo(HaveOccurred())
	return r
}

func (t *trial) deleteRequest(ctx context.Context, s verification.Store, id string) {
	ginkgo.GinkgoHelper()
	t.Expect(s.Delete(ctx, id, t.getRequest(ctx, s, id).Version)).To(Succeed())
}

func (t *trial) expectGone(ctx context.Context, s verification.Store, id string) {
	ginkgo.GinkgoHelper()
	_, err := s.Read(ctx, id)
	t.Expect(err).To(haveCode(verification.CodeNotFound))
}

// readClock reads the store clock.
func (t *trial) readClock(ctx context.Context, s verification.Store, id string) time.Time {
	ginkgo.GinkgoHelper()
	var read time.Time
	t.updateRequest(ctx, s, id, func(_ *verification.Request, now time.Time) error {
		read = now
		return verification.ErrUnchanged
	})
	return read
}

// hasSteppedClock reports whether time passes only in passTime.
func (t *trial) hasSteppedClock() bool { return t.harness.Advance != nil }

// passTime lets d pass on the store clock.
func (t *trial) passTime(ctx context.Context, d time.Duration) {
	ginkgo.GinkgoHelper()
	if t.hasSteppedClock() {
		t.harness.Advance(d)
		return
	}
	t.waited += d
	select {
	case <-time.After(d):
	case <-ctx.Done():
		t.Expect(ctx.Err()).NotTo(HaveOccurred())
	}
}

// passMoment lets enough time pass to order two events.
func (t *trial) passMoment(ctx context.Context) { t.passTime(ctx, time.Millisecond) }

// newLapsing returns a creation of a request that has lapsed after lapseRequests; a lower order is longer overdue.
func (t *trial) newLapsing(order int) verification.New {
	n := t.newCreation()
	n.TTL = time.Minute + time.Duration(order)*time.Second
	if !t.hasSteppedClock() {
		n.TTL -= time.Hour
	}
	return n
}

func (t *trial) lapseRequests() {
	if t.hasSteppedClock() {
		t.harness.Advance(time.Hour)
	}
}

func haveCode(code verification.ErrorCode) types.GomegaMatcher {
	return MatchError(&verification.Error{Code: code}, "has code "+string(code))
}

func retryAfter(err error) time.Duration {
	var refusal *verification.Error
	if !errors.As(err, &refusal) {
		return 0
	}
	return refusal.RetryAfter
}

// equalRequest matches a request in all fields that the contract covers.
func equalRequest(want verification.Request, also ...cmp.Option) types.GomegaMatcher {
	options := append([]cmp.Option{cmpopts.EquateEmpty(), cmpopts.EquateComparable(phone.Number{})}, also...)
	return BeComparableTo(want, options...)
}

// ignoringVersion ignores the version, for states that were written again.
var ignoringVersion = cmpopts.IgnoreFields(verification.Request{}, "Version")
