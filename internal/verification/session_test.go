package verification_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

var sessionSecret = []byte("a secret that the pods mount")

// sessionSecrets has the present secret and a former one.
func sessionSecrets(*verification.Request) verification.CodeSecrets {
	all := [][]byte{sessionSecret, []byte("the secret before")}
	return verification.CodeSecrets{Session: all, Delivered: all}
}

// steps records the steps that an observer was notified of.
type steps struct {
	all      []verification.SessionStep
	verified int
}

func (*steps) CodeRedeemed(*verification.Request)            {}
func (*steps) Started(verification.Method)                   {}
func (s *steps) Verified(verification.Method, time.Duration) { s.verified++ }
func (*steps) TestStarted(verification.TestOutcome)          {}
func (s *steps) SessionStep(step verification.SessionStep)   { s.all = append(s.all, step) }

// startSession starts a request of LevelSession, and records its steps.
func (w *world) startSession() (verification.Initiated, *steps) {
	w.t.Helper()
	seen := &steps{}
	w.service.Observer = seen
	in := w.initiation()
	in.Terms = verification.Terms{Level: verification.LevelSession, Purpose: "sign-in", Browser: "CHROME/WINDOWS"}
	in.RequestedTerms = in.Terms
	return w.start(in), seen
}

func (w *world) codesOf(r *verification.Request) verification.SessionCodes {
	return verification.NewCodeSpace(projectName).SessionCodes(sessionSecret, r)
}

func (w *world) confirm(id, text string) (verification.Request, error) {
	w.t.Helper()
	code, ok := verification.ParseSessionCode(text)
	w.Expect(ok).To(BeTrue(), "a code by its form")
	return w.service.ConfirmSession(w.t.Context(), id, false, code, sessionSecrets, everyEvent)
}

// otherDigits returns the n-th of the codes of six digits that are wrong.
func otherDigits(codes verification.SessionCodes, n int) string {
	var right int
	if _, err := fmt.Sscanf(codes.Digits.Reveal(), "%d", &right); err != nil {
		panic(err)
	}
	return fmt.Sprintf("%06d", (right+n)%1_000_000)
}

func TestSession_isVerifiedByItsCodeAlone(t *testing.T) {
	for _, kind := range []string{"digits", "return code"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			initiated, seen := w.startSession()
			id, codes := initiated.Request.ID, w.codesOf(&initiated.Request)
			entered := codes.Digits.Reveal()
			if kind == "return code" {
				entered = codes.Return.Reveal()
			}
			_, err := w.confirm(id, entered)
			w.Expect(codeOf(err)).To(Equal(verification.CodeNotProven), "even the right code, before the message came")

			outcome, proven := w.receive(w.message(initiated.Code, claimed))
			w.Expect(outcome).To(Equal(verification.OutcomeProven))
			w.Expect(proven.Phase).To(Equal(verification.Pending))
			w.Expect(proven.VerifiedAt).To(BeZero())
			w.Expect(proven.ProvenAt).To(Equal(w.clock.Now()))
			w.Expect(proven.Actual.E164()).To(Equal(claimed))
			w.Expect(w.readHint(id)).To(Equal(verification.HintAwaitingConfirmation))
			w.Expect(seen.verified).To(BeZero())

			outcome, _ = w.receive(w.message(initiated.Code, claimed))
			w.Expect(outcome).To(Equal(verification.OutcomeProven), "a copy")
			outcome, _ = w.receive(w.message(initiated.Code, stranger))
			w.Expect(outcome).To(Equal(verification.OutcomeWrongNumber))
			w.Expect(w.readStored(id)).To(Equal(proven), "and nothing else changes it")

			w.later(time.Minute)
			confirmed, err := w.confirm(id, entered)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(confirmed.Phase).To(Equal(verification.Verified))
			w.Expect(confirmed.VerifiedAt).To(Equal(w.clock.Now()))
			w.Expect(confirmed.ShownAssurance()).To(Equal(verification.AssuranceSession))
			w.Expect(confirmed.Event()).To(Equal(verification.Event{Kind: verification.EventSuccess, At: w.clock.Now()}))
			w.Expect(confirmed.Delivery.Wanted()).To(BeTrue())
			w.Expect(w.readStored(id)).To(Equal(confirmed))

			_, err = w.confirm(id, entered)
			w.Expect(codeOf(err)).To(Equal(verification.CodeAlreadyConfirmed), "it is redeemed once")
			outcome, _ = w.receive(w.message(initiated.Code, claimed))
			w.Expect(outcome).To(Equal(verification.OutcomeVerified), "a copy that comes late")
			w.Expect(seen.all).To(Equal([]verification.SessionStep{
				verification.SessionStarted, verification.SessionProven, verification.SessionConfirmed,
			}))
			w.Expect(seen.verified).To(Equal(1))
		})
	}
}

