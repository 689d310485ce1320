package verification

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
)

var (
	created = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	expires = created.Add(10 * time.Minute)
)

func number(t testing.TB, e164 string) phone.Number {
	t.Helper()
	n, err := phone.FromE164(e164)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func pending(t testing.TB) *Request {
	t.Helper()
	return &Request{
		ID: "vraaaaaaaaaaaaaaaaaaaaaaaa", Phone: number(t, "+4915112345678"), Method: WhatsApp,
		CreatedAt: created, ExpiresAt: expires, Phase: Pending,
	}
}

// keyed makes a request one with an Idempotency-Key, which was created late in its second.
func keyed(r *Request) {
	r.BodyHash, r.CreatedAt = "hash", r.CreatedAt.Add(999*time.Millisecond)
}

func TestVerify(t *testing.T) {
	right, wrong := number(t, "+4915112345678"), number(t, "+4915112345679")
	at := created.Add(time.Minute)
	for name, test := range map[string]struct {
		change   func(*Request)
		evidence Evidence
		now      time.Time
		want     error
	}{
		"right number in time":     {evidence: Evidence{Method: WhatsApp, Sender: right, SentAt: at}, now: at},
		"dated two minutes early":  {evidence: Evidence{Method: WhatsApp, Sender: right, SentAt: created.Add(-ClockSkew)}, now: at},
		"dated just before that":   {evidence: Evidence{Method: WhatsApp, Sender: right, SentAt: created.Add(-ClockSkew - 1)}, now: at, want: ErrOutOfTime},
		"dated in the same second": {change: keyed, evidence: Evidence{Method: WhatsApp, Sender: right, SentAt: created}, now: at},
		"dated a second early, of a code that can come back": {
			change: keyed, evidence: Evidence{Method: WhatsApp, Sender: right, SentAt: created.Add(-time.Second)}, now: at, want: ErrOutOfTime,
		},
		"dated at the end":              {evidence: Evidence{Method: WhatsApp, Sender: right, SentAt: expires}, now: expires.Add(-1)},
		"dated after the end":           {evidence: Evidence{Method: WhatsApp, Sender: right, SentAt: expires.Add(1)}, now: expires.Add(-1), want: ErrOutOfTime},
		"sent in time, arrived at end":  {evidence: Evidence{Method: WhatsApp, Sender: right, SentAt: at}, now: expires, want: ErrOutOfTime},
		"sent in time, arrived in days": {evidence: Evidence{Method: WhatsApp, Sender: right, SentAt: at}, now: expires.Add(72 * time.Hour), want: ErrOutOfTime},
		"undated":                       {evidence: Evidence{Method: WhatsApp, Sender: right}, now: at, want: ErrOutOfTime},
		"another messenger":             {evidence: Evidence{Method: Telegram, Sender: right, SentAt: at}, now: at, want: ErrWrongMethod},
		"another number":                {evidence: Evidence{Method: WhatsApp, Sender: wrong, SentAt: at}, now: at, want: ErrWrongNumber},
		"no number":                     {evidence: Evidence{Method: WhatsApp, SentAt: at}, now: at, want: ErrNoNumber},
		"already verified":              {change: func(r *Request) { r.Phase = Verified }, evidence: Evidence{Method: WhatsApp, Sender: right, SentAt: at}, now: at, want: ErrFinal},
		"already expired":               {change: func(r *Request) { r.Phase = Expired }, evidence: Evidence{Method: WhatsApp, Sender: right, SentAt: at}, now: at, want: ErrFinal},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := pending(t)
			if test.change != nil {
				test.change(r)
			}
			before := *r
			err := r.Verify(test.evidence, test.now, successOnly)
			if test.want != nil {
				g.Expect(err).To(MatchError(test.want))
				g.Expect(*r).To(Equal(before), "a refused message changes nothing")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.Phase).To(Equal(Verified))
			g.Expect(r.VerifiedAt).To(Equal(test.now))
			g.Expect(r.Actual).To(Equal(right))
			g.Expect(r.Delivery).To(Equal(Delivery{NextAttemptAt: test.now}), "the event is due in the same write")
		})
	}
}

