package verification_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/verification/codesender"
)

var (
	waSecret  = []byte("the secret of the WhatsApp account")
	botSecret = []byte("the token of the bot")
)

// codeSecrets are those of a project with both messengers.
func codeSecrets(r *verification.Request) verification.CodeSecrets {
	proved := waSecret
	if r.UsedMethod() == verification.Telegram {
		proved = botSecret
	}
	return verification.CodeSecrets{Session: [][]byte{proved}, Delivered: [][]byte{waSecret}}
}

// startCode starts a request with DeliverCode, and records the steps that its observer was notified of.
func (w *world) startCode() (verification.Initiated, *codeSteps) {
	w.t.Helper()
	seen := &codeSteps{}
	w.service.Observer, w.service.Sender = seen, codesender.New(1)
	return w.start(w.codeInitiation()), seen
}

// delivered returns the eight digits of a request, and chat its session codes under the secret of the messenger that proved it.
func delivered(r *verification.Request) string {
	return verification.NewCodeSpace(projectName).DeliveredCode(waSecret, r).Reveal()
}

func chat(r *verification.Request) verification.SessionCodes {
	return verification.NewCodeSpace(projectName).SessionCodes(codeSecrets(r).Session[0], r)
}

// wrongDigits returns as many digits as the right ones, of which the first is another.
func wrongDigits(right string) string { return string('0'+(right[0]-'0'+1)%10) + right[1:] }

// enter redeems a code, and enterOnPage shows it to the page.
func (w *world) enter(id, text string) (verification.Request, error) {
	w.t.Helper()
	code, ok := verification.ParseSessionCode(text)
	w.Expect(ok).To(BeTrue(), "a code by its form")
	return w.service.ConfirmSession(w.t.Context(), id, false, code, codeSecrets, everyEvent)
}

func (w *world) enterOnPage(id, text string) (verification.Request, error) {
	w.t.Helper()
	code, ok := verification.ParseSessionCode(text)
	w.Expect(ok).To(BeTrue(), "a code by its form")
	return w.service.CheckSessionCode(w.t.Context(), id, code, codeSecrets, everyEvent)
}

// prove proves a request in one of the ways that do not need the delivered digits.
func (w *world) prove(way string, made verification.Initiated) verification.Request {
	w.t.Helper()
	m := w.message(made.Code, claimed)
	switch way {
	case "message":
	case "Telegram":
		m.Method = verification.Telegram
	case "shared contact":
		m.Assurance = verification.AssuranceSharedContact
	case "echo":
		_, err := w.service.AwaitEcho(w.t.Context(), w.hiddenMessage(made.Code, "owner"), nonce, everyEvent)
		w.Expect(err).NotTo(HaveOccurred())
		receipt, err := w.service.ConfirmEcho(w.t.Context(), made.Request.ID, m, anyEcho, everyEvent)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(receipt.Outcome).To(Equal(verification.OutcomeProven))
		return receipt.Request
	}
	outcome, proven := w.receive(m)
	w.Expect(outcome).To(Equal(verification.OutcomeProven))
	return proven
}

func TestDelivered_confirms(t *testing.T) {
	w := newWorld(t)
	made, seen := w.startCode()
	digits := delivered(&made.Request)
	confirmed, err := w.enter(made.Request.ID, digits[:4]+" "+digits[4:])
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(confirmed.Phase).To(Equal(verification.Verified))
	w.Expect([]any{confirmed.Via, confirmed.ShownAssurance(), confirmed.UsedMethod(), confirmed.Actual, confirmed.ProvenAt}).To(Equal([]any{
		verification.ViaCode, verification.AssuranceSession, verification.WhatsApp, made.Request.Phone, w.clock.Now(),
	}))
	w.Expect(confirmed.Event()).To(Equal(verification.Event{Kind: verification.EventSuccess, At: w.clock.Now()}))
	w.Expect(confirmed.Delivery.Wanted()).To(BeTrue())
	w.Expect(w.readStored(made.Request.ID)).To(Equal(confirmed))
	_, err = w.enter(made.Request.ID, digits)
	w.Expect(codeOf(err)).To(Equal(verification.CodeAlreadyConfirmed))
	w.Expect(seen.all).To(Equal([]verification.SessionStep{
		verification.SessionStarted, verification.SessionProven, verification.SessionConfirmed,
	}))
	w.Expect([]int{seen.verified, seen.codesRedeemed}).To(Equal([]int{1, 1}))
}

