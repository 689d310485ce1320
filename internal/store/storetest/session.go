package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func sessionChecks() []check {
	return []check{
		{name: "keeps the terms of a request, through every way to read it", run: sessionTerms},
		{name: "keeps a proven request pending, for a replica that starts later, too", run: sessionPending},
		{name: "finds the proven request of a sender who shared a contact", run: sessionAwaiting},
		{name: "keeps the prover of a request who is bound to a later one", run: sessionLaterBinding},
		{name: "confirms a request once, whichever replicas redeem its code", run: sessionConfirmedOnce},
		{name: "counts wrong codes exactly among replicas, and ends once", run: sessionWrongCodes},
		{name: "changes nothing for a right code that is only checked", run: sessionChecked},
		{name: "ends in one final state when a confirmation races with a cancellation", run: sessionCanceled},
		{name: "gives a request that is proven late two minutes more", needs: SteppedClock, run: sessionLate},
		{name: "hands out the end of a request that is proven late on time", needs: Queue | SteppedClock, run: sessionLateQueue},
		{name: "evicts no request that is proven late before its end", needs: Cap | SteppedClock, run: sessionLateCap},
		{name: "has one creator of a request with a code, whose code alone is sent", run: codeSentOnce},
	}
}

// sessionSecret is what the session codes of the checks are made with.
var sessionSecret = []byte("a secret that only servers know")

// newSession returns a creation of a request that a client must confirm.
func (t *trial) newSession() verification.New {
	n := t.newCreation()
	n.Terms = verification.Terms{Level: verification.LevelSession, Purpose: "sign-in", Browser: "CHROME/WINDOWS"}
	return n
}

// createProven stores a request of LevelSession whose number is proven.
func (t *trial) createProven(ctx context.Context, s verification.Store, n verification.New) verification.Request {
	ginkgo.GinkgoHelper()
	return t.proveRequest(ctx, s, t.createRequest(ctx, s, n).ID, 0)
}

func (t *trial) proveRequest(ctx context.Context, s verification.Store, id string, wanted verification.EventKinds) verification.Request {
	ginkgo.GinkgoHelper()
	proven := t.updateRequest(ctx, s, id, func(r *verification.Request, now time.Time) error {
		return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, wanted)
	})
	t.Expect(proven.IsProven()).To(BeTrue())
	t.Expect(proven.Phase).To(Equal(verification.Pending))
	return proven
}

// declineRequest ends a proven request by its prover's answer "Not me".
func (t *trial) declineRequest(ctx context.Context, s verification.Store, id string) verification.Request {
	ginkgo.GinkgoHelper()
	return t.updateRequest(ctx, s, id, func(r *verification.Request, now time.Time) error {
		return r.DeclineProven(func(*verification.Request) bool { return true }, now, 0)
	})
}

// sessionService is the operations of a replica on session codes.
type sessionService struct {
	*verification.Service

	codes verification.SessionCodes
}

func (t *trial) serveSession(s verification.Store, r verification.Request) sessionService {
	return sessionService{verification.NewService(t.project, s), t.project.SessionCodes(sessionSecret, &r)}
}

func sessionSecrets(*verification.Request) verification.CodeSecrets {
	return verification.CodeSecrets{Session: [][]byte{sessionSecret}, Delivered: [][]byte{sessionSecret}}
}

// Match returns what finds that match for every request.
func Match(match verification.CodeMatch) func(*verification.Request) (verification.CodeMatch, error) {
	return func(*verification.Request) (verification.CodeMatch, error) { return match, nil }
}

// redeem confirms a request with one of its codes.
func (s sessionService) redeem(ctx context.Context, id string) (verification.Request, error) {
	code, _ := verification.ParseSessionCode(s.codes.Digits.Reveal())
	return s.ConfirmSession(ctx, id, false, code, sessionSecrets, allEvents)
}

// guess enters a wrong code.
func (s sessionService) guess(ctx context.Context, id string) (verification.Request, error) {
	digits := []byte(s.codes.Digits.Reveal())
	digits[0] = '0' + (digits[0]-'0'+1)%10
	code, _ := verification.ParseSessionCode(string(digits))
	return s.ConfirmSession(ctx, id, false, code, sessionSecrets, allEvents)
}

// check enters a right code on the page.
func (s sessionService) check(ctx context.Context, id string) (verification.Request, error) {
	code, _ := verification.ParseSessionCode(s.codes.Digits.Reveal())
	return s.CheckSessionCode(ctx, id, code, sessionSecrets, allEvents)
}