func TestVerify_acceptsNationalVariants(t *testing.T) {
	g := NewWithT(t)
	r := pending(t)
	r.Phone = number(t, "+5215512345678")
	err := r.Verify(Evidence{Method: WhatsApp, Sender: number(t, "+525512345678"), SentAt: created}, created, 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Phone.E164()).To(Equal("+5215512345678"))
	g.Expect(r.Actual.E164()).To(Equal("+525512345678"))
	g.Expect(r.Delivery.Wanted()).To(BeFalse(), "no event is wanted without a webhook")
}

func TestVerify_keepsTheAssurance(t *testing.T) {
	g := NewWithT(t)
	r := pending(t)
	e := Evidence{Method: WhatsApp, Sender: r.Phone, SentAt: created, Assurance: AssuranceSharedContact}
	g.Expect(r.Verify(e, created, 0)).To(Succeed())
	g.Expect(r.Assurance).To(Equal(AssuranceSharedContact))
}

func TestBind_keepsTheLatestEight(t *testing.T) {
	g := NewWithT(t)
	r := pending(t)
	e := Evidence{Method: WhatsApp, SentAt: created}
	for i := range MaxContacts + 2 {
		g.Expect(r.Bind(e, string(rune('a'+i)), created.Add(time.Duration(i)*time.Second), 0)).To(Succeed())
	}
	g.Expect(r.Contacts).To(HaveLen(MaxContacts))
	g.Expect(r.BoundAt("a")).To(BeZero())
	g.Expect(r.BoundAt("j")).To(Equal(created.Add(9 * time.Second)))
}

func TestBind_againMovesTheSenderToTheEnd(t *testing.T) {
	g := NewWithT(t)
	r := pending(t)
	for i, binding := range []string{"a", "b", "a"} {
		now := created.Add(time.Duration(i) * time.Second)
		g.Expect(r.Bind(Evidence{Method: WhatsApp, SentAt: now}, binding, now, 0)).To(Succeed())
	}
	g.Expect(r.Contacts).To(Equal([]Contact{
		{Binding: "b", BoundAt: created.Add(time.Second)}, {Binding: "a", BoundAt: created.Add(2 * time.Second)},
	}))
}

// TestBind_ofACopy has the message that bound a sender delivered again: what was shared since then stays in time.
func TestBind_ofACopy(t *testing.T) {
	g := NewWithT(t)
	r, e := pending(t), Evidence{Method: WhatsApp, SentAt: created}
	g.Expect(r.Bind(e, "a", created.Add(time.Second), 0)).To(Succeed())
	g.Expect(r.Bind(e, "a", created.Add(time.Minute), 0)).To(Equal(ErrUnchanged))
	g.Expect(r.BoundAt("a")).To(Equal(created.Add(time.Second)))
}

// TestBind_neverDropsTheConfirmation has so many senders without a number that the oldest go.
func TestBind_neverDropsTheConfirmation(t *testing.T) {
	g := NewWithT(t)
	r := pending(t)
	g.Expect(r.AwaitConfirmation(Evidence{Method: WhatsApp, Sender: r.Phone, SentAt: created}, "asked", nil, created, 0)).To(Succeed())
	for i := range 2 * MaxContacts {
		g.Expect(r.Bind(Evidence{Method: WhatsApp, SentAt: created}, string(rune('a'+i)), created, 0)).To(Succeed())
	}
	g.Expect(r.Contacts).To(HaveLen(MaxContacts))
	g.Expect(r.BoundAt("asked")).To(Equal(created))
}