// TestDelivered_proveOnThePage: one write makes the request one that the return code confirms, and another try no write.
func TestDelivered_proveOnThePage(t *testing.T) {
	w := newWorld(t)
	made, seen := w.startCode()
	id := made.Request.ID
	proven, err := w.enterOnPage(id, delivered(&made.Request))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect([]any{proven.Phase, proven.Via, proven.ProvenAt, proven.HintAt(w.clock.Now())}).To(Equal([]any{
		verification.Pending, verification.ViaCode, w.clock.Now(), verification.HintAwaitingConfirmation,
	}))
	w.later(time.Minute)
	again, err := w.enterOnPage(id, delivered(&made.Request))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(again).To(Equal(proven))

	outcome, _ := w.receive(w.message(made.Code, stranger))
	w.Expect(outcome).To(Equal(verification.OutcomeWrongNumber))
	outcome, after := w.receive(w.message(made.Code, claimed))
	w.Expect(outcome).To(Equal(verification.OutcomeProven), "its owner, who sends the text as well, gets the session codes")
	w.Expect(after).To(Equal(proven), "and a text changes nothing any more")

	confirmed, err := w.enter(id, chat(&proven).Return.Reveal())
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect([]any{confirmed.Phase, confirmed.Via}).To(Equal([]any{verification.Verified, verification.ViaCode}))
	w.Expect(seen.codesRedeemed).To(Equal(1))
	w.Expect(seen.all).To(Equal([]verification.SessionStep{
		verification.SessionStarted, verification.SessionProven, verification.SessionConfirmed,
	}))
}

// TestDelivered_strangersGetNothing: who hides the number, and sent the text of a link that leaked, is no prover once the digits are.
func TestDelivered_strangersGetNothing(t *testing.T) {
	for _, way := range []string{"contact", "echo"} {
		w := newWorld(t)
		made, _ := w.startCode()
		m := w.hiddenMessage(made.Code, "stranger")
		send := func() (verification.Receipt, error) { return w.service.Receive(t.Context(), m, everyEvent) }
		if way == "echo" {
			send = func() (verification.Receipt, error) { return w.service.AwaitEcho(t.Context(), m, nonce, everyEvent) }
		}
		_, err := send()
		w.Expect(err).NotTo(HaveOccurred())
		proven, err := w.enterOnPage(made.Request.ID, delivered(&made.Request))
		w.Expect(err).NotTo(HaveOccurred())
		receipt, err := send()
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(receipt.Outcome).To(Equal(verification.OutcomeTooLate), "no session codes for "+way)
		receipt, err = w.service.DeclineAwaiting(t.Context(), m, everyEvent)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(receipt.Outcome).To(Equal(verification.OutcomeUnknown), "and no end for its owner")
		w.Expect(w.readStored(made.Request.ID)).To(Equal(proven))
	}
}

func TestDelivered_overwritesAnEarlierProof(t *testing.T) {
	for way, assurance := range map[string]verification.Assurance{
		"message": verification.AssuranceSession, "Telegram": verification.AssuranceSession,
		"shared contact": verification.AssuranceSharedContact, "echo": verification.AssuranceEcho,
	} {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t)
			made, seen := w.startCode()
			id := made.Request.ID
			before := w.prove(way, made)
			w.Expect([]any{before.Via, before.ShownAssurance()}).To(Equal([]any{verification.ViaMessage, assurance}))
			w.later(time.Second)
			proven, err := w.enterOnPage(id, delivered(&made.Request))
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect([]any{proven.Via, proven.ShownAssurance(), proven.UsedMethod(), proven.Actual, proven.ProvenAt}).To(Equal([]any{
				verification.ViaCode, verification.AssuranceSession, verification.WhatsApp, made.Request.Phone, w.clock.Now(),
			}))
			w.Expect(proven.Hints).To(Equal(before.Hints), "no second event")
			w.Expect(proven.Contacts).To(Equal(before.Contacts), "the owner may still decline")
			for _, text := range []string{chat(&proven).Digits.Reveal(), wrongDigits(chat(&proven).Digits.Reveal())} {
				_, err = w.enter(id, text)
				w.Expect(err).To(MatchError(verification.ErrNotProven), "six digits never confirm via CODE, and are no try")
			}
			w.Expect(w.readStored(id)).To(Equal(proven))
			confirmed, err := w.enter(id, chat(&proven).Return.Reveal())
			w.Expect(err).NotTo(HaveOccurred(), "the page's return code")
			w.Expect(confirmed.Via).To(Equal(verification.ViaCode))
			w.Expect(seen.codesRedeemed).To(Equal(1))

			w = newWorld(t)
			made, seen = w.startCode()
			before = w.prove(way, made)
			confirmed, err = w.enter(made.Request.ID, chat(&before).Digits.Reveal())
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect([]any{confirmed.Via, confirmed.ShownAssurance()}).To(Equal([]any{verification.ViaMessage, assurance}), "six digits of the chat")
			w.Expect(seen.codesRedeemed).To(BeZero())
		})
	}
}