func TestSession_acceptsACodeOfTheFormerSecret(t *testing.T) {
	w := newWorld(t)
	initiated, _ := w.startSession()
	w.receive(w.message(initiated.Code, claimed))
	former := verification.NewCodeSpace(projectName).SessionCodes([]byte("the secret before"), &initiated.Request)
	_, err := w.confirm(initiated.Request.ID, former.Digits.Reveal())
	w.Expect(err).NotTo(HaveOccurred())
}

// Without a secret nothing is confirmed, and no right code is counted as wrong.
func TestSession_withoutASecretConfirmsAndCountsNothing(t *testing.T) {
	w := newWorld(t)
	initiated, _ := w.startSession()
	id := initiated.Request.ID
	confirm := func(code string) (verification.Request, error) {
		parsed, _ := verification.ParseSessionCode(code)
		return w.service.ConfirmSession(t.Context(), id, false, parsed, func(*verification.Request) verification.CodeSecrets { return verification.CodeSecrets{} }, everyEvent)
	}
	unkeyed := verification.NewCodeSpace(projectName).SessionCodes(nil, &initiated.Request)
	_, err := confirm(unkeyed.Return.Reveal())
	w.Expect(codeOf(err)).To(Equal(verification.CodeNotProven))
	w.receive(w.message(initiated.Code, claimed))
	for range verification.MaxConfirmTries + 1 {
		for _, code := range []string{unkeyed.Return.Reveal(), w.codesOf(&initiated.Request).Return.Reveal()} {
			request, err := confirm(code)
			w.Expect(codeOf(err)).To(Equal(verification.CodeChannelNotReady))
			w.Expect(request).To(BeZero(), "as where the store does not answer")
		}
	}
	w.Expect(w.readStored(id).WrongCodes).To(BeZero())
	_, err = w.confirm(id, w.codesOf(&initiated.Request).Return.Reveal())
	w.Expect(err).NotTo(HaveOccurred())
	_, err = confirm(unkeyed.Return.Reveal())
	w.Expect(codeOf(err)).To(Equal(verification.CodeAlreadyConfirmed))
}