func TestVerifyContact(t *testing.T) {
	bound := created.Add(time.Minute + 300*time.Millisecond)
	second := bound.Truncate(time.Second)
	for name, test := range map[string]struct {
		sent, prompted time.Time
		want           error
	}{
		"after the binding":                    {sent: bound.Add(time.Second)},
		"in its second":                        {sent: second},
		"in the second before":                 {sent: second.Add(-time.Second), want: ErrEarlyContact},
		"before the request, within the slack": {sent: created.Add(-time.Minute), want: ErrEarlyContact},
		"before the slack":                     {sent: created.Add(-time.Hour), want: ErrOutOfTime},
		"to its prompt":                        {sent: bound.Add(9 * time.Second), prompted: second},
		"to its prompt, by a clock behind":     {sent: bound.Add(9 * time.Second), prompted: bound.Add(-promptSkew)},
		"to an older prompt":                   {sent: bound.Add(9 * time.Second), prompted: bound.Add(-promptSkew - 1), want: ErrEarlyContact},
		"to a prompt of no time":               {sent: bound.Add(9 * time.Second), prompted: time.Unix(0, 0), want: ErrEarlyContact},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := pending(t)
			r.Contacts = []Contact{{Binding: "a", BoundAt: bound}}
			e := Evidence{Method: WhatsApp, Sender: r.Phone, SentAt: test.sent, PromptedAt: test.prompted}
			err := r.VerifyContact(e, "a", bound.Add(10*time.Second), 0)
			if test.want != nil {
				g.Expect(err).To(MatchError(test.want))
				g.Expect(r.Phase).To(Equal(Pending))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.Phase).To(Equal(Verified))
		})
	}
	r := pending(t)
	NewWithT(t).Expect(r.VerifyContact(Evidence{Method: WhatsApp, Sender: r.Phone, SentAt: bound}, "a", bound, 0)).To(Equal(ErrNotAsked))
}

func TestBind_doesNotWriteIntoTheOldState(t *testing.T) {
	g := NewWithT(t)
	r := pending(t)
	before := []Contact{{Binding: "a", BoundAt: created}, {Binding: "b", BoundAt: created}}
	r.Contacts = append(make([]Contact, 0, 4), before...)
	old := *r
	g.Expect(r.Bind(Evidence{Method: WhatsApp, SentAt: created.Add(1)}, "a", expires.Add(-1), 0)).To(Succeed())
	g.Expect(old.Contacts).To(Equal(before))
}

func TestBind_refusesWhatVerifyRefuses(t *testing.T) {
	g := NewWithT(t)
	g.Expect(pending(t).Bind(Evidence{Method: Telegram, SentAt: created}, "a", created, 0)).To(Equal(ErrWrongMethod))
	g.Expect(pending(t).Bind(Evidence{Method: WhatsApp, SentAt: created}, "a", expires, 0)).To(Equal(ErrOutOfTime))
}

func TestExpire(t *testing.T) {
	g := NewWithT(t)
	r := pending(t)
	g.Expect(r.Expire(expires.Add(ExpiryGrace-1), 0)).To(Equal(ErrUnchanged))
	g.Expect(r.Phase).To(Equal(Pending))
	g.Expect(r.Expire(expires.Add(ExpiryGrace), 0)).To(Succeed())
	g.Expect(r.Phase).To(Equal(Expired))
	g.Expect(r.Expire(expires.Add(time.Hour), 0)).To(Equal(ErrUnchanged))
	r.Phase = Verified
	g.Expect(r.Expire(expires.Add(time.Hour), 0)).To(Equal(ErrUnchanged))
	g.Expect(r.Phase).To(Equal(Verified))
}

func TestPhaseAt_showsExpiredOnlyAfterTheGrace(t *testing.T) {
	g := NewWithT(t)
	r := pending(t)
	g.Expect(r.PhaseAt(expires)).To(Equal(Pending))
	g.Expect(r.PhaseAt(expires.Add(ExpiryGrace - 1))).To(Equal(Pending))
	g.Expect(r.PhaseAt(expires.Add(ExpiryGrace))).To(Equal(Expired))
	r.Phase = Verified
	g.Expect(r.PhaseAt(expires.Add(time.Hour))).To(Equal(Verified))
}

func verified(t testing.TB, d Delivery) *Request {
	t.Helper()
	r := pending(t)
	r.Phase, r.VerifiedAt, r.Delivery = Verified, created.Add(time.Minute), d
	return r
}