// TestDelivered_chatDigitsBeforeProof: they were not given yet, so they are not compared, and cost no try.
func TestDelivered_chatDigitsBeforeProof(t *testing.T) {
	w := newWorld(t)
	made, _ := w.startCode()
	codes := chat(&made.Request)
	for _, text := range []string{codes.Digits.Reveal(), codes.Return.Reveal(), wrongDigits(codes.Digits.Reveal())} {
		for _, enter := range []func(string, string) (verification.Request, error){w.enter, w.enterOnPage} {
			_, err := enter(made.Request.ID, text)
			w.Expect(codeOf(err)).To(Equal(verification.CodeNotProven))
			w.Expect(err).To(MatchError(verification.ErrNotProven))
		}
	}
	w.Expect(w.readStored(made.Request.ID)).To(Equal(made.Request))
}

func TestDelivered_threeTriesInAll(t *testing.T) {
	type way struct {
		proven bool
		tries  []string
	}
	for _, c := range []way{
		{false, []string{"eight", "eight", "eight"}},
		{false, []string{"eight on the page", "eight", "eight on the page"}},
		{true, []string{"six", "eight", "six"}},
		{true, []string{"six on the page", "eight on the page", "eight"}},
	} {
		t.Run(strings.Join(c.tries, ", "), func(t *testing.T) {
			w := newWorld(t)
			made, seen := w.startCode()
			r := made.Request
			if c.proven {
				r = w.prove("message", made)
			}
			for i, try := range c.tries {
				w.Expect(r.TriesLeft()).To(Equal(3 - i))
				wrong, enter := wrongDigits(delivered(&r)), w.enter
				if strings.HasPrefix(try, "six") {
					wrong = wrongDigits(chat(&r).Digits.Reveal())
				}
				if strings.HasSuffix(try, "page") {
					enter = w.enterOnPage
				}
				var err error
				r, err = enter(r.ID, wrong)
				w.Expect(codeOf(err)).To(Equal(verification.CodeWrongCode))
				w.Expect(r.WrongCodes).To(Equal(i + 1))
				if i < 2 {
					w.Expect(err.Error()).To(ContainSubstring(fmt.Sprintf("left: %d", 2-i)))
				}
			}
			w.Expect([]any{r.Phase, r.Event().Hint, r.TriesLeft()}).To(Equal([]any{verification.Expired, verification.HintWrongCode, 0}))
			for _, text := range []string{delivered(&r), chat(&r).Digits.Reveal(), chat(&r).Return.Reveal()} {
				_, err := w.enter(r.ID, text)
				w.Expect(codeOf(err)).To(Equal(verification.CodeRequestExpired))
			}
			w.Expect(seen.all).To(ContainElement(verification.SessionTriesUsedUp))
		})
	}
}

// TestDelivered_otherNumberNeverConfirms: who read the digits has another number. They look like wrong ones.
func TestDelivered_otherNumberNeverConfirms(t *testing.T) {
	w := newWorld(t)
	made, _ := w.startCode()
	id := made.Request.ID
	result := verification.CodeResult{State: verification.CodeSent, Reason: verification.CodeReasonOtherNumber}
	w.Expect(w.service.RecordCodeResult(t.Context(), id, made.Request.CreatedAt, result, everyEvent)).To(Succeed())
	refused, err := w.enter(id, delivered(&made.Request))
	w.Expect(codeOf(err)).To(Equal(verification.CodeWrongCode))
	w.Expect([]any{refused.WrongCodes, refused.Phase, refused.Via}).To(Equal([]any{1, verification.Pending, verification.ViaMessage}))
	w.Expect(refused.CodeDeliveryAt(refused.CreatedAt.Add(verification.CodeSendTime))).To(Equal(verification.CodeSent))
	proven := w.prove("message", made)
	_, err = w.enterOnPage(id, delivered(&made.Request))
	w.Expect(codeOf(err)).To(Equal(verification.CodeWrongCode), "nor after a message")
	_, err = w.enter(id, chat(&proven).Digits.Reveal())
	w.Expect(err).NotTo(HaveOccurred(), "which confirms by its own codes")
}

