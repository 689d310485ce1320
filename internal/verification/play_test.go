package verification_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// The test numbers, which clients keep in their tests.
const (
	numberAtOnce   = "+12025550110"
	numberLater    = "+12025550111"
	numberExpired  = "+12025550112"
	numberHidden   = "+12025550113"
	numberOther    = "+12025550114"
	numberDeclined = "+12025550115"

	numberCodeNotSent = "+12025550116"
)

// withTests are all kinds of events, for test keys, too.
var withTests = everyEvent.WithTests()

func (w *world) testInitiation(number string) verification.Initiation {
	in := w.initiation()
	in.Test, in.Phone, in.KeyName = true, w.number(number), "staging"
	return in
}

// advance does to a request what a loop does, until it has to wait.
func (w *world) advance(id string, p verification.Policy) verification.Request {
	w.t.Helper()
	for {
		r, err := w.store.Read(w.t.Context(), id)
		w.Expect(err).NotTo(HaveOccurred())
		var mutate verification.Mutation
		switch verification.Next(&r, w.clock.Now(), p).Step {
		case verification.StepPlay:
			mutate = func(r *verification.Request, now time.Time) error { return r.Play(now, p.Kinds) }
		case verification.StepExpire:
			mutate = func(r *verification.Request, now time.Time) error { return r.Expire(now, p.Kinds) }
		default:
			return r
		}
		_, err = w.store.Update(w.t.Context(), id, mutate)
		w.Expect(err).NotTo(HaveOccurred())
	}
}

// ended is what a test request shows and reports at some time after its creation.
type ended struct {
	After  time.Duration
	Phase  verification.Phase
	Hint   verification.HintKind
	Event  string
	Proven bool
}

func TestPlay_outcomes(t *testing.T) {
	session := verification.Terms{Level: verification.LevelSession}
	code := verification.Terms{Level: verification.LevelSession, Deliver: verification.DeliverCode}
	for name, test := range map[string]struct {
		number string
		terms  verification.Terms
		want   []ended
	}{
		"verified at once": {numberAtOnce, verification.Terms{}, []ended{{0, verification.Verified, "", "test.verification.success", false}}},
		"verified later": {numberLater, verification.Terms{}, []ended{
			{5*time.Second - time.Millisecond, verification.Pending, "", "", false},
			{5 * time.Second, verification.Verified, "", "test.verification.success", false},
		}},
		"expired": {numberExpired, verification.Terms{}, []ended{
			{10*time.Second - time.Millisecond, verification.Pending, "", "", false},
			{10 * time.Second, verification.Expired, "", "test.verification.expired", false},
		}},
		"hidden number": {numberHidden, verification.Terms{}, []ended{
			{0, verification.Pending, verification.HintNumberHidden, "test.verification.attention", false},
			{10 * time.Second, verification.Expired, verification.HintNumberHidden, "test.verification.expired", false},
		}},
		"other number": {numberOther, verification.Terms{}, []ended{
			{0, verification.Pending, verification.HintOtherNumber, "test.verification.attention", false},
			{10 * time.Second, verification.Expired, verification.HintOtherNumber, "test.verification.expired", false},
		}},
		"declined": {numberDeclined, verification.Terms{}, []ended{
			{0, verification.Expired, verification.HintDeclined, "test.verification.declined", false},
		}},
		"proven at once": {numberAtOnce, session, []ended{
			{0, verification.Pending, verification.HintAwaitingConfirmation, "test.verification.attention", true},
			{10*time.Minute + verification.ConfirmGrace, verification.Expired, verification.HintAwaitingConfirmation, "test.verification.expired", true},
		}},
		"proven and declined": {numberDeclined, session, []ended{
			{0, verification.Expired, verification.HintDeclined, "test.verification.declined", true},
		}},
		"code not sent": {numberCodeNotSent, code, []ended{
			{0, verification.Pending, verification.HintCodeNotSent, "test.verification.attention", false},
			{10 * time.Second, verification.Expired, verification.HintCodeNotSent, "test.verification.expired", false},
		}},
		"that number, for a link": {numberCodeNotSent, session, []ended{
			{0, verification.Pending, "", "", false}, {10 * time.Second, verification.Expired, "", "test.verification.expired", false},
		}},
		"hidden number at level Session": {numberHidden, session, []ended{
			{0, verification.Pending, verification.HintNumberHidden, "test.verification.attention", false},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			in := w.testInitiation(test.number)
			in.Terms = test.terms
			id := w.start(in).Request.ID
			policy := verification.Policy{Retention: time.Hour, TestEvents: verification.EventsOff, Kinds: withTests}
			passed := time.Duration(0)
			for _, want := range test.want {
				w.later(want.After - passed)
				passed = want.After
				r := w.advance(id, policy)
				got := ended{want.After, r.Phase, r.HintAt(w.clock.Now()), "", r.IsProven()}
				if e := r.Event(); e.Kind != "" {
					got.Event = e.Name()
				}
				w.Expect(got).To(Equal(want))
				w.Expect(r.Delivery.Wanted()).To(Equal(want.Event != ""))
				if r.Phase == verification.Verified {
					w.Expect(r.Actual).To(Equal(r.Phone))
				}
			}
		})
	}
}