func TestRecordAttempt(t *testing.T) {
	due := Delivery{Attempts: 2, NextAttemptAt: created.Add(time.Hour)}
	at := created.Add(time.Hour)
	for name, test := range map[string]struct {
		attempt Attempt
		want    Delivery
		err     error
	}{
		"delivered": {
			Attempt{Number: 3, At: at, StatusCode: 204, Delivered: true},
			Delivery{Attempts: 3, LastAttemptAt: at, LastStatusCode: 204, DeliveredAt: at}, nil,
		},
		"to be tried again": {
			Attempt{Number: 3, At: at, StatusCode: 500, Reason: "http_500", Next: at.Add(time.Hour)},
			Delivery{Attempts: 3, LastAttemptAt: at, LastStatusCode: 500, LastReason: "http_500", NextAttemptAt: at.Add(time.Hour)}, nil,
		},
		"exhausted": {
			Attempt{Number: 3, At: at, Reason: "timeout"},
			Delivery{Attempts: 3, LastAttemptAt: at, LastReason: "timeout", ExhaustedAt: at}, nil,
		},
		"planned from an older state": {Attempt{Number: 2, At: at, Delivered: true}, due, ErrStaleAttempt},
		"planned from a newer state":  {Attempt{Number: 4, At: at, Delivered: true}, due, ErrStaleAttempt},
		"by a worker without lease":   {Attempt{Number: 3, Epoch: 1, At: at, Delivered: true}, due, ErrLeaseLost},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := verified(t, due)
			test.attempt.Event = r.Event()
			if test.err != nil {
				g.Expect(r.RecordAttempt(test.attempt)).To(Equal(test.err))
			} else {
				g.Expect(r.RecordAttempt(test.attempt)).To(Succeed())
			}
			g.Expect(r.Delivery).To(Equal(test.want))
		})
	}
}

// TestRecordAttempt_extra: whatever becomes of it, the schedule goes on as it was.
func TestRecordAttempt_extra(t *testing.T) {
	last, at, next := created.Add(time.Hour), created.Add(2*time.Hour), created.Add(9*time.Hour)
	waiting := Delivery{Attempts: 4, LastAttemptAt: last, LastReason: "timeout", NextAttemptAt: next}
	failed := Attempt{Number: 5, After: last, At: at, StatusCode: 500, Reason: "http_500", Next: next, ExtraFrom: at.Add(ExtraGap)}
	afterwards := Delivery{
		Attempts: 4, LastAttemptAt: at, LastStatusCode: 500, LastReason: "http_500", NextAttemptAt: next, ExtraFrom: at.Add(ExtraGap),
	}
	record := func(r *Request, a Attempt) error {
		a.Event = r.Event()
		return r.RecordAttempt(a)
	}
	t.Run("it fails", func(t *testing.T) {
		g := NewWithT(t)
		r := verified(t, waiting)
		g.Expect(record(r, failed)).To(Succeed())
		g.Expect(r.Delivery).To(Equal(afterwards))
		g.Expect(record(r, failed)).To(Equal(ErrStaleAttempt), "it is recorded once, also if two workers made one")
		counted := Attempt{Number: 5, At: next, Next: next.Add(time.Hour), ExtraFrom: at}
		g.Expect(record(r, counted)).To(Succeed(), "the schedule's fifth")
		g.Expect(r.Delivery.Attempts).To(Equal(5))
		g.Expect(r.Delivery.ExtraFrom).To(Equal(at.Add(ExtraGap)), "the gap between extra attempts is kept")
	})
	t.Run("the schedule's own was recorded meanwhile", func(t *testing.T) {
		r := verified(t, waiting)
		NewWithT(t).Expect(record(r, Attempt{Number: 5, At: last.Add(time.Minute), Next: next})).To(Succeed())
		NewWithT(t).Expect(record(r, failed)).To(Equal(ErrStaleAttempt))
	})
	t.Run("it delivers", func(t *testing.T) {
		g := NewWithT(t)
		r := verified(t, waiting)
		g.Expect(record(r, Attempt{Number: 5, After: last, At: at, StatusCode: 204, Delivered: true})).To(Succeed())
		g.Expect(r.Delivery).To(Equal(Delivery{Attempts: 4, LastAttemptAt: at, LastStatusCode: 204, DeliveredAt: at}))
	})
	t.Run("a redelivery is granted during it", func(t *testing.T) {
		g := NewWithT(t)
		r := verified(t, waiting)
		before := r.Clone()
		g.Expect(r.Redeliver("id/1", at.Add(-time.Second), successOnly)).To(Succeed())
		g.Expect(before.HasSameWork(r)).To(BeTrue(), "the worker keeps its lease: none other sends it meanwhile")
		g.Expect(record(r, failed)).To(Succeed())
		g.Expect([]any{r.Delivery.Attempts, r.Delivery.NextAttemptAt}).To(Equal([]any{3, at}), "another follows at once, not counted either")
	})
}