// TestDelivered_otherNumberAfterThePage: nor does the return code that the page gave for such digits, before that was known.
func TestDelivered_otherNumberAfterThePage(t *testing.T) {
	w := newWorld(t)
	made, _ := w.startCode()
	proven, err := w.enterOnPage(made.Request.ID, delivered(&made.Request))
	w.Expect(err).NotTo(HaveOccurred())
	result := verification.CodeResult{State: verification.CodeSent, Reason: verification.CodeReasonOtherNumber}
	w.Expect(w.service.RecordCodeResult(t.Context(), proven.ID, proven.CreatedAt, result, everyEvent)).To(Succeed())
	refused, err := w.enter(proven.ID, chat(&proven).Return.Reveal())
	w.Expect(codeOf(err)).To(Equal(verification.CodeWrongCode))
	w.Expect([]any{refused.WrongCodes, refused.Phase}).To(Equal([]any{1, verification.Pending}))
}

func TestDelivered_eightForALinkRequest(t *testing.T) {
	w := newWorld(t)
	made, _ := w.startSession()
	id := made.Request.ID
	_, err := w.enter(id, delivered(&made.Request))
	w.Expect(codeOf(err)).To(Equal(verification.CodeNotProven))
	w.receive(w.message(made.Code, claimed))
	proven := w.readStored(id)
	for _, enter := range []func(string, string) (verification.Request, error){w.enter, w.enterOnPage} {
		_, err = enter(id, delivered(&made.Request))
		w.Expect(codeOf(err)).To(Equal(verification.CodeInvalidCode))
		w.Expect(err).To(MatchError(verification.ErrNoDelivered))
	}
	w.Expect(w.readStored(id)).To(Equal(proven), "no try")
}

// TestDelivered_needsTheSecretOfWhatsApp, whatever proved the request: without it nothing is compared or counted.
func TestDelivered_needsTheSecretOfWhatsApp(t *testing.T) {
	w := newWorld(t)
	made, _ := w.startCode()
	eight, _ := verification.ParseSessionCode(delivered(&made.Request))
	lost := func(r *verification.Request) verification.CodeSecrets {
		return verification.CodeSecrets{Session: codeSecrets(r).Session}
	}
	for _, way := range []string{"", "Telegram"} {
		if way != "" {
			w.prove(way, made)
		}
		before := w.readStored(made.Request.ID)
		_, err := w.service.ConfirmSession(t.Context(), before.ID, false, eight, lost, everyEvent)
		w.Expect(codeOf(err)).To(Equal(verification.CodeChannelNotReady))
		w.Expect(w.readStored(before.ID)).To(Equal(before))
	}
	_, err := w.enter(made.Request.ID, delivered(&made.Request))
	w.Expect(err).NotTo(HaveOccurred())
}

// TestDelivered_ofATestKey: eight zeros, and none of them for a live request.
func TestDelivered_ofATestKey(t *testing.T) {
	w := newWorld(t)
	in := w.codeInitiation()
	in.Test, in.Phone, in.KeyName = true, w.number(numberExpired), "staging"
	made := w.start(in) // without a sender: nothing is sent
	zeros, _ := verification.ParseSessionCode(verification.TestDelivered)
	secrets := func(*verification.Request) verification.CodeSecrets {
		return verification.CodeSecrets{Session: verification.TestSecrets(), Delivered: verification.TestSecrets()}
	}
	confirmed, err := w.service.ConfirmSession(t.Context(), made.Request.ID, true, zeros, secrets, withTests)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(confirmed.Via).To(Equal(verification.ViaCode))
	in.Phone = testNumber(6)
	unsent := w.start(in)
	_, err = w.service.ConfirmSession(t.Context(), unsent.Request.ID, true, zeros, secrets, withTests)
	w.Expect(codeOf(err)).To(Equal(verification.CodeWrongCode), "of a code that was not sent")
	live, seen := w.startCode()
	_, err = w.enter(live.Request.ID, verification.TestDelivered)
	w.Expect(codeOf(err)).To(Equal(verification.CodeWrongCode))
	w.Expect(seen.codesRedeemed).To(BeZero())
}

