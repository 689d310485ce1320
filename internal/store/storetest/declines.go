package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func declineChecks() []check {
	return []check{
		{name: "start no request for the number, in any of its forms", run: declinesNumber},
		{name: "count for what the limits say at the moment", run: declinesChanged},
		{name: "end to the instant", needs: SteppedClock, run: declinesEnd},
		{name: "count until the last of several is over", needs: SteppedClock, run: declinesLast},
		{name: "leave the limit with the longest wait", run: declinesLongestWait},
		{name: "answer the retry of a request that exists", run: declinesRetry},
		{name: "refuse each of many concurrent creations", run: declinesRaced},
		{name: "are none of a request that ends otherwise", run: declinesOther},
		{name: "count after another end of their request, too", run: declinesAfterEnd},
		{name: "end with their request", run: declinesDeleted},
		{name: "keep their request in a full store", needs: Cap | SteppedClock, run: declinesKept},
	}
}

const cooldown = time.Hour

func coolingDown(cooldown time.Duration) verification.Limits {
	return verification.Limits{DeclineCooldown: cooldown}
}

// newFor returns a creation of a request of LevelSession for that number.
func (t *trial) newFor(e164 string) verification.New {
	n := t.newSession()
	n.Phone = mustNumber(e164)
	return n
}

// createDeclined stores a request for that number that its prover declined.
func (t *trial) createDeclined(ctx context.Context, s verification.Store, e164 string) verification.Request {
	ginkgo.GinkgoHelper()
	return t.declineRequest(ctx, s, t.createProven(ctx, s, t.newFor(e164)).ID)
}

// expectCooling expects that no request starts for the number, and returns the Retry-After.
func (t *trial) expectCooling(ctx context.Context, s verification.Store, e164 string, limits verification.Limits) time.Duration {
	ginkgo.GinkgoHelper()
	t.harness.Settle()
	_, err := s.Create(ctx, t.newFor(e164), limits)
	var refusal *verification.Error
	t.Expect(errors.As(err, &refusal)).To(BeTrue(), "%s is refused", e164)
	t.Expect(refusal).To(And(HaveField("Code", verification.CodeRateLimited), HaveField("Limit", verification.LimitDeclined),
		HaveField("Field", "phoneNumber")), e164)
	return refusal.RetryAfter
}

func declinesNumber(ctx context.Context, t *trial) {
	a, b, foreign := t.openReplica(), t.openReplica(), t.harness.Open(newProject().Name())
	limits := coolingDown(cooldown)
	for _, forms := range [][2]string{
		{"+5511987654321", "+551187654321"}, {"+525512345678", "+5215512345678"}, {"+541123456789", "+5491123456789"},
	} {
		t.createDeclined(ctx, a, forms[0])
		for _, s := range []verification.Store{a, b} {
			for _, form := range forms {
				t.Expect(t.expectCooling(ctx, s, form, limits)).To(And(BeNumerically(">", 0), BeNumerically("<=", cooldown)))
			}
		}
		t.expectAdmitted(ctx, foreign, t.newFor(forms[0]), limits)
		t.expectAdmitted(ctx, b, t.newFor("+4915112345679"), limits)
	}
	later := t.openReplica()
	t.expectCooling(ctx, later, "+551187654321", limits)
	t.expectAdmitted(ctx, later, t.newFor("+5511923456789"), limits) // another line
}

func declinesChanged(ctx context.Context, t *trial) {
	s := t.openReplica()
	t.createDeclined(ctx, s, claimedNumber)
	t.expectAdmitted(ctx, s, t.newFor(claimedNumber), coolingDown(0))
	t.Expect(t.expectCooling(ctx, s, claimedNumber, coolingDown(cooldown))).To(BeNumerically("<=", cooldown))
	t.Expect(t.expectCooling(ctx, s, claimedNumber, coolingDown(2*cooldown))).To(BeNumerically(">", cooldown))
	t.passMoment(ctx)
	t.expectAdmitted(ctx, s, t.newFor(claimedNumber), coolingDown(time.Microsecond))
}

