package verification_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const projectName = "shop/acme"

// world is a service over a memory store whose clock the test steps.
type world struct {
	*WithT

	t       *testing.T
	clock   *clocktesting.FakePassiveClock
	backend *memory.Backend
	store   verification.Store
	service *verification.Service
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC))
	backend := memory.NewBackend(memory.Options{Clock: clock})
	store := backend.Open(projectName)
	return &world{
		WithT: NewWithT(t), t: t, clock: clock, backend: backend, store: store,
		service: verification.NewService(verification.NewCodeSpace(projectName), store),
	}
}

func (w *world) number(e164 string) phone.Number {
	w.t.Helper()
	n, err := phone.FromE164(e164)
	w.Expect(err).NotTo(HaveOccurred())
	return n
}

func (w *world) initiation() verification.Initiation {
	return verification.Initiation{
		Phone: w.number("+4915112345678"), Method: verification.WhatsApp, KeyName: "backend",
		KeyHash: sha256.Sum256([]byte("key")), TTL: 10 * time.Minute,
	}
}

func (w *world) start(in verification.Initiation) verification.Initiated {
	w.t.Helper()
	initiated, err := w.service.Initiate(w.t.Context(), in)
	w.Expect(err).NotTo(HaveOccurred())
	return initiated
}

// message is the code of a request as its user sends it from that number; "" for a number that the messenger hides.
func (w *world) message(code verification.Code, from string) verification.Message {
	m := verification.Message{
		Evidence: verification.Evidence{Method: verification.WhatsApp, SentAt: w.clock.Now()},
		Text:     "my code is " + code.Grouped(), Binding: strings.Repeat("a", 32),
	}
	if from != "" {
		m.Sender = w.number(from)
	}
	return m
}

func (w *world) receive(m verification.Message) (verification.Outcome, verification.Request) {
	w.t.Helper()
	receipt, err := w.service.Receive(w.t.Context(), m, successOnly)
	w.Expect(err).NotTo(HaveOccurred())
	return receipt.Outcome, receipt.Request
}