// TestPlay_happensInTimeAndOnce: a worker that is late, or that works on a live request, changes nothing.
func TestPlay_happensInTimeAndOnce(t *testing.T) {
	w := newWorld(t)
	r := w.start(w.testInitiation(numberLater)).Request
	w.Expect(r.Play(r.CreatedAt.Add(5*time.Second-1), withTests)).To(MatchError(verification.ErrUnchanged), "not yet")
	w.Expect(r.Play(r.ExpiresAt, withTests)).To(MatchError(verification.ErrUnchanged), "not any more")
	w.Expect(verification.Next(&r, r.ExpiresAt, verification.Policy{}).Step).To(Equal(verification.StepExpire))
	w.Expect(r.Play(r.ExpiresAt.Add(-1), withTests)).To(Succeed())
	w.Expect(r.Play(r.ExpiresAt.Add(-1), withTests)).To(MatchError(verification.ErrUnchanged), "once")

	in := w.initiation()
	in.Phone = w.number(numberAtOnce)
	live := w.start(in).Request
	w.Expect(live.ExpiresAt.Sub(live.CreatedAt)).To(Equal(10*time.Minute), "a live key takes the number as any other")
	w.Expect(live.Play(w.clock.Now(), withTests)).To(MatchError(verification.ErrUnchanged), "and only a message verifies it")
	w.Expect(verification.Next(&live, w.clock.Now(), verification.Policy{}).Step).To(Equal(verification.StepWait))
}

// TestPlay_eventsGoToTheirOwnReceiver (attack B9): without a receiver of test keys no event is due, whatever is sent of live ones.
func TestPlay_eventsGoToTheirOwnReceiver(t *testing.T) {
	for _, number := range []string{numberAtOnce, numberHidden, numberOther, numberDeclined} {
		w := newWorld(t)
		id := w.start(w.testInitiation(number)).Request.ID
		r := w.advance(id, verification.Policy{Events: verification.EventsOn, Kinds: everyEvent})
		w.Expect(r.Event().Kind).NotTo(BeEmpty())
		w.Expect(r.Delivery).To(BeZero(), number)
		w.Expect(everyEvent.Wants(r.Event())).To(BeFalse())
		w.Expect(withTests.Wants(r.Event())).To(BeTrue())
		if r.Phase.Final() {
			w.Expect(r.Redeliver("again", w.clock.Now(), everyEvent)).To(MatchError(verification.ErrNoEvent))
			w.Expect(r.Redeliver("again", w.clock.Now(), withTests)).To(Succeed())
			policy := verification.Policy{Events: verification.EventsOn, TestEvents: verification.EventsPaused}
			w.Expect(verification.Next(&r, w.clock.Now(), policy).Step).To(Equal(verification.StepWait), "that of others does not send it")
			policy = verification.Policy{Events: verification.EventsPaused, TestEvents: verification.EventsOn}
			w.Expect(verification.Next(&r, w.clock.Now(), policy).Step).To(Equal(verification.StepDeliver))
		}
	}
}