func TestRecordAttempt_afterAnotherClaim(t *testing.T) {
	g := NewWithT(t)
	r := verified(t, Delivery{NextAttemptAt: created})
	r.Epoch = 2
	g.Expect(r.RecordAttempt(Attempt{Number: 1, Epoch: 1, At: expires, Delivered: true})).To(Equal(ErrLeaseLost))
	g.Expect(r.Delivery).To(Equal(Delivery{NextAttemptAt: created}))
}

func TestRecordAttempt_ofASettledEvent(t *testing.T) {
	g := NewWithT(t)
	r := verified(t, Delivery{Attempts: 1, DeliveredAt: created})
	g.Expect(r.RecordAttempt(Attempt{Number: 2, At: expires, Event: r.Event()})).To(Equal(ErrStaleAttempt))
}

func TestEvictable_neverWithAnUndeliveredEvent(t *testing.T) {
	late, rested := expires.Add(100*time.Hour), expires.Add(CodeRest)
	held := func(r *Request) *Request {
		r.BodyHash = "hash"
		return r
	}
	for name, test := range map[string]struct {
		request *Request
		now     time.Time
		want    bool
	}{
		"pending":               {pending(t), created, false},
		"pending but lapsed":    {pending(t), expires.Add(ExpiryGrace), true},
		"verified, event due":   {verified(t, Delivery{NextAttemptAt: created}), late, false},
		"verified, event retry": {verified(t, Delivery{Attempts: 9, NextAttemptAt: late}), late, false},
		"verified, delivered":   {verified(t, Delivery{DeliveredAt: created}), created, true},
		"verified, exhausted":   {verified(t, Delivery{ExhaustedAt: created}), created, true},
		"verified, no event":    {verified(t, Delivery{}), verified(t, Delivery{}).VerifiedAt, true},

		"code comes back, lapsed":            {held(pending(t)), rested.Add(-1), false},
		"code comes back, lapsed, rested":    {held(pending(t)), rested, true},
		"code comes back, delivered":         {held(verified(t, Delivery{DeliveredAt: created})), rested.Add(-1), false},
		"code comes back, delivered, rested": {held(verified(t, Delivery{DeliveredAt: created})), rested, true},
		"code comes back, event retry":       {held(verified(t, Delivery{Attempts: 9, NextAttemptAt: late})), late, false},
		"code comes back, exhausted late":    {held(verified(t, Delivery{ExhaustedAt: late})), late, true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(test.request.Evictable(Limits{}, test.now)).To(Equal(test.want))
		})
	}
}

func TestRedeliver(t *testing.T) {
	g := NewWithT(t)
	later := expires.Add(time.Hour)
	waiting := pending(t)
	waiting.Hints = []Hint{{Kind: HintOtherNumber, At: created}}
	g.Expect(waiting.Event().Kind).To(Equal(EventAttention))
	g.Expect(waiting.Redeliver("id/1", later, EventKinds(15))).To(Equal(ErrNoEvent), "a later event replaces this one")

	r := verified(t, Delivery{Attempts: 1, LastStatusCode: 200, DeliveredAt: created})
	g.Expect(r.Redeliver("id/1", later, successOnly)).To(Succeed())
	g.Expect(r.Delivery).To(Equal(Delivery{NextAttemptAt: later}), "a schedule of its own")
	g.Expect(r.Redeliver("id/1", later.Add(1), successOnly)).To(Equal(ErrUnchanged), "the same wish is granted once")

	r = verified(t, Delivery{Attempts: 6, NextAttemptAt: later.Add(10 * time.Hour)})
	g.Expect(r.Redeliver("id/2", later, successOnly)).To(Succeed())
	g.Expect(r.Delivery).To(Equal(Delivery{Attempts: 5, NextAttemptAt: later}), "an event that waits goes at once, and that attempt is not counted")
	g.Expect(r.Redeliver("id/4", later.Add(time.Minute), successOnly)).To(Succeed())
	g.Expect(r.Delivery).To(Equal(Delivery{Attempts: 5, NextAttemptAt: later}), "and loses no place in the queue by another")
	g.Expect(r.Redeliver("id/3", later, NewEventKinds(EventExpired))).To(Equal(ErrNoEvent), "the project wants other events")

	r = pending(t)
	g.Expect(r.Expire(later, EventKinds(15))).To(Succeed())
	r.Delivery = Delivery{Attempts: 14, ExhaustedAt: later}
	g.Expect(r.Redeliver("id/1", later, successOnly)).To(Equal(ErrNoEvent))
	g.Expect(r.Redeliver("id/1", later, NewEventKinds(EventExpired))).To(Succeed())
	g.Expect(r.Delivery).To(Equal(Delivery{NextAttemptAt: later}))
}