func (w *world) phase(id string) verification.Phase {
	w.t.Helper()
	r, err := w.service.Status(w.t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	return r.PhaseAt(w.clock.Now())
}

func (w *world) later(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

func codeOf(err error) verification.ErrorCode {
	if known, ok := errors.AsType[*verification.Error](err); ok {
		return known.Code
	}
	return ""
}

func TestInitiate_storesAPendingRequest(t *testing.T) {
	w := newWorld(t)
	in := w.initiation()
	initiated := w.start(in)
	w.Expect(initiated.Existing).To(BeFalse())
	stored, err := w.service.Status(t.Context(), initiated.Request.ID)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(stored).To(Equal(initiated.Request))
	w.Expect(stored.Phase).To(Equal(verification.Pending))
	w.Expect(stored.Phone).To(Equal(in.Phone))
	w.Expect(stored.KeyName).To(Equal("backend"))
	w.Expect(stored.BodyHash).To(BeEmpty())
	w.Expect(stored.ExpiresAt.Sub(stored.CreatedAt)).To(Equal(in.TTL))
}

func TestInitiate_withoutAKeyNeverRepeats(t *testing.T) {
	w := newWorld(t)
	w.Expect(w.start(w.initiation()).Request.ID).NotTo(Equal(w.start(w.initiation()).Request.ID))
}

func TestInitiate_replaysAnIdempotencyKeyInEveryState(t *testing.T) {
	w := newWorld(t)
	in := w.initiation()
	in.IdempotencyKey, in.HasIdempotencyKey = "order-1", true
	first := w.start(in)
	again := w.start(in)
	w.Expect(again.Existing).To(BeTrue())
	w.Expect(again.Code).To(Equal(first.Code))
	w.Expect(again.Request).To(Equal(first.Request))

	w.receive(w.message(first.Code, "+4915112345678"))
	w.Expect(w.start(in).Request.Phase).To(Equal(verification.Verified))
}

func TestInitiate_refusesAnIdempotencyKeyForSomethingElse(t *testing.T) {
	w := newWorld(t)
	in := w.initiation()
	in.IdempotencyKey, in.HasIdempotencyKey = "order-1", true
	w.start(in)

	other := in
	other.Phone = w.number("+4915112345679")
	_, err := w.service.Initiate(t.Context(), other)
	w.Expect(codeOf(err)).To(Equal(verification.CodeIdempotencyKeyReused))

	other = in
	other.Method = verification.Telegram
	_, err = w.service.Initiate(t.Context(), other)
	w.Expect(codeOf(err)).To(Equal(verification.CodeIdempotencyKeyReused))

	other = in
	other.Phone, other.KeyHash = w.number("+4915112345679"), sha256.Sum256([]byte("another API key"))
	w.Expect(w.start(other).Existing).To(BeFalse(), "another API key has its own Idempotency-Keys")
}

func TestInitiate_bindsAnIdempotencyKeyToTheClientsData(t *testing.T) {
	w := newWorld(t)
	in := w.initiation()
	in.IdempotencyKey, in.HasIdempotencyKey = "order-1", true
	in.ClientData = verification.ClientData{Reference: "a", Metadata: map[string]string{"b": "c", "d": "e"}, Locale: "es"}
	in.RequestedLocale = "es-MX"
	first := w.start(in)

	again := in
	again.Locale = "fr"
	w.Expect(w.start(again).Existing).To(BeTrue(), "the project got other languages meanwhile")
	w.Expect(w.start(again).Request.Locale).To(Equal("es"), "the text of the first try")
	w.Expect(w.start(again).Request.ID).To(Equal(first.Request.ID))

	for name, edit := range map[string]func(*verification.Initiation){
		"none":                             func(in *verification.Initiation) { in.ClientData, in.RequestedLocale = verification.ClientData{}, "" },
		"no locale":                        func(in *verification.Initiation) { in.RequestedLocale = "" },
		"another locale":                   func(in *verification.Initiation) { in.RequestedLocale = "es" },
		"another reference":                func(in *verification.Initiation) { in.Reference = "b" },
		"no metadata":                      func(in *verification.Initiation) { in.Metadata = nil },
		"another key":                      func(in *verification.Initiation) { in.Metadata = map[string]string{"b": "c", "f": "e"} },
		"another value":                    func(in *verification.Initiation) { in.Metadata = map[string]string{"b": "c", "d": "f"} },
		"values at each other's key":       func(in *verification.Initiation) { in.Metadata = map[string]string{"b": "e", "d": "c"} },
		"a pair less":                      func(in *verification.Initiation) { in.Metadata = map[string]string{"b": "c"} },
		"a pair that looks like its parts": func(in *verification.Initiation) { in.Metadata = map[string]string{"b": "c\x001:d\x001:e"} },
		"the locale as part of the reference": func(in *verification.Initiation) {
			in.Reference, in.RequestedLocale = "a\x005:es-MX", ""
		},
	} {
		other := in
		edit(&other)
		_, err := w.service.Initiate(t.Context(), other)
		w.Expect(codeOf(err)).To(Equal(verification.CodeIdempotencyKeyReused), name)
	}
}

// Replicas of two versions have to find the same hash during a rollout, so fields that are added later must not change it.
func TestInitiate_hashesAPlainCallInOneForm(t *testing.T) {
	w := newWorld(t)
	in := w.initiation()
	in.IdempotencyKey, in.HasIdempotencyKey = "order-1", true
	sum := sha256.Sum256([]byte(`{"method":"WHATSAPP","phone":"+4915112345678"}`))
	w.Expect(w.start(in).Request.BodyHash).To(Equal(hex.EncodeToString(sum[:16])))
}

func TestInitiate_boundsTheIdempotencyKey(t *testing.T) {
	w := newWorld(t)
	for _, key := range []string{"", strings.Repeat("k", 256), strings.Repeat("k", 10_000)} {
		in := w.initiation()
		in.IdempotencyKey, in.HasIdempotencyKey = key, true
		_, err := w.service.Initiate(t.Context(), in)
		w.Expect(codeOf(err)).To(Equal(verification.CodeInvalidIdempotency))
	}
}

func TestInitiate_twoHundredTriesWithOneKeyMakeOneRequest(t *testing.T) {
	w := newWorld(t)
	in := w.initiation()
	in.IdempotencyKey, in.HasIdempotencyKey = "order-1", true
	in.Limits.PerPhoneNumber = verification.Rate{Requests: 1, Period: time.Minute}
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		ids   = map[string]int{}
		fresh int
	)
	for range 200 {
		group.Go(func() {
			initiated, err := w.service.Initiate(t.Context(), in)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				ids[initiated.Request.ID]++
				if !initiated.Existing {
					fresh++
				}
			}
		})
	}
	group.Wait()
	w.Expect(ids).To(HaveLen(1))
	w.Expect(ids).To(ContainElement(200))
	w.Expect(fresh).To(Equal(1))
}