func TestSession_fiveWrongCodesEndIt(t *testing.T) {
	w := newWorld(t)
	initiated, seen := w.startSession()
	id, codes := initiated.Request.ID, w.codesOf(&initiated.Request)
	for range 10 {
		_, err := w.confirm(id, otherDigits(codes, 1))
		w.Expect(codeOf(err)).To(Equal(verification.CodeNotProven), "a guess before the proof is none")
	}
	w.receive(w.message(initiated.Code, claimed))
	for try := 1; try < verification.MaxConfirmTries; try++ {
		enter := w.confirm
		if try%2 == 0 { // the page counts, too
			enter = w.check
		}
		refused, err := enter(id, otherDigits(codes, try))
		w.Expect(codeOf(err)).To(Equal(verification.CodeWrongCode))
		w.Expect(err.Error()).To(ContainSubstring(fmt.Sprintf("left: %d", verification.MaxConfirmTries-try)))
		w.Expect(refused.WrongCodes).To(Equal(try))
		w.Expect(refused.Phase).To(Equal(verification.Pending))
	}
	_, err := w.check(id, codes.Digits.Reveal())
	w.Expect(err).NotTo(HaveOccurred(), "the right one is still right, and only shown to be")
	w.later(time.Second)
	ended, err := w.confirm(id, otherDigits(codes, 7))
	w.Expect(codeOf(err)).To(Equal(verification.CodeWrongCode))
	w.Expect(ended.Phase).To(Equal(verification.Expired))
	w.Expect(ended.Event()).To(Equal(verification.Event{
		Kind: verification.EventExpired, Hint: verification.HintWrongCode, At: w.clock.Now(),
	}))
	w.Expect(ended.Delivery.Wanted()).To(BeTrue())
	w.Expect(ended.DeclinedAt()).To(BeZero(), "the number is not cooled down")
	for _, entered := range []string{codes.Digits.Reveal(), codes.Return.Reveal()} {
		_, err = w.confirm(id, entered)
		w.Expect(codeOf(err)).To(Equal(verification.CodeRequestExpired))
	}
	w.Expect(w.readHint(id)).To(Equal(verification.HintWrongCode))
	w.later(time.Hour)
	w.receive(w.message(initiated.Code, claimed))
	w.Expect(w.readStored(id)).To(Equal(ended), "a message after that is no hint")
	w.Expect(seen.all).To(Equal([]verification.SessionStep{
		verification.SessionStarted, verification.SessionProven, verification.SessionWrongCode, verification.SessionWrongCode,
		verification.SessionWrongCode, verification.SessionWrongCode, verification.SessionWrongCode, verification.SessionTriesUsedUp,
	}))
}

// check enters a code on the page.
func (w *world) check(id, text string) (verification.Request, error) {
	w.t.Helper()
	code, ok := verification.ParseSessionCode(text)
	w.Expect(ok).To(BeTrue(), "a code by its form")
	return w.service.CheckSessionCode(w.t.Context(), id, code, sessionSecrets, everyEvent)
}

func TestSession_countsExactlyFiveGuessesAtOnce(t *testing.T) {
	w := newWorld(t)
	initiated, _ := w.startSession()
	id, codes := initiated.Request.ID, w.codesOf(&initiated.Request)
	w.receive(w.message(initiated.Code, claimed))
	w.service.Observer = nil
	var wait sync.WaitGroup
	outcomes := make(chan verification.ErrorCode, 50)
	for n := 1; n <= cap(outcomes); n++ {
		wait.Go(func() {
			code, _ := verification.ParseSessionCode(otherDigits(codes, n))
			_, err := w.service.ConfirmSession(t.Context(), id, false, code, sessionSecrets, everyEvent)
			outcomes <- codeOf(err)
		})
	}
	wait.Wait()
	close(outcomes)
	counted := map[verification.ErrorCode]int{}
	for outcome := range outcomes {
		counted[outcome]++
	}
	w.Expect(counted).To(Equal(map[verification.ErrorCode]int{
		verification.CodeWrongCode: verification.MaxConfirmTries, verification.CodeRequestExpired: 45,
	}))
	w.Expect(w.readStored(id).WrongCodes).To(Equal(verification.MaxConfirmTries))
}

func TestSession_checkedCodeChangesNothing(t *testing.T) {
	w := newWorld(t)
	initiated, _ := w.startSession()
	id, codes := initiated.Request.ID, w.codesOf(&initiated.Request)
	_, err := w.check(id, codes.Digits.Reveal())
	w.Expect(codeOf(err)).To(Equal(verification.CodeNotProven))
	_, proven := w.receive(w.message(initiated.Code, claimed))
	checked, err := w.check(id, codes.Digits.Reveal())
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(checked).To(Equal(proven))
	w.Expect(w.readStored(id)).To(Equal(proven))
}

