package verification

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestNext(t *testing.T) {
	const keep = time.Hour
	verifiedAt := created.Add(time.Minute)
	retry := created.Add(30 * time.Minute)
	expired := pending(t)
	expired.Phase = Expired
	delivered, lapsed := verified(t, Delivery{DeliveredAt: verifiedAt}), *expired
	delivered.BodyHash, lapsed.BodyHash = "hash", "hash"
	rested := expires.Add(CodeRest)

	for name, test := range map[string]struct {
		request *Request
		now     time.Time
		events  EventPolicy
		want    Action
	}{
		"pending waits for its end":          {pending(t), created, EventsOn, Action{StepWait, expires.Add(ExpiryGrace)}},
		"pending waits through the grace":    {pending(t), expires.Add(ExpiryGrace - 1), EventsOn, Action{StepWait, expires.Add(ExpiryGrace)}},
		"pending expires":                    {pending(t), expires.Add(ExpiryGrace), EventsOn, Action{Step: StepExpire}},
		"pending expires late":               {pending(t), expires.Add(keep * 9), EventsPaused, Action{Step: StepExpire}},
		"expired is kept":                    {expired, expires.Add(keep), EventsOn, Action{StepWait, expires.Add(ExpiryGrace + keep)}},
		"expired goes":                       {expired, expires.Add(ExpiryGrace + keep), EventsOn, Action{Step: StepDelete}},
		"event is due at once":               {verified(t, Delivery{NextAttemptAt: verifiedAt}), verifiedAt, EventsOn, Action{Step: StepDeliver}},
		"event waits for its retry":          {verified(t, Delivery{Attempts: 2, NextAttemptAt: retry}), verifiedAt, EventsOn, Action{StepWait, retry}},
		"event is due after a restart":       {verified(t, Delivery{Attempts: 2, NextAttemptAt: retry}), retry.Add(keep * 50), EventsOn, Action{Step: StepDeliver}},
		"paused event waits":                 {verified(t, Delivery{NextAttemptAt: verifiedAt}), retry, EventsPaused, Action{StepWait, retry.Add(PausedRecheck)}},
		"paused event is never dropped":      {verified(t, Delivery{NextAttemptAt: verifiedAt}), verifiedAt.Add(keep * 1000), EventsPaused, Action{StepWait, verifiedAt.Add(keep*1000 + PausedRecheck)}},
		"event of a removed webhook waits":   {verified(t, Delivery{NextAttemptAt: verifiedAt}), verifiedAt, EventsOff, Action{StepWait, verifiedAt.Add(EventLife)}},
		"event of a removed webhook is kept": {verified(t, Delivery{NextAttemptAt: verifiedAt}), verifiedAt.Add(keep), EventsOff, Action{StepWait, verifiedAt.Add(EventLife)}},
		"event of a removed webhook goes":    {verified(t, Delivery{NextAttemptAt: verifiedAt}), verifiedAt.Add(EventLife), EventsOff, Action{Step: StepDelete}},
		"delivered is kept":                  {verified(t, Delivery{DeliveredAt: retry}), retry, EventsOn, Action{StepWait, retry.Add(keep)}},
		"delivered goes":                     {verified(t, Delivery{DeliveredAt: retry}), retry.Add(keep), EventsOn, Action{Step: StepDelete}},
		"delivered late is kept from then":   {verified(t, Delivery{DeliveredAt: retry.Add(72 * time.Hour)}), retry.Add(72 * time.Hour), EventsOn, Action{StepWait, retry.Add(73 * time.Hour)}},
		"exhausted is kept":                  {verified(t, Delivery{ExhaustedAt: retry}), retry.Add(keep - 1), EventsOn, Action{StepWait, retry.Add(keep)}},
		"exhausted goes":                     {verified(t, Delivery{ExhaustedAt: retry}), retry.Add(keep), EventsPaused, Action{Step: StepDelete}},
		"verified without an event is kept":  {verified(t, Delivery{}), verifiedAt, EventsOff, Action{StepWait, verifiedAt.Add(keep)}},
		"code that comes back rests":         {delivered, verifiedAt.Add(keep), EventsOn, Action{StepWait, rested.Add(keep)}},
		"code that comes back has rested":    {delivered, rested.Add(keep), EventsOn, Action{Step: StepDelete}},
		"expired code that comes back rests": {&lapsed, rested.Add(keep - 1), EventsOn, Action{StepWait, rested.Add(keep)}},
		"verified without an event goes":     {verified(t, Delivery{}), verifiedAt.Add(keep), EventsOff, Action{Step: StepDelete}},
	} {
		t.Run(name, func(t *testing.T) {
			before := *test.request
			g := NewWithT(t)
			g.Expect(Next(test.request, test.now, Policy{Retention: keep, Events: test.events})).To(Equal(test.want))
			g.Expect(*test.request).To(Equal(before), "deciding changes nothing")
		})
	}
}