func TestStatus_ofWhatIsNoID(t *testing.T) {
	w := newWorld(t)
	w.backend.Fail(errors.New("down"))
	for _, id := range []string{"", "x", "../../etc/passwd", "vr' OR 1=1 --"} {
		_, err := w.service.Status(t.Context(), id)
		w.Expect(err).To(MatchError(verification.ErrNotFound), "the store is not asked")
	}
}

func TestReceive_verifies(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	outcome, request := w.receive(w.message(initiated.Code, "+4915112345678"))
	w.Expect(outcome).To(Equal(verification.OutcomeVerified))
	w.Expect(request.ID).To(Equal(initiated.Request.ID))
	w.Expect(w.phase(request.ID)).To(Equal(verification.Verified))
	w.Expect(request.Delivery.NextAttemptAt).To(Equal(request.VerifiedAt))
}

func TestReceive_again(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	message := w.message(initiated.Code, "+4915112345678")
	_, first := w.receive(message)
	w.later(time.Hour)
	outcome, again := w.receive(message)
	w.Expect(outcome).To(Equal(verification.OutcomeVerified))
	w.Expect(again).To(Equal(first), "redelivery changes nothing")
}

func TestReceive_againInTheOtherFormOfTheNumber(t *testing.T) {
	for _, forms := range [][2]string{{"+5531987654321", "+553187654321"}, {"+525512345678", "+5215512345678"}} {
		for level, want := range map[verification.Level]verification.Outcome{
			verification.LevelPossession: verification.OutcomeVerified, verification.LevelSession: verification.OutcomeProven,
		} {
			w := newWorld(t)
			in := w.initiation()
			in.Phone, in.OtherMethods, in.Terms.Level = w.number(forms[0]), []verification.Method{verification.Telegram}, level
			initiated := w.start(in)
			m := w.message(initiated.Code, forms[0])
			m.Method = verification.Telegram
			outcome, _ := w.receive(m)
			w.Expect(outcome).To(Equal(want))
			outcome, _ = w.receive(w.message(initiated.Code, forms[1]))
			w.Expect(outcome).To(Equal(want), forms[1])
		}
	}
}

func TestReceive_aWrongSenderUsesNothingUp(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	outcome, _ := w.receive(w.message(initiated.Code, "+4915112345679"))
	w.Expect(outcome).To(Equal(verification.OutcomeWrongNumber))
	w.Expect(w.phase(initiated.Request.ID)).To(Equal(verification.Pending))
	outcome, _ = w.receive(w.message(initiated.Code, "+4915112345678"))
	w.Expect(outcome).To(Equal(verification.OutcomeVerified))
	outcome, _ = w.receive(w.message(initiated.Code, "+4915112345679"))
	w.Expect(outcome).To(Equal(verification.OutcomeWrongNumber))
}

// TestReceive_anOldMessageAfterItsCodeCameBack replays the very message that verified a request, after that was deleted
// and its Idempotency-Key made another request with the same code.
func TestReceive_anOldMessageAfterItsCodeCameBack(t *testing.T) {
	w := newWorld(t)
	in := w.initiation()
	in.IdempotencyKey, in.HasIdempotencyKey = "order-1", true
	first := w.start(in)
	old := w.message(first.Code, "+4915112345678")
	_, settled := w.receive(old)
	w.later(time.Second)
	w.Expect(w.store.Delete(t.Context(), settled.ID, settled.Version)).To(Succeed())
	second := w.start(in)
	w.Expect(second.Request.ID).To(Equal(first.Request.ID), "the code came back")
	w.Expect(second.Existing).To(BeFalse())

	outcome, _ := w.receive(old)
	w.Expect(outcome).To(Equal(verification.OutcomeTooLate))
	w.Expect(w.phase(second.Request.ID)).To(Equal(verification.Pending))
	outcome, _ = w.receive(w.message(second.Code, "+4915112345678"))
	w.Expect(outcome).To(Equal(verification.OutcomeVerified), "of the very second in which the request began")
}