func TestSession_endsTwoMinutesLaterIfProvenLate(t *testing.T) {
	for _, tc := range []struct {
		name        string
		left, later time.Duration
		want        verification.ErrorCode
	}{
		{"proven early, confirmed in time", 3 * time.Minute, 3*time.Minute - time.Second, ""},
		{"proven early, confirmed late", 3 * time.Minute, 3 * time.Minute, verification.CodeRequestExpired},
		{"two minutes before the end", 2 * time.Minute, 2 * time.Minute, verification.CodeRequestExpired},
		{"proven late, confirmed after expiresAt", time.Minute, 3*time.Minute - time.Second, ""},
		{"proven late, confirmed too late", time.Minute, 3 * time.Minute, verification.CodeRequestExpired},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			initiated, _ := w.startSession()
			id := initiated.Request.ID
			w.later(10*time.Minute - tc.left)
			w.receive(w.message(initiated.Code, claimed))
			w.later(tc.later)
			r := w.readStored(id)
			if tc.want == "" {
				w.Expect(r.Expire(w.clock.Now(), everyEvent)).To(MatchError(verification.ErrUnchanged))
				w.Expect(r.PhaseAt(w.clock.Now())).To(Equal(verification.Pending))
			}
			_, err := w.confirm(id, w.codesOf(&r).Digits.Reveal())
			w.Expect(codeOf(err)).To(Equal(tc.want))
			if tc.want != "" {
				w.later(verification.ExpiryGrace)
				w.Expect(r.PhaseAt(w.clock.Now())).To(Equal(verification.Expired))
				w.Expect(r.Expire(w.clock.Now(), everyEvent)).To(Succeed())
				w.Expect(r.Event()).To(Equal(verification.Event{
					Kind: verification.EventExpired, Hint: verification.HintAwaitingConfirmation, At: r.EndsAt(),
				}), "the hint shows that the user did not confirm")
			}
		})
	}
}

func TestSession_notMeOfTheProverEndsIt(t *testing.T) {
	w := newWorld(t)
	initiated, seen := w.startSession()
	id, codes := initiated.Request.ID, w.codesOf(&initiated.Request)
	decline := func(isProver bool) verification.Receipt {
		w.t.Helper()
		receipt, err := w.service.DeclineProven(t.Context(), id, w.message(initiated.Code, claimed),
			func(*verification.Request) bool { return isProver }, everyEvent)
		w.Expect(err).NotTo(HaveOccurred())
		return receipt
	}
	w.Expect(decline(true).Outcome).To(Equal(verification.OutcomeUnknown), "it is not proven yet")
	_, proven := w.receive(w.message(initiated.Code, claimed))
	w.Expect(decline(false).Outcome).To(Equal(verification.OutcomeUnknown))
	w.Expect(w.readStored(id)).To(Equal(proven))

	declined := decline(true)
	w.Expect(declined.Outcome).To(Equal(verification.OutcomeDeclined))
	w.Expect(declined.Changed).To(BeTrue())
	w.Expect(declined.Request.Event().Kind).To(Equal(verification.EventDeclined))
	w.Expect(declined.Request.DeclinedAt()).To(Equal(w.clock.Now()))
	_, err := w.confirm(id, codes.Digits.Reveal())
	w.Expect(codeOf(err)).To(Equal(verification.CodeRequestExpired))
	again := decline(true)
	w.Expect(again.Outcome).To(Equal(verification.OutcomeDeclined))
	w.Expect(again.Changed).To(BeFalse())
	w.Expect(seen.all).To(Equal([]verification.SessionStep{
		verification.SessionStarted, verification.SessionProven, verification.SessionDeclined,
	}))
}

func TestSession_notMeAfterTheConfirmationChangesNothing(t *testing.T) {
	w := newWorld(t)
	initiated, _ := w.startSession()
	id := initiated.Request.ID
	w.receive(w.message(initiated.Code, claimed))
	confirmed, err := w.confirm(id, w.codesOf(&initiated.Request).Digits.Reveal())
	w.Expect(err).NotTo(HaveOccurred())
	receipt, err := w.service.DeclineProven(t.Context(), id, w.message(initiated.Code, claimed),
		func(*verification.Request) bool { return true }, everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeVerified))
	w.Expect(receipt.Changed).To(BeFalse())
	w.Expect(w.readStored(id)).To(Equal(confirmed))
}

