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

// trial is one run of a check: assertions, the store under test, and a project that nobody else uses.
type trial struct {
	Gomega

	harness Harness
	project verification.Project
	// news bounds how long the word of a change may take to another replica.
	news time.Duration
	// passed is how long it has waited, where the clock cannot be stepped.
	passed time.Duration
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
	return &trial{Gomega: g, harness: h, project: newProject(), news: 30 * time.Second}
}

// newProject returns a project in a namespace that was never used.
func newProject() verification.Project {
	return verification.NewProject("storetest-" + strings.ToLower(rand.Text()[:12]) + "/project")
}

// tooLate is what ends a try that the machine was too slow for.
type tooLate struct{}

// timely lets a check count on the machine where nobody can step the clock: all that it does between its waits is to take
// less than half a tick. A failure after more than that tells nothing; the check is run again, in ticks twice as long.
func timely(run func(ctx context.Context, t *trial)) func(ctx context.Context, t *trial) {
	return func(ctx context.Context, t *trial) {
		if t.stepped() {
			run(ctx, t)
			return
		}
		tick := t.harness.Tick
		for !t.inTime(ctx, tick, run) {
			tick *= 2
		}
	}
}

// inTime runs a check with a project of its own, and tells whether what it found counts.
func (t *trial) inTime(ctx context.Context, tick time.Duration, run func(ctx context.Context, t *trial)) (counts bool) {
	began, try := time.Now(), &trial{harness: t.harness, project: newProject(), news: t.news}
	try.harness.Tick = tick
	try.Gomega = NewGomega(func(message string, _ ...int) {
		if time.Since(began)-try.passed > tick/2 && ctx.Err() == nil {
			panic(tooLate{})
		}
		t.Expect(message).To(BeEmpty(), "it failed in time")
	})
	defer func() {
		switch thrown := recover(); thrown.(type) {
		case nil:
		case tooLate:
			counts = false
		default:
			panic(thrown)
		}
	}()
	run(ctx, try)
	return true
}

// open returns another replica.
func (t *trial) open() verification.Store { return t.harness.Open(t.project.Name()) }

func (t *trial) replicas(n int) []verification.Store {
	stores := make([]verification.Store, n)
	for i := range stores {
		stores[i] = t.open()
	}
	return stores
}

func (t *trial) newID() string {
	code, err := t.project.NewCode(rand.Reader)
	t.Expect(err).NotTo(HaveOccurred())
	return t.project.RequestID(code)
}

// claimed is the number of requests whose number does not matter.
const claimed = "+4915112345678"

func number(e164 string) phone.Number {
	n, err := phone.FromE164(e164)
	if err != nil {
		panic(err) // a number in a check is a constant
	}
	return n
}

func (t *trial) new() verification.New {
	return verification.New{
		ID: t.newID(), Phone: number(claimed), Method: verification.Telegram, TTL: 10 * time.Minute, KeyName: "backend",
	}
}

// keyed returns a creation with an Idempotency-Key: the same one can come again after its request is deleted.
func (t *trial) keyed() verification.New {
	n := t.new()
	n.BodyHash = "hash"
	return n
}

// with returns a creation for that key and number.
func (t *trial) with(key, e164 string) verification.New {
	n := t.new()
	n.KeyName, n.Phone = key, number(e164)
	return n
}

// create stores a new request, after every replica knows of what was written before.
func (t *trial) create(ctx context.Context, s verification.Store, n verification.New) verification.Request {
	ginkgo.GinkgoHelper()
	return t.admitted(ctx, s, n, verification.Limits{}).Request
}

func (t *trial) admitted(
	ctx context.Context, s verification.Store, n verification.New, limits verification.Limits,
) verification.Created {
	ginkgo.GinkgoHelper()
	t.harness.Settle()
	created, err := s.Create(ctx, n, limits)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(created.Existing).To(BeFalse(), "the id is new")
	return created
}

// refused expects that a creation is refused with the code, and returns its Retry-After.
func (t *trial) refused(
	ctx context.Context, s verification.Store, n verification.New, limits verification.Limits, code verification.ErrorCode,
) time.Duration {
	ginkgo.GinkgoHelper()
	t.harness.Settle()
	_, err := s.Create(ctx, n, limits)
	t.Expect(err).To(haveCode(code))
	retryAfter := retryAfter(err)
	t.Expect(retryAfter).To(BeNumerically(">", 0), "a refusal says when to come back")
	_, err = s.Get(ctx, n.ID)
	t.Expect(err).To(haveCode(verification.CodeNotFound), "a refused creation stores nothing")
	return retryAfter
}

func (t *trial) get(ctx context.Context, s verification.Store, id string) verification.Request {
	ginkgo.GinkgoHelper()
	r, err := s.Get(ctx, id)
	t.Expect(err).NotTo(HaveOccurred())
	return r
}

func (t *trial) peek(ctx context.Context, s verification.Store, id string) verification.Request {
	ginkgo.GinkgoHelper()
	r, err := s.Peek(ctx, id)
	t.Expect(err).NotTo(HaveOccurred())
	return r
}

func (t *trial) update(ctx context.Context, s verification.Store, id string, m mutation) verification.Request {
	ginkgo.GinkgoHelper()
	r, err := s.Update(ctx, id, m)
	t.Expect(err).NotTo(HaveOccurred())
	return r
}

func (t *trial) remove(ctx context.Context, s verification.Store, id string) {
	ginkgo.GinkgoHelper()
	t.Expect(s.Delete(ctx, id, t.get(ctx, s, id).Version)).To(Succeed())
}

func (t *trial) gone(ctx context.Context, s verification.Store, id string) {
	ginkgo.GinkgoHelper()
	_, err := s.Get(ctx, id)
	t.Expect(err).To(haveCode(verification.CodeNotFound))
}

// clock reads the clock that decides for the store.
func (t *trial) clock(ctx context.Context, s verification.Store, id string) time.Time {
	ginkgo.GinkgoHelper()
	var read time.Time
	t.update(ctx, s, id, func(_ *verification.Request, now time.Time) error {
		read = now
		return verification.ErrUnchanged
	})
	return read
}

// stepped tells whether time passes only when a check lets it.
func (t *trial) stepped() bool { return t.harness.Advance != nil }

// pass lets d pass on the store's clock.
func (t *trial) pass(ctx context.Context, d time.Duration) {
	ginkgo.GinkgoHelper()
	if t.stepped() {
		t.harness.Advance(d)
		return
	}
	t.passed += d
	select {
	case <-time.After(d):
	case <-ctx.Done():
		t.Expect(ctx.Err()).NotTo(HaveOccurred())
	}
}

// moment lets the least time pass that puts two events in order.
func (t *trial) moment(ctx context.Context) { t.pass(ctx, time.Millisecond) }

// lapsing returns a creation of a request that has lapsed after lapse; those of a lower order are longer overdue.
func (t *trial) lapsing(order int) verification.New {
	n := t.new()
	n.TTL = time.Minute + time.Duration(order)*time.Second
	if !t.stepped() {
		n.TTL -= time.Hour
	}
	return n
}

func (t *trial) lapse() {
	if t.stepped() {
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

// be matches a request in all that the contract keeps.
func be(want verification.Request, also ...cmp.Option) types.GomegaMatcher {
	options := append([]cmp.Option{cmpopts.EquateEmpty(), cmpopts.EquateComparable(phone.Number{})}, also...)
	return BeComparableTo(want, options...)
}

// ignoringVersion is for states that were written anew.
var ignoringVersion = cmpopts.IgnoreFields(verification.Request{}, "Version")