func TestCodeDeliveryAt(t *testing.T) {
	created := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	const known, almost = verification.CodeUnknownAfter, verification.CodeUnknownAfter - time.Millisecond
	for name, c := range map[string]struct {
		r     func(*verification.Request)
		after time.Duration
		want  verification.CodeState
	}{
		"at once":                   {func(*verification.Request) {}, 0, ""},
		"before 15 s":               {func(*verification.Request) {}, almost, ""},
		"at 15 s":                   {func(*verification.Request) {}, known, verification.CodeUnknown},
		"a link":                    {func(r *verification.Request) { r.Terms.Deliver = "" }, known, ""},
		"sent, while others may be": {func(r *verification.Request) { r.Code.State = verification.CodeSent }, verification.CodeSendTime - 1, ""},
		"sent, when all are":        {func(r *verification.Request) { r.Code.State = verification.CodeSent }, verification.CodeSendTime, verification.CodeSent},
		"sent and redeemed": {func(r *verification.Request) {
			r.Code.State, r.Via = verification.CodeSent, verification.ViaCode
		}, 0, verification.CodeSent},
		"a delivery that was sent": {func(r *verification.Request) {
			r.Code.State, r.Terms.Deliver = verification.CodeSent, verification.DeliverGiven
		}, 0, verification.CodeSent},
		"not sent, at once":               {func(r *verification.Request) { r.Code.State = verification.CodeNotSent }, 0, verification.CodeNotSent},
		"not sent, later":                 {func(r *verification.Request) { r.Code.State = verification.CodeNotSent }, time.Hour, verification.CodeNotSent},
		"expired without a result":        {func(r *verification.Request) { r.Phase = verification.Expired }, time.Hour, verification.CodeUnknown},
		"redeemed without a result":       {func(r *verification.Request) { r.Via = verification.ViaCode }, known, verification.CodeSent},
		"of a test key":                   {func(r *verification.Request) { r.Test = true }, 0, verification.CodeSent},
		"of a test key, not sent":         {func(r *verification.Request) { r.Test, r.Phone = true, testNumber(6) }, 0, verification.CodeNotSent},
		"of a test key, unknown at once":  {func(r *verification.Request) { r.Test, r.Phone = true, testNumber(7) }, 0, verification.CodeUnknown},
		"of that number, with a live key": {func(r *verification.Request) { r.Phone = testNumber(7) }, 0, ""},
	} {
		r := verification.Request{CreatedAt: created, Phase: verification.Pending, Terms: verification.Terms{Deliver: verification.DeliverCode}}
		c.r(&r)
		NewWithT(t).Expect(r.CodeDeliveryAt(created.Add(c.after))).To(Equal(c.want), name)
	}
}

// TestRecordCodeResult has all pairs of what is stored and what comes.
func TestRecordCodeResult(t *testing.T) {
	none, sent := verification.CodeResult{}, verification.CodeResult{State: verification.CodeSent, Reason: "not_on_whatsapp"}
	notSent := verification.CodeResult{State: verification.CodeNotSent, Reason: "template_paused"}
	astray := verification.CodeResult{State: verification.CodeSent, Reason: verification.CodeReasonOtherNumber}
	again := verification.CodeResult{State: verification.CodeSent, Reason: "delivered"}
	accepted := verification.CodeResult{State: verification.CodeSent}
	for name, c := range map[string]struct {
		stored, came, want verification.CodeResult
	}{
		"sent": {none, sent, sent}, "not sent": {none, notSent, notSent}, "to another number": {none, astray, astray},
		"accepted, then a reason": {accepted, sent, sent}, "accepted again": {accepted, accepted, accepted},
		"sent again": {sent, again, sent}, "sent, then accepted": {sent, accepted, sent},
		"sent, then refused": {sent, notSent, sent}, "sent, then to another number": {sent, astray, astray},
		"not sent, then sent": {notSent, sent, notSent}, "not sent again": {notSent, verification.CodeResult{State: verification.CodeNotSent}, notSent},
		"to another number, then sent": {astray, sent, astray}, "to another number, then refused": {astray, notSent, astray},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			made, _ := w.startCode()
			r := made.Request
			r.Code = c.stored
			err := r.RecordCodeResult(c.came, w.clock.Now(), everyEvent)
			w.Expect(r.Code).To(Equal(c.want))
			w.Expect(errors.Is(err, verification.ErrUnchanged)).To(Equal(c.want == c.stored))
			wantHint := verification.HintKind("")
			if err == nil && c.want == notSent {
				wantHint = verification.HintCodeNotSent
			}
			w.Expect(r.HintAt(w.clock.Now())).To(Equal(wantHint))
			w.Expect(r.Delivery.Wanted()).To(Equal(wantHint != ""), "an attention event")
			w.Expect(r.Event().Hint).To(Equal(wantHint))
		})
	}
}