func declinesEnd(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	limits := coolingDown(cooldown)
	declined := t.createDeclined(ctx, a, "+5215512345678")
	t.Expect(t.expectCooling(ctx, b, "+525512345678", limits)).To(Equal(cooldown))
	t.passTime(ctx, cooldown-time.Microsecond)
	t.Expect(t.expectCooling(ctx, a, "+525512345678", limits)).To(Equal(time.Microsecond))
	t.passTime(ctx, time.Microsecond)
	t.expectAdmitted(ctx, b, t.newFor("+525512345678"), limits)
	t.Expect(t.getRequest(ctx, b, declined.ID)).To(equalRequest(declined))
}

// declinesAfterEnd declines requests that a holder of the page had ended.
func declinesAfterEnd(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	limits := coolingDown(cooldown)
	r := t.createProven(ctx, a, t.newFor(claimedNumber))
	t.updateRequest(ctx, a, r.ID, func(r *verification.Request, now time.Time) error { return r.Cancel(now, allEvents) })
	t.expectAdmitted(ctx, b, t.newFor(claimedNumber), limits)
	declined := t.declineRequest(ctx, b, r.ID)
	t.Expect(declined.DeclinedAt()).NotTo(BeZero())
	t.Expect(declined.Event().Kind).To(Equal(verification.EventDeclined))
	t.expectCooling(ctx, a, claimedNumber, limits)
	t.expectCooling(ctx, b, claimedNumber, limits)
	t.Expect(t.getRequest(ctx, a, r.ID)).To(equalRequest(declined))
}

// declinesLast declines two requests of one number. The earlier is created last, and is deleted.
func declinesLast(ctx context.Context, t *trial) {
	s := t.openReplica()
	limits := coolingDown(cooldown)
	late := t.createProven(ctx, s, t.newFor(claimedNumber))
	early := t.createDeclined(ctx, s, claimedNumber)
	t.passTime(ctx, time.Minute)
	t.declineRequest(ctx, s, late.ID)
	t.Expect(t.expectCooling(ctx, s, claimedNumber, limits)).To(Equal(cooldown))
	t.deleteRequest(ctx, s, early.ID)
	t.Expect(t.expectCooling(ctx, s, claimedNumber, limits)).To(Equal(cooldown))
}

func declinesLongestWait(ctx context.Context, t *trial) {
	s := t.openReplica()
	t.createDeclined(ctx, s, claimedNumber)
	limits := coolingDown(cooldown)
	limits.PerPhoneNumber = verification.Rate{Requests: 1, Period: cooldown / 2}
	t.Expect(t.expectCooling(ctx, s, claimedNumber, limits)).To(BeNumerically(">", cooldown/2))
	limits.PerPhoneNumber.Period = 2 * cooldown
	n := t.newFor(claimedNumber)
	n.KeyName = "other"
	t.expectAdmitted(ctx, s, n, verification.Limits{PerPhoneNumber: verification.Rate{Requests: 9, Period: 2 * cooldown}})
	t.harness.Settle()
	_, err := s.Create(ctx, t.newFor(claimedNumber), limits)
	var refusal *verification.Error
	t.Expect(errors.As(err, &refusal)).To(BeTrue())
	t.Expect(refusal.Limit).To(Equal(verification.LimitPerPhoneNumber))
	t.Expect(refusal.RetryAfter).To(BeNumerically(">", cooldown))
}

func declinesRetry(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	limits := coolingDown(cooldown)
	n, m := t.newFor(claimedNumber), t.newFor(claimedNumber)
	n.BodyHash, m.BodyHash = "hash", "hash"
	pending := t.createRequest(ctx, a, m)
	declined := t.declineRequest(ctx, a, t.createProven(ctx, a, n).ID)
	t.expectCooling(ctx, b, claimedNumber, limits)
	for _, s := range []verification.Store{a, b} {
		created, err := s.Create(ctx, n, limits)
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(created.Existing).To(BeTrue())
		t.Expect(created.Request).To(equalRequest(declined))
		created, err = s.Create(ctx, m, limits)
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(created.Request).To(equalRequest(pending))
	}
	again := t.createProven(ctx, b, t.newFor("+4915112345679"))
	t.Expect(again.Phase).To(Equal(verification.Pending))
}

