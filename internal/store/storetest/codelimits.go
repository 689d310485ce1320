package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/verification/codesender"
)

func codeLimitChecks() []check {
	return []check{
		{name: "send a number one code a minute, three an hour and five a day, in any of its forms", needs: SteppedClock, run: codesOfNumber},
		{name: "send for a key what its share of a day and of an hour allows", needs: SteppedClock, run: codesOfKey},
		{name: "send no more codes in a day than the project allows, whatever its keys are called", needs: SteppedClock, run: codesOfProject},
		{name: "count the codes of each messenger apart, and those of a number together", needs: SteppedClock, run: codesOfMessengers},
		{name: "send no code to a number whose owner declined", run: codesDeclined},
		{name: "send no more codes where many are started at once", run: codesRaced},
		{name: "keep a request with a code for a day, whatever became of it", needs: Cap | SteppedClock, run: codesKept},
		{name: "delete a request with a code a day after its creation", needs: Queue | SteppedClock, run: codesDeleted},
		{name: "delete a delivery a day after its creation, whatever the retention is", needs: Queue | SteppedClock, run: deliveriesDeleted},
		{name: "count on after a flood of links and a restart of all replicas", needs: SteppedClock, run: codesFlooded},
		{name: "report how many codes each key started", run: countsCodes},
		{name: "keep a delivery as EXPIRED from its start, count it as a code, and list it only when asked", run: keepsDelivery},
	}
}

// newCodeFor returns a creation for that key of a request whose number gets a code.
func (t *trial) newCodeFor(key, e164 string) verification.New {
	n := t.newForKey(key, e164)
	n.Method, n.Creator = verification.WhatsApp, fmt.Sprintf("%016x", rand.Uint64()) //nolint:gosec // no secret
	n.Terms = verification.Terms{Level: verification.LevelSession, Deliver: verification.DeliverCode}
	return n
}

// numberOf returns a number of its own for each i.
func numberOf(i int) string { return fmt.Sprintf("+49151%08d", 20_000_000+i) }

func codesPerKey(day, hour int) verification.Limits {
	return verification.Limits{Codes: verification.CodeLimits{
		PerDay: verification.Rate{Requests: day, Period: 24 * time.Hour}, PerHour: verification.Rate{Requests: hour, Period: time.Hour},
	}}
}

// expectCodesLimited expects that a code is refused by that limit, and returns its Retry-After.
func (t *trial) expectCodesLimited(
	ctx context.Context, s verification.Store, n verification.New, limits verification.Limits, limit string,
) time.Duration {
	ginkgo.GinkgoHelper()
	t.harness.Settle()
	_, err := s.Create(ctx, n, limits)
	var refusal *verification.Error
	t.Expect(errors.As(err, &refusal)).To(BeTrue(), "refused by %s", limit)
	t.Expect(refusal).To(And(HaveField("Code", verification.CodeCodesLimited), HaveField("Limit", limit)))
	return refusal.RetryAfter
}