func TestSession_contactOfTheProverIsTheOneThatIsKept(t *testing.T) {
	w := newWorld(t)
	initiated, _ := w.startSession()
	prover, other := strings.Repeat("b", 32), strings.Repeat("c", 32)
	for _, binding := range []string{other, prover} {
		m := w.message(initiated.Code, "")
		m.Binding = binding
		outcome, _ := w.receive(m)
		w.Expect(outcome).To(Equal(verification.OutcomeNeedContact))
	}
	share := func(binding, number string) verification.Receipt {
		receipt, err := w.service.ReceiveContact(t.Context(), binding, w.message(initiated.Code, number).Evidence, everyEvent)
		w.Expect(err).NotTo(HaveOccurred())
		return receipt
	}
	w.Expect(share(prover, claimed).Outcome).To(Equal(verification.OutcomeProven))
	w.Expect(share(prover, claimed).Outcome).To(Equal(verification.OutcomeProven), "a copy")
	w.Expect(share(other, stranger).Outcome).To(Equal(verification.OutcomeUnknown), "the others are asked no more")
	stored := w.readStored(initiated.Request.ID)
	w.Expect(stored.BoundAt(prover)).NotTo(BeZero())
	w.Expect(stored.BoundAt(other)).To(BeZero())

	m := verification.Message{Binding: other}
	receipt, err := w.service.DeclineAwaiting(t.Context(), m, everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeUnknown), "who only sent the code cannot decline for the number")
	m.Binding = strings.Repeat("d", 32)
	receipt, err = w.service.DeclineAwaiting(t.Context(), m, everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeUnknown))
	m.Binding = prover
	receipt, err = w.service.DeclineAwaiting(t.Context(), m, everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeDeclined))
}

func TestSession_weakestAssuranceIsShown(t *testing.T) {
	w := newWorld(t)
	initiated, _ := w.startSession()
	m := w.message(initiated.Code, claimed)
	m.Assurance = verification.AssuranceSharedContact
	_, proven := w.receive(m)
	w.Expect(proven.ShownAssurance()).To(Equal(verification.AssuranceSharedContact))
}

func TestSession_echoIsProvenAndDeclined(t *testing.T) {
	start := func(w *world) (id string, m verification.Message, answers func(*verification.Request, verification.Contact) bool) {
		initiated, _ := w.startSession()
		m = w.message(initiated.Code, "")
		receipt, err := w.service.AwaitEcho(t.Context(), m, nonce, everyEvent)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(receipt.Outcome).To(Equal(verification.OutcomeNeedEcho))
		w.later(time.Second)
		id = initiated.Request.ID
		answers = func(_ *verification.Request, c verification.Contact) bool { return c.Binding == m.Binding }
		receipt, err = w.service.ConfirmEcho(t.Context(), id, m, answers, everyEvent)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(receipt.Outcome).To(Equal(verification.OutcomeProven))
		return id, m, answers
	}
	w := newWorld(t)
	id, m, answers := start(w)
	stored := w.readStored(id)
	w.Expect(stored.Hints).To(HaveLen(1))
	w.Expect(stored.Hints[0].At).To(Equal(w.clock.Now()), "to be proven is news, though the hint has the same name")
	receipt, err := w.service.ConfirmEcho(t.Context(), id, m, answers, everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeProven), "a copy of the tap")
	confirmed, err := w.confirm(id, w.codesOf(&stored).Digits.Reveal())
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(confirmed.ShownAssurance()).To(Equal(verification.AssuranceEcho))

	w = newWorld(t)
	id, m, answers = start(w)
	receipt, err = w.service.Decline(t.Context(), id, m, answers, everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeDeclined), "the question's own button works until the confirmation")
	w.Expect(w.readStored(id).Phase).To(Equal(verification.Expired))
}