func sessionTerms(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	for _, terms := range []verification.Terms{
		{Level: verification.LevelSession}, {Purpose: "sign-in"}, {Browser: "APP/IOS"},
		{Level: verification.LevelSession, Purpose: "sign-in", Browser: "CHROME/WINDOWS"}, {},
	} {
		n := t.newKeyed()
		n.Terms = terms
		t.Expect(t.createRequest(ctx, a, n).Terms).To(Equal(terms))
		t.Expect(t.getRequest(ctx, b, n.ID).Terms).To(Equal(terms))
		t.Expect(t.peekRequest(ctx, b, n.ID).Terms).To(Equal(terms))
		existing, err := b.Create(ctx, n, verification.Limits{})
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(existing.Request.Terms).To(Equal(terms))
		t.Expect(t.updateRequest(ctx, b, n.ID, bindSender("sender")).Terms).To(Equal(terms))
		t.Expect(t.getRequest(ctx, a, n.ID).Terms).To(Equal(terms))
		_, err = a.Update(ctx, n.ID, func(r *verification.Request, _ time.Time) error {
			r.Terms.Purpose += "x"
			return nil
		})
		t.Expect(err).To(MatchError(verification.ErrContent), "they never change")
	}
}

func sessionPending(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	proven := t.createProven(ctx, a, t.newSession())
	t.Expect(proven.Actual).To(Equal(proven.Phone))
	t.Expect(proven.HintAt(proven.ProvenAt)).To(Equal(verification.HintAwaitingConfirmation))
	later := t.openReplica()
	for _, s := range []verification.Store{a, b, later} {
		t.Expect(t.getRequest(ctx, s, proven.ID)).To(equalRequest(proven))
		_, err := s.Update(ctx, proven.ID, verifyClaimed(true))
		t.Expect(err).To(MatchError(verification.ErrFinal), "another message changes nothing")
	}
	confirmed, err := t.serveSession(later, proven).redeem(ctx, proven.ID)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(confirmed.Phase).To(Equal(verification.Verified))
	t.Expect(confirmed.ShownAssurance()).To(Equal(verification.AssuranceSession))
	t.Expect(t.getRequest(ctx, a, proven.ID)).To(equalRequest(confirmed))
	for _, s := range []verification.Store{a, b, later} {
		_, err := t.serveSession(s, proven).redeem(ctx, proven.ID)
		t.Expect(err).To(haveCode(verification.CodeAlreadyConfirmed))
		_, err = t.serveSession(s, proven).guess(ctx, proven.ID)
		t.Expect(err).To(haveCode(verification.CodeAlreadyConfirmed))
	}
	t.Expect(t.getRequest(ctx, b, proven.ID)).To(equalRequest(confirmed))
}

// sessionAwaiting proves a request by a contact. The prover alone stays bound to it, and may decline.
func sessionAwaiting(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	id := t.createRequest(ctx, a, t.newSession()).ID
	t.bindLater(ctx, a, id, "anna")
	t.bindLater(ctx, a, id, "bruno")
	t.updateRequest(ctx, b, id, func(r *verification.Request, now time.Time) error {
		return r.VerifyContact(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, "anna", now, 0)
	})
	proven := t.getRequest(ctx, a, id)
	t.expectAwaiting(ctx, "anna", proven)
	t.expectNotAwaiting(ctx, "bruno")
	message := verification.Message{Binding: "bruno"}
	receipt, err := verification.NewService(t.project, a).DeclineAwaiting(ctx, message, 0)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(receipt.Outcome).To(Equal(verification.OutcomeUnknown), "the others learn nothing")
	t.Expect(t.getRequest(ctx, b, id)).To(equalRequest(proven))
	message.Binding = "anna"
	receipt, err = verification.NewService(t.project, a).DeclineAwaiting(ctx, message, 0)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(receipt.Outcome).To(Equal(verification.OutcomeDeclined))
	declined := t.getRequest(ctx, b, id)
	t.Expect(declined.DeclinedAt()).To(BeTemporally(">=", proven.ProvenAt))
}