// codesOfNumber starts each code with another key. The places in its list are the minutes of the first five.
func codesOfNumber(ctx context.Context, t *trial) {
	stores := t.openReplicas(2)
	forms := [...]string{"+5511987654321", "+551187654321"}
	code := func(i int) verification.New { return t.newCodeFor(fmt.Sprint("key-", i), forms[i%2]) }
	limited := func(i int) time.Duration {
		ginkgo.GinkgoHelper()
		return t.expectCodesLimited(ctx, stores[i%2], code(i), verification.Limits{}, verification.LimitCodeNumber)
	}
	minute := 0
	for i, at := range []int{0, 1, 2, 60, 120} {
		t.passTime(ctx, time.Duration(at-minute)*time.Minute)
		t.expectAdmitted(ctx, stores[i%2], code(i), verification.Limits{})
		minute = at
		switch at {
		case 0:
			t.passTime(ctx, time.Minute-time.Microsecond)
			t.Expect(limited(1)).To(Equal(time.Microsecond), "a minute later")
			t.passTime(ctx, time.Microsecond)
			minute = 1
		case 2:
			t.passTime(ctx, time.Minute)
			t.Expect(limited(0)).To(Equal(57*time.Minute), "three in an hour")
			minute = 3
		}
	}
	t.passTime(ctx, time.Hour)
	t.Expect(limited(1)).To(Equal(21*time.Hour), "five in a day")
	t.expectAdmitted(ctx, stores[0], t.newForKey("key-0", forms[0]), verification.Limits{}) // a link
	t.expectAdmitted(ctx, stores[1], t.newCodeFor("key-0", numberOf(0)), verification.Limits{})
	t.expectAdmitted(ctx, t.harness.Open(newProject().Name()), code(0), verification.Limits{})
	t.passTime(ctx, 21*time.Hour-time.Microsecond)
	t.Expect(limited(0)).To(Equal(time.Microsecond))
	t.passTime(ctx, time.Microsecond)
	t.expectAdmitted(ctx, stores[1], code(1), verification.Limits{})
}

func codesOfKey(ctx context.Context, t *trial) {
	stores := t.openReplicas(2)
	limits := codesPerKey(6, 2)
	started := 0
	start := func(key string) {
		ginkgo.GinkgoHelper()
		started++
		t.expectAdmitted(ctx, stores[started%2], t.newCodeFor(key, numberOf(started)), limits)
	}
	limited := func() time.Duration {
		ginkgo.GinkgoHelper()
		return t.expectCodesLimited(ctx, stores[0], t.newCodeFor("one", numberOf(0)), limits, verification.LimitCodes)
	}
	start("one")
	for range 3 { // what another limit refused does not count
		t.expectCodesLimited(ctx, stores[1], t.newCodeFor("one", numberOf(1)), limits, verification.LimitCodeNumber)
	}
	for hour := range 3 {
		for range min(2, 1+hour) {
			start("one")
		}
		if hour < 2 {
			t.Expect(limited()).To(Equal(time.Hour), "a part of the share in an hour")
		}
		t.passTime(ctx, time.Hour)
	}
	t.Expect(limited()).To(Equal(21*time.Hour), "the share of a day")
	t.Expect(t.expectCodesLimited(ctx, stores[1], t.newCodeFor("one", numberOf(0)), codesPerKey(4, 4), verification.LimitCodes)).
		To(Equal(22*time.Hour), "a lower share counts at once")
	start("two")
	t.expectAdmitted(ctx, stores[0], t.newForKey("one", numberOf(0)), limits) // a link
	test := t.newCodeFor("one", testNumberAtOnce)
	test.Test = true
	t.expectAdmitted(ctx, stores[0], test, verification.Limits{})
	start("two")
	t.passTime(ctx, 21*time.Hour)
	start("one")
}

// codesOfMessengers uses up what one messenger may send, and then what a number may get.
func codesOfMessengers(ctx context.Context, t *trial) {
	stores := t.openReplicas(2)
	day := func(n int) verification.Rate { return verification.Rate{Requests: n, Period: 24 * time.Hour} }
	for _, limits := range []verification.Limits{
		{Codes: verification.CodeLimits{PerDay: day(2)}, GatewayCodes: verification.CodeLimits{PerDay: day(1)}},
		{Codes: verification.CodeLimits{Project: day(2)}, GatewayCodes: verification.CodeLimits{Project: day(1)}},
	} {
		codeBy := func(m verification.Method, number int) verification.New {
			n := t.newCodeFor("one", numberOf(number))
			n.Method = m
			return n
		}
		t.expectAdmitted(ctx, stores[0], codeBy(verification.Telegram, 1), limits)
		t.expectCodesLimited(ctx, stores[1], codeBy(verification.Telegram, 2), limits, verification.LimitCodes)
		t.expectAdmitted(ctx, stores[1], codeBy(verification.WhatsApp, 2), limits)
		again := codeBy(verification.WhatsApp, 1)
		t.Expect(t.expectCodesLimited(ctx, stores[0], again, limits, verification.LimitCodeNumber)).To(Equal(time.Minute))
		t.passTime(ctx, time.Minute)
		t.expectAdmitted(ctx, stores[0], codeBy(verification.WhatsApp, 1), limits)
		t.expectCodesLimited(ctx, stores[1], codeBy(verification.WhatsApp, 3), limits, verification.LimitCodes)
		t.passTime(ctx, 24*time.Hour)
	}
}