// TestRecordCodeResult_isNoNewsLater: who is asked for something, is proven, or has no time left, gets no hint that there is no code.
func TestRecordCodeResult_isNoNewsLater(t *testing.T) {
	notSent := verification.CodeResult{State: verification.CodeNotSent, Reason: "payment"}
	for name, c := range map[string]struct {
		change func(*verification.Request)
		stored bool
	}{
		"a contact is awaited": {func(r *verification.Request) {
			r.Hints = []verification.Hint{{Kind: verification.HintAwaitingContact, At: r.CreatedAt}}
		}, true},
		"an echo is awaited": {func(r *verification.Request) {
			r.Hints = []verification.Hint{{Kind: verification.HintAwaitingConfirmation, At: r.CreatedAt}}
		}, true},
		"proven":        {func(r *verification.Request) { r.ProvenAt = r.CreatedAt }, true},
		"verified":      {func(r *verification.Request) { r.Phase = verification.Verified }, true},
		"expired":       {func(r *verification.Request) { r.Phase = verification.Expired }, true},
		"lapsed":        {func(r *verification.Request) { r.ExpiresAt = r.CreatedAt }, true},
		"redeemed":      {func(r *verification.Request) { r.Via, r.ProvenAt = verification.ViaCode, r.CreatedAt }, false},
		"of a test key": {func(r *verification.Request) { r.Test = true }, false},
		"of a link":     {func(r *verification.Request) { r.Terms.Deliver = "" }, false},
	} {
		w := newWorld(t)
		made, _ := w.startCode()
		r := made.Request
		c.change(&r)
		before := r.Clone()
		err := r.RecordCodeResult(notSent, w.clock.Now(), everyEvent)
		w.Expect(err == nil).To(Equal(c.stored), name)
		if c.stored {
			before.Code = notSent
		}
		w.Expect(r).To(Equal(before), name)
	}
}

func TestService_recordCodeResult(t *testing.T) {
	w := newWorld(t)
	w.service.Sender = codesender.New(2)
	in := w.codeInitiation()
	in.IdempotencyKey, in.HasIdempotencyKey = "order-1", true
	first := w.start(in).Request
	w.later(25 * time.Hour)
	w.Expect(w.store.Delete(t.Context(), first.ID, first.Version)).To(Succeed())
	sent := verification.CodeResult{State: verification.CodeSent}
	w.Expect(w.service.RecordCodeResult(t.Context(), first.ID, first.CreatedAt, sent, 0)).To(Succeed(), "it is gone")
	second := w.start(in).Request
	w.Expect(second.ID).To(Equal(first.ID), "the id came back")
	w.Expect(w.service.RecordCodeResult(t.Context(), first.ID, first.CreatedAt, sent, 0)).To(Succeed())
	w.Expect(w.readStored(second.ID)).To(Equal(second), "a late status of the first is none of the second")
	w.Expect(w.service.RecordCodeResult(t.Context(), second.ID, second.CreatedAt, sent, 0)).To(Succeed())
	w.Expect(w.readStored(second.ID).Code).To(Equal(sent))
	w.backend.Fail(errors.New("down"))
	w.Expect(codeOf(w.service.RecordCodeResult(t.Context(), "../x", second.CreatedAt, sent, 0))).To(BeEmpty(), "no id, so the store is not asked")
	w.Expect(codeOf(w.service.RecordCodeResult(t.Context(), second.ID, second.CreatedAt, sent, 0))).To(Equal(verification.CodeStoreUnavailable))
}

// TestRecordWrongNumber_afterCodeNotSent: a user whose number is wrong reads of no code, too.
func TestRecordWrongNumber_afterCodeNotSent(t *testing.T) {
	w := newWorld(t)
	made, _ := w.startCode()
	r := made.Request
	w.Expect(r.RecordCodeResult(verification.CodeResult{State: verification.CodeNotSent}, w.clock.Now(), everyEvent)).To(Succeed())
	w.Expect(r.RecordWrongNumber(w.clock.Now())).To(Succeed())
	w.Expect(r.Event().Hint).To(Equal(verification.HintCodeNotSent))
}
