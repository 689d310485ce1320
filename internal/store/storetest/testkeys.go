package storetest

import (
	"context"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Test numbers.
const (
	testNumberAtOnce   = "+12025550110"
	testNumberDeclined = "+12025550115"
)

func testKeyChecks() []check {
	return []check{
		{name: "keeps the mode of a request", run: keepsTestKeysApart},
		{name: "counts requests of test keys apart", run: countsTestKeysApart},
		{name: "makes room for requests of test keys apart", needs: Cap, run: capsTestKeysApart},
		{name: "hands out the outcomes and events of test keys", needs: Queue, run: claimsTests},
	}
}

func (t *trial) newTest(number string) verification.New {
	n := t.newForKey("staging", number)
	n.Test = true
	return n
}

// keepsTestKeysApart: the mode of a request is stored, never changes, and its limits are none of the others.
func keepsTestKeysApart(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	made := t.createRequest(ctx, a, t.newTest(testNumberAtOnce))
	t.Expect(made.Test).To(BeTrue())
	t.Expect(made.Method).To(Equal(verification.Telegram))
	t.harness.Settle()
	stored := t.getRequest(ctx, b, made.ID)
	t.Expect(stored.Test).To(BeTrue(), "another replica reads it")
	t.Expect(stored.Method).To(Equal(verification.Telegram))
	live := t.createRequest(ctx, a, t.newCreation())
	t.Expect(live.Test).To(BeFalse())
	for _, id := range []string{made.ID, live.ID} {
		_, err := a.Update(ctx, id, func(r *verification.Request, _ time.Time) error {
			r.Test = !r.Test
			return nil
		})
		t.Expect(err).To(MatchError(verification.ErrContent), "the mode never changes")
	}
	played := t.updateRequest(ctx, b, made.ID, func(r *verification.Request, now time.Time) error {
		return r.Play(now, allEvents.WithTests())
	})
	t.Expect(played.Phase).To(Equal(verification.Verified))
	t.Expect(played.Delivery.Wanted()).To(BeTrue())
	t.harness.Settle()
	reread := t.getRequest(ctx, a, made.ID)
	t.Expect(reread.Event().Name()).To(Equal("test.verification.success"))
}

// countsTestKeysApart: neither the rates nor the cool-down of live keys follow from test keys, nor the reverse.
func countsTestKeysApart(ctx context.Context, t *trial) {
	a := t.openReplica()
	limits := verification.Limits{
		PerKey:          verification.Rate{Requests: 1, Period: time.Hour},
		PerPhoneNumber:  verification.Rate{Requests: 1, Period: time.Hour},
		PerPrefix:       verification.PrefixRate{Rate: verification.Rate{Requests: 1, Period: time.Hour}, Digits: 4},
		DeclineCooldown: time.Hour,
	}
	ofTests := verification.Limits{PerKey: verification.Rate{Requests: 2, Period: time.Hour}}
	first := t.expectAdmitted(ctx, a, t.newTest(testNumberDeclined), ofTests).Request
	t.updateRequest(ctx, a, first.ID, func(r *verification.Request, now time.Time) error { return r.Play(now, 0) })
	t.expectAdmitted(ctx, a, t.newTest(testNumberDeclined), ofTests)
	t.expectRefused(ctx, a, t.newTest(testNumberDeclined), ofTests, verification.CodeRateLimited)

	live := t.newForKey("staging", testNumberDeclined) // of the same key and number
	t.expectAdmitted(ctx, a, live, limits)
	t.expectRefused(ctx, a, t.newForKey("staging", testNumberAtOnce), limits, verification.CodeRateLimited)
	t.expectRefused(ctx, a, t.newTest(testNumberDeclined), ofTests, verification.CodeRateLimited)
}

// capsTestKeysApart: neither test keys nor the others take the other's room, or evict its requests.
func capsTestKeysApart(ctx context.Context, t *trial) {
	a := t.openReplica()
	one := verification.Limits{MaxStored: 1}
	live := t.expectAdmitted(ctx, a, t.newCreation(), one).Request
	first := t.expectAdmitted(ctx, a, t.newTest(testNumberAtOnce), one).Request
	t.expectRefused(ctx, a, t.newTest(testNumberAtOnce), one, verification.CodeTooManyStored)
	t.updateRequest(ctx, a, first.ID, func(r *verification.Request, now time.Time) error { return r.Play(now, allEvents.WithTests()) })
	t.expectRefused(ctx, a, t.newCreation(), one, verification.CodeTooManyStored)
	t.Expect(t.getRequest(ctx, a, first.ID).Delivery.Wanted()).To(BeTrue())
	t.expectAdmitted(ctx, a, t.newTest(testNumberAtOnce), one)
	t.expectGone(ctx, a, first.ID) // finished, with an event that its receiver did not take
	t.Expect(t.getRequest(ctx, a, live.ID).Phase).To(Equal(verification.Pending))
}

// claimsTests: workers get a test request when its outcome is due, and its event by the policy of test keys alone.
func claimsTests(ctx context.Context, t *trial) {
	a := t.openReplica()
	queue := t.harness.Queue(a)
	made := t.createRequest(ctx, a, t.newTest(testNumberAtOnce))
	paused := verification.Policy{Retention: time.Hour, Events: verification.EventsOn, TestEvents: verification.EventsPaused}
	claims, err := queue.Claim(ctx, paused, 10, 0)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(claims).To(HaveLen(1))
	t.Expect(claims[0].ID).To(Equal(made.ID))
	t.Expect(claims[0].Test).To(BeTrue())
	t.updateRequest(ctx, a, made.ID, func(r *verification.Request, now time.Time) error { return r.Play(now, allEvents.WithTests()) })
	claims, err = queue.Claim(ctx, paused, 10, 0)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(claims).To(BeEmpty(), "that live events are sent does not send those of test keys")
	on := verification.Policy{Retention: time.Hour, Events: verification.EventsPaused, TestEvents: verification.EventsOn}
	claims, err = queue.Claim(ctx, on, 10, 0)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(claims).To(HaveLen(1))
	delivered := t.updateRequest(ctx, a, made.ID, recordDelivered(claims[0]))
	t.Expect(delivered.Delivery.DeliveredAt).NotTo(BeZero())
}