// codesOfProject has a key renamed, which then has a share of its own.
func codesOfProject(ctx context.Context, t *trial) {
	stores := t.openReplicas(2)
	limits := codesPerKey(3, 3)
	limits.Codes.Project = verification.Rate{Requests: 4, Period: 24 * time.Hour}
	for i, key := range []string{"one", "one", "one", "renamed"} {
		t.expectAdmitted(ctx, stores[i%2], t.newCodeFor(key, numberOf(i)), limits)
		t.passTime(ctx, time.Hour)
	}
	for i, s := range append(stores, t.openReplica()) {
		t.Expect(t.expectCodesLimited(ctx, s, t.newCodeFor(fmt.Sprint("key-", i), numberOf(9)), limits, verification.LimitCodes)).
			To(Equal(20 * time.Hour))
	}
	t.expectAdmitted(ctx, stores[0], t.newForKey("renamed", numberOf(9)), limits) // a link
	t.passTime(ctx, 20*time.Hour)
	t.expectAdmitted(ctx, stores[1], t.newCodeFor("renamed", numberOf(9)), limits)
}

// codesDeclined has the owner of a number answer "Not me" to a link, in a project whose links need not wait for that.
func codesDeclined(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	t.createDeclined(ctx, a, "+5511987654321")
	for i, s := range []verification.Store{a, b, t.openReplica()} {
		for _, limits := range []verification.Limits{{}, coolingDown(time.Minute)} {
			wait := t.expectCodesLimited(ctx, s, t.newCodeFor(fmt.Sprint("key-", i), "+551187654321"), limits, verification.LimitCodeNumber)
			t.Expect(wait).To(And(BeNumerically(">", verification.CodeKept-time.Hour), BeNumerically("<=", verification.CodeKept)))
		}
	}
	longer := coolingDown(2 * verification.CodeKept)
	wait := t.expectCodesLimited(ctx, b, t.newCodeFor("key", "+5511987654321"), longer, verification.LimitCodeNumber)
	t.Expect(wait).To(BeNumerically(">", verification.CodeKept))
	t.expectAdmitted(ctx, b, t.newFor("+551187654321"), verification.Limits{})
	t.expectCooling(ctx, b, "+551187654321", coolingDown(cooldown)) // a link has the refusal of links
	t.expectAdmitted(ctx, b, t.newCodeFor("key", claimedNumber), verification.Limits{})
	t.createDeclined(ctx, a, testNumberAtOnce)
	test := t.newCodeFor("key", testNumberAtOnce)
	test.Test = true
	t.expectAdmitted(ctx, b, test, verification.Limits{}) // no code is sent
}

func codesRaced(ctx context.Context, t *trial) {
	stores := t.openReplicas(4)
	for name, c := range map[string]struct {
		most int
		code func(i int) verification.New
	}{
		"one number": {1, func(i int) verification.New { return t.newCodeFor(fmt.Sprint("key-", i), claimedNumber) }},
		"one key":    {10, func(i int) verification.New { return t.newCodeFor("raced", numberOf(i)) }},
	} {
		_, errs := runRacers(racers, func(i int) (verification.Created, error) {
			return stores[i%len(stores)].Create(ctx, c.code(i), codesPerKey(20, 10))
		})
		admitted := 0
		for _, err := range errs {
			if err == nil {
				admitted++
			} else {
				t.Expect(err).To(haveCode(verification.CodeCodesLimited), name)
			}
		}
		t.Expect(admitted).To(BeNumerically(">=", c.most), name)
		if t.harness.hasFeature(ExactLimits) {
			t.Expect(admitted).To(Equal(c.most), name)
		} else {
			t.Expect(admitted).To(BeNumerically("<=", c.most*len(stores)), name)
		}
	}
}