// sessionLaterBinding has a prover open a later link: contacts are for the later request, and the earlier may still be declined.
func sessionLaterBinding(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	early, late := t.createRequest(ctx, a, t.newSession()), t.createRequest(ctx, b, t.newSession())
	shareContact := func(r *verification.Request, now time.Time) error {
		return r.VerifyContact(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, "anna", now, 0)
	}
	t.bindLater(ctx, a, early.ID, "anna")
	proven := t.updateRequest(ctx, a, early.ID, shareContact)
	t.bindLater(ctx, b, late.ID, "anna")
	t.expectAwaiting(ctx, "anna", late)
	t.Expect(t.getRequest(ctx, a, early.ID)).To(equalRequest(proven))
	t.updateRequest(ctx, a, late.ID, shareContact)
	t.expectAwaiting(ctx, "anna", late)
	isProver := func(r *verification.Request) bool { return !r.BoundAt("anna").IsZero() }
	receipt, err := verification.NewService(t.project, b).DeclineProven(ctx, early.ID, verification.Message{Binding: "anna"}, isProver, 0)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(receipt.Outcome).To(Equal(verification.OutcomeDeclined))
	t.expectAwaiting(ctx, "anna", late)
}

// sessionConfirmedOnce is a race of two for the same code, with replicas that knew the request before.
func sessionConfirmedOnce(ctx context.Context, t *trial) {
	stores := t.openReplicas(2)
	for range rounds {
		proven := t.createProven(ctx, stores[0], t.newSession())
		results, errs := runRacers(len(stores), func(i int) (verification.Request, error) {
			return t.serveSession(stores[i], proven).redeem(ctx, proven.ID)
		})
		stored := t.getRequest(ctx, stores[0], proven.ID)
		t.Expect(stored.Phase).To(Equal(verification.Verified))
		t.Expect(stored.Delivery.Wanted()).To(BeTrue(), "its event is due")
		winners := 0
		for i, err := range errs {
			if err == nil {
				winners++
			} else {
				t.Expect(err).To(haveCode(verification.CodeAlreadyConfirmed))
			}
			t.Expect(results[i]).To(equalRequest(stored))
		}
		t.Expect(winners).To(Equal(1), "redemptions")
	}
}

// sessionWrongCodes enters 50 wrong codes at four replicas at once.
func sessionWrongCodes(ctx context.Context, t *trial) {
	const tries = 50
	stores := t.openReplicas(4)
	proven := t.createProven(ctx, stores[0], t.newSession())
	results, errs := runRacers(tries, func(i int) (verification.Request, error) {
		return t.serveSession(stores[i%len(stores)], proven).guess(ctx, proven.ID)
	})
	stored := t.getRequest(ctx, stores[1], proven.ID)
	t.Expect(stored.WrongCodes).To(Equal(verification.MaxConfirmTries))
	t.Expect(stored.Phase).To(Equal(verification.Expired))
	t.Expect(stored.Event().Hint).To(Equal(verification.HintWrongCode))
	counts := map[int]int{}
	for i, err := range errs {
		if errors.Is(err, verification.ErrWrongCode) {
			counts[results[i].WrongCodes]++
			if results[i].WrongCodes == verification.MaxConfirmTries {
				t.Expect(results[i].Phase).To(Equal(verification.Expired))
			} else {
				t.Expect(results[i].Phase).To(Equal(verification.Pending))
			}
			continue
		}
		t.Expect(err).To(haveCode(verification.CodeRequestExpired))
		t.Expect(results[i]).To(equalRequest(stored))
	}
	t.Expect(counts).To(Equal(map[int]int{1: 1, 2: 1, 3: 1, 4: 1, 5: 1}), "each try that counts gets its own number")
	for _, s := range stores {
		_, err := t.serveSession(s, proven).redeem(ctx, proven.ID)
		t.Expect(err).To(haveCode(verification.CodeRequestExpired), "the right code comes too late")
	}
	t.Expect(t.getRequest(ctx, stores[2], proven.ID)).To(equalRequest(stored))
}

// sessionChecked checks a right code at a replica that has not heard of the latest write. What it returns is the present state.
func sessionChecked(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	proven := t.createProven(ctx, a, t.newSession())
	for i := range verification.MaxConfirmTries - 1 {
		counted, err := t.serveSession(a, proven).guess(ctx, proven.ID)
		t.Expect(err).To(haveCode(verification.CodeWrongCode))
		t.Expect(counted.WrongCodes).To(Equal(i + 1))
		for _, s := range []verification.Store{b, a} {
			checked, err := t.serveSession(s, proven).check(ctx, proven.ID)
			t.Expect(err).NotTo(HaveOccurred())
			t.Expect(checked).To(equalRequest(counted))
		}
	}
	t.declineRequest(ctx, a, proven.ID)
	_, err := t.serveSession(b, proven).check(ctx, proven.ID)
	t.Expect(err).To(haveCode(verification.CodeRequestExpired), "a code of a request that ended is not right")
}