func TestReceive_tooLate(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	message := w.message(initiated.Code, "+4915112345678")
	w.later(10 * time.Minute)
	outcome, _ := w.receive(message)
	w.Expect(outcome).To(Equal(verification.OutcomeTooLate))
	_, err := w.store.Update(t.Context(), initiated.Request.ID, func(r *verification.Request, now time.Time) error {
		return r.Expire(now.Add(verification.ExpiryGrace), 0)
	})
	w.Expect(err).NotTo(HaveOccurred())
	outcome, _ = w.receive(message)
	w.Expect(outcome).To(Equal(verification.OutcomeTooLate))
}

func TestReceive_withoutAKnownCode(t *testing.T) {
	w := newWorld(t)
	unknown, err := verification.NewCodeSpace(projectName).NewCode(strings.NewReader(strings.Repeat("x", 13)))
	w.Expect(err).NotTo(HaveOccurred())
	outcome, _ := w.receive(w.message(unknown, "+4915112345678"))
	w.Expect(outcome).To(Equal(verification.OutcomeUnknown))

	m := w.message(unknown, "+4915112345678")
	m.Text = "hello, are you there?"
	outcome, _ = w.receive(m)
	w.Expect(outcome).To(Equal(verification.OutcomeNothing))
}

func TestReceive_throughAnotherMessenger(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	m := w.message(initiated.Code, "+4915112345678")
	m.Method = verification.Telegram
	outcome, _ := w.receive(m)
	w.Expect(outcome).To(Equal(verification.OutcomeWrongMethod))
	w.Expect(w.phase(initiated.Request.ID)).To(Equal(verification.Pending))
}

// TestReceive_oneCodeForEachMessage has one text with the codes of four requests for the sender's number.
func TestReceive_oneCodeForEachMessage(t *testing.T) {
	w := newWorld(t)
	var codes []string
	var requests []verification.Initiated
	for range 4 {
		requests = append(requests, w.start(w.initiation()))
		codes = append(codes, requests[len(requests)-1].Code.Grouped())
	}
	message := w.message(requests[0].Code, "+4915112345678")
	message.Text = strings.Join(codes, "\n")
	for range 3 { // its copies do what it did
		outcome, request := w.receive(message)
		w.Expect(outcome).To(Equal(verification.OutcomeVerified))
		w.Expect(request.ID).To(Equal(requests[3].Request.ID))
	}
	for _, other := range requests[:3] {
		w.Expect(w.phase(other.Request.ID)).To(Equal(verification.Pending))
	}
}

// TestReceive_tellsWhoMadeTheTransition has one message at many replicas at the same time: one of them changed something.
func TestReceive_tellsWhoMadeTheTransition(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	message := w.message(initiated.Code, "+4915112345678")
	receipts := make(chan verification.Receipt, 8)
	var all sync.WaitGroup
	for range cap(receipts) {
		all.Go(func() {
			receipt, err := w.service.Receive(t.Context(), message, successOnly)
			if err == nil {
				receipts <- receipt
			}
		})
	}
	all.Wait()
	close(receipts)
	changed := 0
	for receipt := range receipts {
		w.Expect(receipt.Outcome).To(Equal(verification.OutcomeVerified), "all of them say the same of it")
		if receipt.Changed {
			changed++
		}
	}
	w.Expect(changed).To(Equal(1))
}

// TestReceive_refusalsChangeNothing has messages that get a reply, and move nothing.
func TestReceive_refusalsChangeNothing(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	wrong := w.message(initiated.Code, "+4915112345679")
	other := w.message(initiated.Code, "+4915112345678")
	other.Method = verification.Telegram
	late := w.message(initiated.Code, "+4915112345678")
	late.SentAt = w.clock.Now().Add(time.Hour)
	for _, message := range []verification.Message{wrong, other, late} {
		receipt, err := w.service.Receive(t.Context(), message, successOnly)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(receipt.Changed).To(BeFalse())
	}
	bound, err := w.service.Receive(t.Context(), w.message(initiated.Code, ""), successOnly)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(bound.Changed).To(BeTrue(), "a binding is a change")
}