// codesKept fills a store with requests that nothing is left to do for.
func codesKept(ctx context.Context, t *trial) {
	s := t.openReplica()
	all := make([]verification.Request, 4)
	for i, end := range []mutation{nil, cancelRequest, expireRequest, func(r *verification.Request, now time.Time) error {
		r.Phase, r.VerifiedAt, r.Actual, r.ProvenAt, r.Via = verification.Verified, now, r.Phone, now, verification.ViaCode
		return nil
	}} {
		all[i] = t.createRequest(ctx, s, t.newCodeFor("key", numberOf(i)))
		if end != nil {
			t.updateRequest(ctx, s, all[i].ID, end)
		}
	}
	limits := maxStored(len(all))
	t.passTime(ctx, verification.CodeKept-time.Microsecond)
	t.Expect(t.expectRefused(ctx, s, t.newCreation(), limits, verification.CodeTooManyStored)).To(BeNumerically("<=", time.Second))
	t.expectStored(ctx, s, all, 0, 1, 2, 3)
	t.passTime(ctx, time.Microsecond)
	for range all {
		t.expectAdmitted(ctx, s, t.newLasting(), limits)
	}
	t.harness.Settle()
	t.expectStored(ctx, s, all)
}

// codesDeleted has claims and sweeps end and delete what they may.
func codesDeleted(ctx context.Context, t *trial) {
	s := t.openReplica()
	queue := t.harness.Queue(s)
	policy := verification.Policy{Retention: time.Minute}
	lapsed := t.createRequest(ctx, s, t.newCodeFor("key", numberOf(1)))
	keyed := t.newCodeFor("key", numberOf(2))
	keyed.BodyHash, keyed.TTL = "hash", 15*time.Minute
	all := []verification.Request{lapsed, t.createRequest(ctx, s, keyed)}
	t.passTime(ctx, 16*time.Minute)
	for _, next := range []time.Duration{verification.CodeKept + policy.Retention - 16*time.Minute - time.Microsecond, time.Microsecond} {
		_, err := queue.Sweep(ctx, policy, 10)
		t.Expect(err).NotTo(HaveOccurred())
		claims, err := queue.Claim(ctx, policy, 10, 0)
		t.Expect(err).NotTo(HaveOccurred())
		for _, r := range claims {
			t.updateRequest(ctx, s, r.ID, expireLapsed)
		}
		t.expectStored(ctx, s, all, 0, 1)
		t.Expect(t.getRequest(ctx, s, lapsed.ID).Phase).To(Equal(verification.Expired))
		t.passTime(ctx, next)
	}
	claims, err := queue.Claim(ctx, policy, 10, 0)
	t.Expect(err).NotTo(HaveOccurred())
	swept, err := queue.Sweep(ctx, policy, 10)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(max(len(claims), swept.Deleted)).To(Equal(len(all)), "a day later, and its retention")
}