// TestRecordAttempt_duringARedelivery: its client expects the event once more, so an attempt that began before does not do.
func TestRecordAttempt_duringARedelivery(t *testing.T) {
	const begun, asked, ended = time.Hour, time.Hour + time.Second, time.Hour + 2*time.Second
	at := created.Add(ended)
	record := func(r *Request, a Attempt) error {
		next, err := r.Apply(func(r *Request, _ time.Time) error { return r.RecordAttempt(a) }, at)
		if err == nil {
			*r = next
		}
		return err
	}
	for name, test := range map[string]struct {
		outcome  Attempt
		attempts int
	}{
		"the first one, delivered":     {Attempt{Number: 1, StatusCode: 204, Delivered: true}, 0},
		"delivered":                    {Attempt{StatusCode: 204, Delivered: true}, 0},
		"given up":                     {Attempt{StatusCode: 410, Reason: "gone"}, 0},
		"to be tried again in an hour": {Attempt{StatusCode: 500, Reason: "http_500", Next: at.Add(time.Hour)}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := verified(t, Delivery{Attempts: 2, LastAttemptAt: created, LastReason: "timeout", NextAttemptAt: created.Add(begun)})
			attempt := test.outcome
			attempt.At, attempt.Event = at.Add(123), r.Event() // stores keep microseconds
			if attempt.Number == 0 {
				attempt.Number = 3
			}
			r.Delivery.Attempts = attempt.Number - 1
			for _, wish := range []string{"api:1", "api:2"} {
				before := r.Clone()
				g.Expect(r.Redeliver(wish, created.Add(asked), successOnly)).To(Succeed())
				g.Expect(before.HasSameWork(r)).To(BeTrue(), "the worker keeps its lease: none other sends it meanwhile")
			}
			g.Expect(record(r, attempt)).To(Succeed())
			g.Expect(r.Delivery).To(Equal(Delivery{
				Attempts: test.attempts, LastAttemptAt: at, LastStatusCode: attempt.StatusCode, LastReason: attempt.Reason, NextAttemptAt: at,
			}))
			g.Expect(record(r, attempt)).To(MatchError(ErrStaleAttempt), "it is recorded once")
			again := Attempt{
				Number: r.Delivery.Attempts + 1, At: at.Add(time.Second), Event: r.Event(), Redelivered: "api:2", StatusCode: 204, Delivered: true,
			}
			g.Expect(record(r, again)).To(Succeed(), "two redeliveries during one attempt are one more attempt")
			g.Expect(r.Delivery.Wanted()).To(BeFalse())
		})
	}
}

func TestRecordAttempt_endedBeforeARedelivery(t *testing.T) {
	g := NewWithT(t)
	r := verified(t, Delivery{Attempts: 1, DeliveredAt: created})
	g.Expect(r.Redeliver("id/1", expires, successOnly)).To(Succeed())
	late := Attempt{Number: 1, At: expires, Event: r.Event(), Delivered: true} // of a worker that planned it before the event was delivered
	g.Expect(r.RecordAttempt(late)).To(Equal(ErrStaleAttempt))
	g.Expect(r.Delivery).To(Equal(Delivery{NextAttemptAt: expires}))
	late.Redelivered = "id/1"
	g.Expect(r.RecordAttempt(late)).To(Succeed())
}

// What is promised in numbers is tested by numbers: a constant that is tested by itself may become anything.
func TestTimes_areThosePromised(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ClockSkew).To(Equal(2 * time.Minute))
	g.Expect(ExpiryGrace).To(Equal(5 * time.Second))
	g.Expect(CodeRest).To(Equal(5 * time.Minute))
	g.Expect(EventLife).To(Equal(80 * time.Hour))
	g.Expect(promptSkew).To(Equal(5 * time.Second))
	g.Expect(MaxContacts).To(Equal(8))
	g.Expect(MaxOtherCharacters).To(Equal(40))
}

// successOnly is what most projects want to be notified of.
const successOnly = EventKinds(1)