func TestSession_confirmedButtonIsProven(t *testing.T) {
	w := newWorld(t)
	initiated, _ := w.startSession()
	m := w.message(initiated.Code, claimed)
	m.Prepared = func(*verification.Request, verification.Code) iter.Seq[string] { return func(func(string) bool) {} }
	outcome, _ := w.receive(m)
	w.Expect(outcome).To(Equal(verification.OutcomeNeedConfirmation))
	answers := func(binding string) bool { return binding == m.Binding }
	for range 2 { // the tap, and a copy of it
		receipt, err := w.service.Confirm(t.Context(), initiated.Request.ID, m.Evidence, answers, everyEvent)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(receipt.Outcome).To(Equal(verification.OutcomeProven))
	}
}

func TestSession_isCanceledOnThePage(t *testing.T) {
	w := newWorld(t)
	initiated, seen := w.startSession()
	id := initiated.Request.ID
	canceled, err := w.service.Cancel(t.Context(), id, everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(canceled.Event()).To(Equal(verification.Event{
		Kind: verification.EventExpired, Hint: verification.HintCanceled, At: w.clock.Now(),
	}))
	w.Expect(canceled.DeclinedAt()).To(BeZero(), "who has the page is not the owner of the number")
	again, err := w.service.Cancel(t.Context(), id, everyEvent)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(again).To(Equal(canceled))
	outcome, _ := w.receive(w.message(initiated.Code, claimed))
	w.Expect(outcome).To(Equal(verification.OutcomeTooLate))
	w.Expect(seen.all).To(Equal([]verification.SessionStep{verification.SessionStarted, verification.SessionCanceled}))

	usual := w.start(w.initiation())
	_, err = w.service.Cancel(t.Context(), usual.Request.ID, everyEvent)
	w.Expect(err).To(MatchError(verification.ErrNoConfirmation))
}

func TestSession_possessionNeedsNoConfirmation(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	_, err := w.confirm(initiated.Request.ID, w.codesOf(&initiated.Request).Digits.Reveal())
	w.Expect(codeOf(err)).To(Equal(verification.CodeNoConfirmation))
	outcome, verified := w.receive(w.message(initiated.Code, claimed))
	w.Expect(outcome).To(Equal(verification.OutcomeVerified))
	w.Expect(verified.ProvenAt).To(BeZero())
	w.Expect(verified.ShownAssurance()).To(Equal(verification.AssuranceUsual))
	_, err = w.confirm(initiated.Request.ID, w.codesOf(&initiated.Request).Digits.Reveal())
	w.Expect(codeOf(err)).To(Equal(verification.CodeNoConfirmation))
	_, err = w.confirm("vr"+strings.Repeat("a", 24), "123456")
	w.Expect(codeOf(err)).To(Equal(verification.CodeNotFound))
	_, err = w.confirm("no id", "123456")
	w.Expect(codeOf(err)).To(Equal(verification.CodeNotFound))
}

func TestSession_storeThatIsDownCountsNothing(t *testing.T) {
	w := newWorld(t)
	initiated, _ := w.startSession()
	w.receive(w.message(initiated.Code, claimed))
	w.backend.Fail(errors.New("down"))
	_, err := w.confirm(initiated.Request.ID, "123456")
	w.Expect(codeOf(err)).To(Equal(verification.CodeStoreUnavailable))
}

func TestSession_termsArePartOfTheIdempotentCall(t *testing.T) {
	w := newWorld(t)
	in := w.initiation()
	in.IdempotencyKey, in.HasIdempotencyKey = "order-1", true
	w.start(in)
	in.Terms = verification.Terms{Level: verification.LevelSession}
	w.Expect(w.start(in).Existing).To(BeTrue(), "the project's level may change between two tries")
	for _, terms := range []verification.Terms{{Level: verification.LevelSession}, {Purpose: "sign-in"}, {Browser: "CHROME/IOS"}} {
		in.RequestedTerms = terms
		_, err := w.service.Initiate(t.Context(), in)
		w.Expect(codeOf(err)).To(Equal(verification.CodeIdempotencyKeyReused))
	}
}