// deliveriesDeleted has a claim delete one delivery, and a sweep or a further claim the other.
func deliveriesDeleted(ctx context.Context, t *trial) {
	s := t.openReplica()
	queue, policy := t.harness.Queue(s), sendingPolicy(verification.CodeKept)
	t.updateRequest(ctx, s, t.createRequest(ctx, s, t.newCodeFor("key", numberOf(1))).ID, cancelRequest)
	for i := range 2 {
		n := t.newCodeFor("key", numberOf(2+i))
		n.Terms, n.BodyHash = verification.Terms{Deliver: verification.DeliverGiven}, "0123456789abcdef0123456789abcdef"
		made := t.createRequest(ctx, s, n)
		t.updateRequest(ctx, s, made.ID, func(r *verification.Request, now time.Time) error {
			return r.RecordCodeResult(verification.CodeResult{State: verification.CodeSent}, now, allEvents)
		})
	}
	t.passTime(ctx, verification.CodeKept-time.Microsecond)
	t.Expect(queue.Sweep(ctx, policy, manyRequests)).To(BeZero())
	t.Expect(t.claimWork(ctx, s, policy, manyRequests, longLease)).To(BeEmpty())
	t.passTime(ctx, time.Microsecond)
	t.Expect(t.claimWork(ctx, s, policy, 1, longLease)).To(HaveLen(1))
	swept, err := queue.Sweep(ctx, policy, manyRequests)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(swept.Deleted+len(t.claimWork(ctx, s, policy, manyRequests, longLease))).To(Equal(1), "the other one, and no request")
}

// codesFlooded starts five codes to a number, which end at once, and then more links than a store holds.
func codesFlooded(ctx context.Context, t *trial) {
	const held = 12
	s := t.openReplica()
	limits := codesPerKey(5, 5)
	limits.MaxStored = held
	for range 5 {
		r := t.expectAdmitted(ctx, s, t.newCodeFor("key", claimedNumber), limits).Request
		t.updateRequest(ctx, s, r.ID, cancelRequest)
		t.passTime(ctx, 30*time.Minute)
	}
	for i := range 2 * held {
		r := t.expectAdmitted(ctx, s, t.newForKey("key", numberOf(i)), limits).Request
		t.updateRequest(ctx, s, r.ID, verifyClaimed(false))
	}
	if t.harness.hasFeature(Queue) {
		_, err := t.harness.Queue(s).Sweep(ctx, verification.Policy{}, 1000)
		t.Expect(err).NotTo(HaveOccurred())
	}
	for _, s := range t.openReplicas(2) {
		wait := t.expectCodesLimited(ctx, s, t.newCodeFor("other", claimedNumber), limits, verification.LimitCodeNumber)
		t.Expect(wait).To(Equal(24*time.Hour - 5*30*time.Minute))
		t.Expect(t.expectCodesLimited(ctx, s, t.newCodeFor("key", numberOf(0)), limits, verification.LimitCodes)).To(Equal(wait))
		t.expectAdmitted(ctx, s, t.newForKey("key", claimedNumber), limits) // links go on
	}
}

func countsCodes(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	first := t.createRequest(ctx, a, t.newCodeFor("one", numberOf(1)))
	t.passMoment(ctx)
	t.updateRequest(ctx, a, t.createRequest(ctx, b, t.newCodeFor("one", numberOf(2))).ID, cancelRequest)
	t.createRequest(ctx, b, t.newCodeFor("two", numberOf(3)))
	t.createRequest(ctx, b, t.newForKey("three", numberOf(4)))
	byTelegram := t.newCodeFor("one", numberOf(5))
	byTelegram.Method = verification.Telegram
	t.createRequest(ctx, a, byTelegram)
	test := t.newCodeFor("one", testNumberAtOnce)
	test.Test = true
	t.createRequest(ctx, a, test)
	t.harness.Settle()
	for _, s := range []verification.Store{a, b} {
		counter, ok := s.(verification.Counter)
		t.Expect(ok).To(BeTrue(), "the store counts")
		for since, want := range map[time.Time]map[string]int{
			first.CreatedAt.Add(-time.Microsecond): {"one": 2, "two": 1}, first.CreatedAt: {"one": 1, "two": 1},
			first.CreatedAt.Add(time.Hour): {},
		} {
			t.Expect(counter.CodesStarted(ctx, verification.WhatsApp, since)).To(Equal(want))
		}
		t.Expect(counter.CodesStarted(ctx, verification.Telegram, first.CreatedAt)).To(Equal(map[string]int{"one": 1}))
	}
}