// TestNext_afterARepair: an event that waits since before has one extra attempt, no more than one an hour, and none that the schedule's
// own follows within a minute.
func TestNext_afterARepair(t *testing.T) {
	last, next, at := created.Add(time.Hour), created.Add(10*time.Hour), created.Add(2*time.Hour)
	test := verified(t, Delivery{Attempts: 4, LastAttemptAt: last, NextAttemptAt: next})
	test.Test = true
	hinted := pending(t)
	hinted.Hints = []Hint{{Kind: HintOtherNumber, At: created}}
	hinted.Delivery = Delivery{Attempts: 2, LastAttemptAt: created, NextAttemptAt: created.Add(5 * time.Minute)}
	waiting := func(extraFrom time.Time) *Request {
		return verified(t, Delivery{Attempts: 4, LastAttemptAt: last, NextAttemptAt: next, ExtraFrom: extraFrom})
	}
	for name, test := range map[string]struct {
		request  *Request
		repaired time.Time
		want     time.Time
	}{
		"never":                                {waiting(time.Time{}), time.Time{}, next},
		"before the last attempt":              {waiting(time.Time{}), last, next},
		"after the last attempt":               {waiting(time.Time{}), at, at},
		"a Retry-After that is over":           {waiting(last.Add(time.Minute)), at, at},
		"a Retry-After, or a last extra one":   {waiting(at.Add(time.Hour)), at, at.Add(time.Hour)},
		"one that ends after the next attempt": {waiting(next.Add(time.Hour)), at, next},
		"a minute before the next attempt":     {waiting(time.Time{}), next.Add(-time.Minute), next},
		"an event of a test key":               {test, at, next},
		"an event without an attempt":          {verified(t, Delivery{NextAttemptAt: next}), at, next},
		"a pending request":                    {hinted, created.Add(time.Minute), created.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			policy := Policy{Events: EventsOn, TestEvents: EventsOn, Repaired: test.repaired}
			g.Expect(Next(test.request, test.want.Add(-1), policy)).To(Equal(Action{StepWait, test.want}))
			g.Expect(Next(test.request, test.want, policy)).To(Equal(Action{Step: StepDeliver}))
			policy.Events, policy.TestEvents = EventsPaused, EventsPaused
			g.Expect(Next(test.request, test.want, policy).Step).To(Equal(StepWait))
		})
	}
	held := Next(waiting(time.Time{}), next.Add(-time.Minute), Policy{Events: EventsOn, Repaired: at})
	NewWithT(t).Expect(held).To(Equal(Action{StepWait, next}), "an extra attempt that could not be made until a minute before the next one")
}

// A loop that does what Next says and asks again comes to an end, whatever time it is and however often it fails.
func TestNext_leadsEveryRequestToItsDeletion(t *testing.T) {
	g := NewWithT(t)
	policy := Policy{Retention: time.Hour, Events: EventsOn}
	for _, start := range []*Request{pending(t), verified(t, Delivery{NextAttemptAt: created.Add(time.Minute)})} {
		r, now, steps := start, created, []Step{}
		for len(steps) < 20 {
			action := Next(r, now, policy)
			if action.Step == StepWait {
				g.Expect(action.At).To(BeTemporally(">", now), "a wait is always for the future")
				now = action.At
				continue
			}
			steps = append(steps, action.Step)
			if action.Step == StepDelete {
				break
			}
			do(g, r, action.Step, now)
		}
		g.Expect(steps[len(steps)-1]).To(Equal(StepDelete))
	}
}

func do(g *WithT, r *Request, step Step, now time.Time) {
	if step == StepExpire {
		g.Expect(r.Expire(now, 0)).To(Succeed())
		return
	}
	attempt := Attempt{Number: r.Delivery.Attempts + 1, At: now, Event: r.Event(), StatusCode: 500, Next: now.Add(time.Hour)}
	if attempt.Number == 10 {
		attempt.Next = time.Time{}
	}
	g.Expect(r.RecordAttempt(attempt)).To(Succeed())
}