func declinesRaced(ctx context.Context, t *trial) {
	stores := t.openReplicas(4)
	t.createDeclined(ctx, stores[0], claimedNumber)
	t.harness.Settle()
	_, errs := runRacers(racers, func(i int) (verification.Created, error) {
		n := t.newFor(claimedNumber)
		if i%2 == 0 {
			n.Phone = mustNumber("+4915112345679")
		}
		return stores[i%len(stores)].Create(ctx, n, coolingDown(cooldown))
	})
	for i, err := range errs {
		if i%2 == 0 {
			t.Expect(err).NotTo(HaveOccurred(), "another number")
		} else {
			t.Expect(err).To(haveCode(verification.CodeRateLimited))
		}
	}
}

// declinesOther ends requests in all other ways.
func declinesOther(ctx context.Context, t *trial) {
	s := t.openReplica()
	end := func(m mutation) { t.updateRequest(ctx, s, t.createProven(ctx, s, t.newFor(claimedNumber)).ID, m) }
	end(func(r *verification.Request, now time.Time) error { return r.Cancel(now, 0) })
	end(func(r *verification.Request, now time.Time) error {
		for r.Phase == verification.Pending {
			_ = r.ConfirmSession(Match(verification.NoMatch), now, 0)
		}
		return nil
	})
	end(func(r *verification.Request, now time.Time) error {
		return r.ConfirmSession(Match(verification.MatchesSession), now, 0)
	})
	end(func(r *verification.Request, _ time.Time) error {
		r.Phase = verification.Expired
		return nil
	})
	t.expectAdmitted(ctx, s, t.newFor(claimedNumber), coolingDown(cooldown))

	echo := t.createRequest(ctx, s, t.newForKey("backend", "+4915112345679"))
	t.updateRequest(ctx, s, echo.ID, askByEcho("anna", 0))
	t.updateRequest(ctx, s, echo.ID, func(r *verification.Request, now time.Time) error {
		tap := verification.Evidence{Method: r.Method, SentAt: now}
		return r.Decline(tap, func(c verification.Contact) bool { return c.Binding == "anna" }, now, 0)
	})
	t.expectCooling(ctx, s, "+4915112345679", coolingDown(cooldown)) // the same answer, to an echo
}

// declinesDeleted deletes a declined request, and creates another one with its id.
func declinesDeleted(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	limits := coolingDown(cooldown)
	n := t.newFor(claimedNumber)
	n.BodyHash = "hash"
	t.declineRequest(ctx, a, t.createProven(ctx, a, n).ID)
	t.expectCooling(ctx, b, claimedNumber, limits)
	t.harness.Settle()
	t.deleteRequest(ctx, b, n.ID)
	t.passMoment(ctx)
	t.expectAdmitted(ctx, a, n, limits)
	t.expectAdmitted(ctx, b, t.newFor(claimedNumber), limits)
	t.declineRequest(ctx, b, t.proveRequest(ctx, b, n.ID, 0).ID)
	t.expectCooling(ctx, a, claimedNumber, limits)
}

func declinesKept(ctx context.Context, t *trial) {
	s := t.openReplica()
	limits := verification.Limits{MaxStored: 1, DeclineCooldown: cooldown}
	declined := t.createDeclined(ctx, s, claimedNumber)
	t.passTime(ctx, cooldown-time.Microsecond)
	t.Expect(t.expectRefused(ctx, s, t.newFor("+4915112345679"), limits, verification.CodeTooManyStored)).To(BeNumerically("<=", time.Second))
	t.expectCooling(ctx, s, claimedNumber, limits)
	t.Expect(t.getRequest(ctx, s, declined.ID)).To(equalRequest(declined))
	t.passTime(ctx, time.Microsecond)
	t.expectAdmitted(ctx, s, t.newLasting(), limits)
	t.harness.Settle()
	t.expectGone(ctx, s, declined.ID)

	other := t.openReplica()
	unlimited := t.createDeclined(ctx, other, "+4915112345670")
	t.passTime(ctx, 20*time.Minute)
	t.expectAdmitted(ctx, other, t.newLasting(), verification.Limits{MaxStored: 2})
	t.harness.Settle()
	t.expectGone(ctx, other, unlimited.ID) // without a cool-down it is as evictable as others
}