func sessionCanceled(ctx context.Context, t *trial) {
	stores := t.openReplicas(2)
	for range rounds {
		proven := t.createProven(ctx, stores[0], t.newSession())
		_, errs := runRacers(2, func(i int) (verification.Request, error) {
			if i == 0 {
				return t.serveSession(stores[0], proven).redeem(ctx, proven.ID)
			}
			return verification.NewService(t.project, stores[1]).Cancel(ctx, proven.ID, allEvents)
		})
		stored := t.getRequest(ctx, stores[0], proven.ID)
		if stored.Phase == verification.Verified {
			t.Expect(errs).To(HaveExactElements(BeNil(), MatchError(verification.ErrFinal)))
			continue
		}
		t.Expect(errs).To(HaveExactElements(haveCode(verification.CodeRequestExpired), BeNil()))
		t.Expect(stored.Event()).To(And(HaveField("Kind", verification.EventExpired), HaveField("Hint", verification.HintCanceled)))
		t.Expect(stored.Delivery.Wanted()).To(BeTrue())
		t.Expect(stored.DeclinedAt()).To(BeZero(), "it says nothing about the number")
		again, err := verification.NewService(t.project, stores[0]).Cancel(ctx, proven.ID, allEvents)
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(again).To(equalRequest(stored))
	}
}

// createLate stores a request that is proven so long before its ExpiresAt, and passes the time until that proof.
func (t *trial) createLate(
	ctx context.Context, s verification.Store, before time.Duration, wanted verification.EventKinds,
) verification.Request {
	ginkgo.GinkgoHelper()
	r := t.createRequest(ctx, s, t.newSession())
	t.passTime(ctx, r.ExpiresAt.Add(-before).Sub(t.readClock(ctx, s, r.ID)))
	return t.proveRequest(ctx, s, r.ID, wanted)
}

// passUntil lets time pass until at.
func (t *trial) passUntil(ctx context.Context, s verification.Store, id string, at time.Time) {
	ginkgo.GinkgoHelper()
	t.passTime(ctx, at.Sub(t.readClock(ctx, s, id)))
}

// lateProofs are how long before ExpiresAt a request is proven, and how much longer it then lasts.
var lateProofs = []struct{ before, longer time.Duration }{
	{verification.ConfirmGrace, 0},
	{verification.ConfirmGrace - time.Microsecond, verification.ConfirmGrace},
	{time.Microsecond, verification.ConfirmGrace},
}

func sessionLate(ctx context.Context, t *trial) {
	for _, late := range lateProofs {
		a, b := t.openReplica(), t.openReplica()
		what := fmt.Sprintf("proven %s before its expiresAt", late.before)
		lapsing := t.createLate(ctx, a, late.before, 0)
		confirmed := t.createLate(ctx, a, late.before, 0)
		t.passUntil(ctx, a, confirmed.ID, confirmed.ExpiresAt.Add(late.longer-time.Microsecond))
		redeemed, err := t.serveSession(b, confirmed).redeem(ctx, confirmed.ID)
		t.Expect(err).NotTo(HaveOccurred(), what)
		t.Expect(redeemed.Phase).To(Equal(verification.Verified), what)

		last := t.createLate(ctx, a, late.before, 0)
		t.passUntil(ctx, a, last.ID, last.ExpiresAt.Add(late.longer))
		_, err = t.serveSession(b, last).redeem(ctx, last.ID)
		t.Expect(err).To(haveCode(verification.CodeRequestExpired), what)
		t.passUntil(ctx, a, last.ID, last.ExpiresAt.Add(late.longer+verification.ExpiryGrace-time.Microsecond))
		t.Expect(t.updateRequest(ctx, b, last.ID, expireLapsed)).To(equalRequest(last), what)
		t.passTime(ctx, time.Microsecond)
		t.Expect(t.updateRequest(ctx, b, last.ID, expireLapsed).Phase).To(Equal(verification.Expired), what)
		t.Expect(t.updateRequest(ctx, b, lapsing.ID, expireLapsed).Phase).To(Equal(verification.Expired), what)
	}
}