// keepsDelivery reads at one replica what was written at another.
func keepsDelivery(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	n := t.newCodeFor("one", numberOf(1))
	n.Terms, n.BodyHash = verification.Terms{Deliver: verification.DeliverGiven}, "0123456789abcdef0123456789abcdef"
	limits := codesPerKey(1, 1)
	made := t.expectAdmitted(ctx, a, n, limits).Request
	t.Expect(made.Phase).To(Equal(verification.Expired))
	t.Expect(made.Event()).To(BeZero())
	t.harness.Settle()
	t.Expect(t.getRequest(ctx, b, n.ID)).To(equalRequest(made))
	t.expectCodesLimited(ctx, b, t.newCodeFor("one", numberOf(2)), limits, verification.LimitCodes)
	t.expectCodesLimited(ctx, b, t.newCodeFor("two", numberOf(1)), verification.Limits{}, verification.LimitCodeNumber)

	written := t.updateRequest(ctx, b, n.ID, func(r *verification.Request, now time.Time) error {
		return r.RecordCodeResult(verification.CodeResult{State: verification.CodeNotSent, Reason: "payment"}, now, allEvents)
	})
	t.Expect(written.Hints).To(BeEmpty())
	policy := verification.Policy{Retention: time.Hour, Events: verification.EventsOn, Kinds: allEvents}
	t.Expect(verification.Next(&written, written.CreatedAt, policy)).
		To(Equal(verification.Action{Step: verification.StepWait, At: written.CreatedAt.Add(verification.CodeKept)}), "without retention")
	again, err := a.Create(ctx, n, limits)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(again).To(And(HaveField("Existing", true), HaveField("Request", equalRequest(written))))

	link := t.createRequest(ctx, a, t.newForKey("one", numberOf(3)))
	t.expectListed(ctx, a, verification.ListQuery{Limit: 10}, link)
	other := t.newCodeFor("one", numberOf(4))
	other.Terms, other.BodyHash = n.Terms, n.BodyHash
	newest := t.createRequest(ctx, a, other)
	t.harness.Settle()
	for test, want := range map[bool][]verification.Request{false: {newest, written}, true: nil} {
		t.expectListed(ctx, a, verification.ListQuery{Limit: 10, ListFilter: verification.ListFilter{Deliveries: true, Test: test}}, want...)
	}
	of := verification.ListFilter{Deliveries: true, Phone: written.Phone}
	t.expectListed(ctx, a, verification.ListQuery{Limit: 10, ListFilter: of}, written)
	of.Phase = verification.Verified
	t.expectListed(ctx, a, verification.ListQuery{Limit: 10, ListFilter: of})
	counter, ok := a.(verification.Counter)
	t.Expect(ok).To(BeTrue(), "the store counts")
	t.Expect(counter.CodesStarted(ctx, verification.WhatsApp, made.CreatedAt.Add(-time.Microsecond))).To(HaveKeyWithValue("one", 2))
}

// codeSentOnce has many replicas start one request with the same Idempotency-Key at once, and one of them later.
func codeSentOnce(ctx context.Context, t *trial) {
	stores, sender := t.openReplicas(4), codesender.New(racers+1)
	n := t.newCodeFor("backend", numberOf(0))
	start := func(i int) (verification.Initiated, error) {
		service := verification.NewService(t.project, stores[i%len(stores)])
		service.Sender = sender
		return service.Initiate(ctx, verification.Initiation{
			Phone: n.Phone, Method: n.Method, TTL: n.TTL, KeyName: n.KeyName, Terms: n.Terms, RequestedTerms: n.Terms,
			IdempotencyKey: "order-1", HasIdempotencyKey: true,
		})
	}
	_, errs := runRacers(racers, start)
	t.Expect(errs).To(HaveEach(BeNil()))
	again, err := start(1)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(again.Existing).To(BeTrue())
	t.Expect(sender.ListSent()).To(HaveExactElements(equalRequest(again.Request)))
}