// weary is a store that looks nothing up any more for one caller.
type weary struct {
	verification.Store

	of verification.Caller
}

func (s weary) Update(
	ctx context.Context, id string, m func(*verification.Request, time.Time) error,
) (verification.Request, error) {
	if verification.CallerOf(ctx) == s.of {
		return verification.Request{}, verification.TooManyUnknown(verification.ErrTooManyUnknown)
	}
	return s.Store.Update(ctx, id, m)
}

func (s weary) ReadFinal(ctx context.Context, id string) (verification.Request, error) {
	if verification.CallerOf(ctx) == s.of {
		return verification.Request{}, verification.TooManyUnknown(verification.ErrTooManyUnknown)
	}
	return s.Store.ReadFinal(ctx, id)
}

func (s weary) Awaiting(ctx context.Context, binding string) (verification.Request, error) {
	if verification.CallerOf(ctx) == s.of {
		return verification.Request{}, verification.TooManyUnknown(verification.ErrTooManyUnknown)
	}
	return s.Store.Awaiting(ctx, binding)
}

func TestReceive_ofASenderOfTooManyUnknownCodes(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	hidden := w.message(initiated.Code, "")
	w.service = verification.NewService(verification.NewCodeSpace(projectName), weary{w.store, verification.Sender(hidden.Binding)})
	outcome, _ := w.receive(hidden)
	w.Expect(outcome).To(Equal(verification.OutcomeLimited))
	receipt, err := w.service.ReceiveContact(t.Context(), hidden.Binding, w.message(initiated.Code, "+4915112345678").Evidence, successOnly)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeLimited))
	hidden.Binding = strings.Repeat("b", 32)
	outcome, _ = w.receive(hidden)
	w.Expect(outcome).NotTo(Equal(verification.OutcomeLimited), "another sender")

	w.service = verification.NewService(verification.NewCodeSpace(projectName), weary{w.store, verification.Sender("+4915112345678")})
	for _, binding := range []string{"", "one", "two"} {
		message := w.message(initiated.Code, "+4915112345678")
		message.Binding = binding
		outcome, _ = w.receive(message)
		w.Expect(outcome).To(Equal(verification.OutcomeLimited), "its number tells a sender apart, whatever it is bound by")
	}
	receipt, err = w.service.Confirm(t.Context(), initiated.Request.ID, w.message(initiated.Code, "+4915112345678").Evidence, nil, successOnly)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(receipt.Outcome).To(Equal(verification.OutcomeLimited))
}

func TestReceive_withTheStoreDown(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	w.backend.Fail(errors.New("down"))
	_, err := w.service.Receive(t.Context(), w.message(initiated.Code, "+4915112345678"), successOnly)
	w.Expect(codeOf(err)).To(Equal(verification.CodeStoreUnavailable), "the platform must deliver it again")
}

func TestRefuseHidden(t *testing.T) {
	w := newWorld(t)
	initiated := w.start(w.initiation())
	refuse := func(text string) verification.Receipt {
		message := w.message(initiated.Code, "+4915112345678")
		message.Text, message.Sender, message.Binding = text, phone.Number{}, "sender"
		receipt, err := w.service.RefuseHidden(t.Context(), message, successOnly)
		w.Expect(err).NotTo(HaveOccurred())
		return receipt
	}
	w.Expect(refuse("hello").Outcome).To(Equal(verification.OutcomeNothing))
	w.Expect(refuse(initiated.Code.Grouped())).To(And(
		HaveField("Outcome", verification.OutcomeNumberHidden), HaveField("Request.ID", initiated.Request.ID),
	))
	w.later(10*time.Minute + verification.ExpiryGrace)
	w.Expect(refuse(initiated.Code.Grouped()).Outcome).To(Equal(verification.OutcomeTooLate))
	w.backend.Fail(errors.New("down"))
	_, err := w.service.RefuseHidden(t.Context(), w.message(initiated.Code, "+4915112345678"), successOnly)
	w.Expect(codeOf(err)).To(Equal(verification.CodeStoreUnavailable), "the hint is not stored, so the message must come again")
}

// successOnly is what most projects want to be notified of.
const successOnly = verification.EventKinds(1)