// sessionLateQueue follows requests that are proven late by sweeps and claims, with an event that is wanted and without, sent and not.
func sessionLateQueue(ctx context.Context, t *trial) {
	for _, late := range lateProofs {
		for _, c := range []struct {
			name      string
			kinds     verification.EventKinds
			events    verification.EventPolicy
			delivered bool
		}{
			{name: "no event", events: verification.EventsOn},
			{name: "an event that is delivered", kinds: allEvents, events: verification.EventsOn, delivered: true},
			{name: "an event that is never delivered", kinds: allEvents, events: verification.EventsOn},
			{name: "paused events", kinds: allEvents, events: verification.EventsPaused},
			{name: "no webhook any more", kinds: allEvents, events: verification.EventsOff},
		} {
			what := fmt.Sprintf("proven %s before its expiresAt, with %s", late.before, c.name)
			policy := verification.Policy{Retention: time.Hour, Events: c.events, Kinds: c.kinds}
			t.followLate(ctx, what, late.before, late.longer, policy, c.delivered)
		}
	}
}

func (t *trial) followLate(
	ctx context.Context, what string, before, longer time.Duration, policy verification.Policy, delivered bool,
) {
	ginkgo.GinkgoHelper()
	s := t.openReplica()
	r := t.createLate(ctx, s, before, policy.Kinds)
	if policy.Kinds != 0 && policy.Events == verification.EventsOn {
		claims := t.claimWork(ctx, s, policy, manyRequests, 24*time.Hour)
		t.Expect(requestIDs(claims)).To(Equal([]string{r.ID}), what)
		record := recordFailed(claims[0], r.ExpiresAt.Add(time.Hour))
		if delivered {
			record = recordDelivered(claims[0])
		}
		t.updateRequest(ctx, s, r.ID, record)
	}
	end := r.ExpiresAt.Add(longer + verification.ExpiryGrace)
	t.passUntil(ctx, s, r.ID, end.Add(-time.Microsecond))
	swept, err := t.harness.Queue(s).Sweep(ctx, policy, manyRequests)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(swept).To(BeZero(), what)
	t.Expect(t.claimWork(ctx, s, policy, manyRequests, 24*time.Hour)).To(BeEmpty(), what)
	t.passTime(ctx, time.Microsecond)
	swept, err = t.harness.Queue(s).Sweep(ctx, policy, manyRequests)
	t.Expect(err).NotTo(HaveOccurred())
	if swept.Expired == 0 {
		t.Expect(requestIDs(t.claimWork(ctx, s, policy, manyRequests, 24*time.Hour))).To(Equal([]string{r.ID}), what)
		t.updateRequest(ctx, s, r.ID, func(r *verification.Request, now time.Time) error { return r.Expire(now, policy.Kinds) })
	}
	expired := t.getRequest(ctx, s, r.ID)
	t.Expect(expired.Phase).To(Equal(verification.Expired), what)
	t.Expect(expired.Event().At).To(BeTemporally("==", r.ExpiresAt.Add(longer)), what)
	t.Expect(expired.Actual).To(Equal(r.Actual), "what was proven stays")
	if expired.Delivery.Wanted() {
		t.updateRequest(ctx, s, r.ID, recordDelivered(expired))
	}
	t.passUntil(ctx, s, r.ID, end.Add(policy.Retention-time.Microsecond))
	t.Expect(t.claimWork(ctx, s, policy, manyRequests, 24*time.Hour)).To(BeEmpty(), what)
	t.passTime(ctx, time.Microsecond)
	claims := t.claimWork(ctx, s, policy, manyRequests, 24*time.Hour)
	t.Expect(requestIDs(claims)).To(Equal([]string{r.ID}), what)
	t.Expect(s.Delete(ctx, r.ID, claims[0].Version)).To(Succeed())
}

func sessionLateCap(ctx context.Context, t *trial) {
	s := t.openReplica()
	late := t.createLate(ctx, s, time.Minute, 0)
	limits := verification.Limits{MaxStored: 1}
	t.passUntil(ctx, s, late.ID, late.ExpiresAt.Add(verification.ConfirmGrace+verification.ExpiryGrace-time.Microsecond))
	t.expectRefused(ctx, s, t.newLasting(), limits, verification.CodeTooManyStored)
	t.Expect(t.getRequest(ctx, s, late.ID)).To(equalRequest(late))
	t.passTime(ctx, time.Microsecond)
	t.expectAdmitted(ctx, s, t.newLasting(), limits)
	t.harness.Settle()
	t.expectGone(ctx, s, late.ID)
}