// TestTestRequest_meetsNoMessenger (attack B9): whatever a messenger does with the code or the id of a test key's request, it is unknown.
func TestTestRequest_meetsNoMessenger(t *testing.T) {
	w := newWorld(t)
	made := w.start(w.testInitiation(numberExpired))
	id := made.Request.ID
	before, err := w.store.Read(t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	yes := func(*verification.Request) bool { return true }
	contact := func(*verification.Request, verification.Contact) bool { return true }
	m, hidden := w.message(made.Code, numberExpired), w.message(made.Code, "")
	for name, call := range map[string]func() (verification.Receipt, error){
		"message": func() (verification.Receipt, error) { return w.service.Receive(t.Context(), m, withTests) },
		"other sender": func() (verification.Receipt, error) {
			return w.service.Receive(t.Context(), w.message(made.Code, numberOther), withTests)
		},
		"hidden":  func() (verification.Receipt, error) { return w.service.Receive(t.Context(), hidden, withTests) },
		"refused": func() (verification.Receipt, error) { return w.service.RefuseHidden(t.Context(), hidden, withTests) },
		"echo": func() (verification.Receipt, error) {
			return w.service.AwaitEcho(t.Context(), hidden, strings.Repeat("0", 32), withTests)
		},
		"echo confirmed": func() (verification.Receipt, error) {
			return w.service.ConfirmEcho(t.Context(), id, m, contact, withTests)
		},
		"echo declined": func() (verification.Receipt, error) { return w.service.Decline(t.Context(), id, m, contact, withTests) },
		"tap": func() (verification.Receipt, error) {
			return w.service.Confirm(t.Context(), id, m.Evidence, func(string) bool { return true }, withTests)
		},
		"contact": func() (verification.Receipt, error) {
			return w.service.ReceiveContact(t.Context(), m.Binding, m.Evidence, withTests)
		},
		"not me": func() (verification.Receipt, error) {
			return w.service.DeclineProven(t.Context(), id, m, yes, withTests)
		},
		"not mine": func() (verification.Receipt, error) { return w.service.DeclineAwaiting(t.Context(), m, withTests) },
	} {
		receipt, err := call()
		w.Expect(err).NotTo(HaveOccurred(), name)
		w.Expect(receipt).To(Equal(verification.Receipt{Outcome: verification.OutcomeUnknown}), name)
		w.Expect(w.store.Read(t.Context(), id)).To(Equal(before), name)
	}
}

// TestStatusFor_hidesTheOtherMode (attack B9), both ways.
func TestStatusFor_hidesTheOtherMode(t *testing.T) {
	w := newWorld(t)
	test, live := w.start(w.testInitiation(numberAtOnce)).Request.ID, w.start(w.initiation()).Request.ID
	for id, isTest := range map[string]bool{test: true, live: false} {
		own, err := w.service.StatusFor(t.Context(), id, isTest)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(own.Test).To(Equal(isTest))
		other, err := w.service.StatusFor(t.Context(), id, !isTest)
		w.Expect(err).To(Equal(verification.ErrNotFound), "as an id that does not exist")
		w.Expect(other).To(BeZero())
	}
}

// TestConfirmSession_ofTestKeys: six fixed digits confirm a test key's request, for test keys alone, and no live one.
func TestConfirmSession_ofTestKeys(t *testing.T) {
	w := newWorld(t)
	in := w.testInitiation(numberAtOnce)
	in.Terms.Level = verification.LevelSession
	id := w.start(in).Request.ID
	zeros, _ := verification.ParseSessionCode(verification.TestDigits)
	wrong, _ := verification.ParseSessionCode("111111")
	secrets := func(r *verification.Request) verification.CodeSecrets {
		if r.Test {
			return verification.CodeSecrets{Session: verification.TestSecrets(), Delivered: verification.TestSecrets()}
		}
		return sessionSecrets(r)
	}
	confirm := func(id string, testKey bool, code verification.SessionCode) error {
		_, err := w.service.ConfirmSession(t.Context(), id, testKey, code, secrets, withTests)
		return err
	}
	var shown *verification.Error
	w.Expect(errors.As(confirm(id, true, zeros), &shown)).To(BeTrue())
	w.Expect(shown.Code).To(Equal(verification.CodeNotProven), "as of a live one before the message")
	w.advance(id, verification.Policy{Kinds: withTests})
	w.Expect(confirm(id, false, zeros)).To(MatchError(verification.ErrNotFound))
	w.Expect(confirm(id, false, wrong)).To(MatchError(verification.ErrNotFound), "and a live key uses up no try")
	w.Expect(confirm(id, true, wrong)).To(MatchError(verification.ErrWrongCode))
	r, err := w.store.Read(t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(r.WrongCodes).To(Equal(1))
	w.Expect(confirm(id, true, zeros)).To(Succeed())

	live := w.proveSession()
	w.Expect(confirm(live, true, zeros)).To(MatchError(verification.ErrNotFound))
	w.Expect(confirm(live, false, zeros)).To(MatchError(verification.ErrWrongCode), "no live request has the digits of all test keys")
}

// proveSession returns the id of a live request that awaits its confirmation.
func (w *world) proveSession() string {
	w.t.Helper()
	in := w.initiation()
	in.Terms.Level = verification.LevelSession
	made := w.start(in)
	outcome, _ := w.receive(w.message(made.Code, "+4915112345678"))
	w.Expect(outcome).To(Equal(verification.OutcomeProven))
	return made.Request.ID
}

// TestInitiate_ofTestKeys: a test key takes no other number, and no retry of one mode gets a request of the other.
func TestInitiate_ofTestKeys(t *testing.T) {
	w := newWorld(t)
	var shown *verification.Error
	for _, number := range []string{"+4915112345678", "+12025550119"} {
		_, err := w.service.Initiate(t.Context(), w.testInitiation(number))
		w.Expect(errors.As(err, &shown)).To(BeTrue())
		w.Expect(shown.Code).To(Equal(verification.CodeNoTestNumber))
		w.Expect(shown.Field).To(Equal("phoneNumber"))
		w.Expect(shown.Error()).NotTo(ContainSubstring(number[1:]))
	}
	for _, e := range verification.TestNumbers() {
		w.Expect(w.start(w.testInitiation(e.Number.E164())).Request.Test).To(BeTrue())
	}

	live, test := w.initiation(), w.testInitiation(numberAtOnce)
	live.Phone, live.KeyName = test.Phone, test.KeyName // the key, whose mode changes
	for _, in := range []*verification.Initiation{&live, &test} {
		in.IdempotencyKey, in.HasIdempotencyKey = "order 7", true
	}
	first, changed := w.start(live), w.start(test)
	w.Expect(changed.Existing).To(BeFalse(), "a key whose mode changes does not get the live request of a first try")
	w.Expect(changed.Request.ID).NotTo(Equal(first.Request.ID))
	w.Expect(w.start(test).Request.ID).To(Equal(changed.Request.ID))
	w.Expect(w.start(live).Request.Test).To(BeFalse())
}

// TestTestRequest_isNoActivity: neither the silence of a messenger nor a cool-down of a number follows from test keys.
func TestTestRequest_isNoActivity(t *testing.T) {
	w := newWorld(t)
	limits := verification.Limits{
		DeclineCooldown: time.Hour, PerPhoneNumber: verification.Rate{Requests: 1, Period: time.Hour},
		PerPrefix: verification.PrefixRate{Rate: verification.Rate{Requests: 1, Period: time.Hour}, Digits: 3},
	}
	var activity verification.Activity
	for range 3 {
		r := w.advance(w.start(w.testInitiation(numberDeclined)).Request.ID, verification.Policy{Kinds: withTests})
		w.Expect(r.DeclinedAt()).NotTo(BeZero())
		activity.Count(&r, r.CreatedAt.Add(-time.Hour))
	}
	w.Expect(activity).To(BeZero())
	live := w.initiation()
	live.Phone, live.Limits = w.number(numberDeclined), limits
	w.Expect(w.start(live).Request.Test).To(BeFalse(), "test requests count for no limit of a number, and cool none down")
	w.Expect(w.service.Initiate(t.Context(), live)).Error().To(HaveOccurred())
}
