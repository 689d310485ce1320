package verification_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/verification/codesender"
)

// codeSteps records the codes that an observer was notified of, beside the steps.
type codeSteps struct {
	steps

	codesRedeemed int
}

func (s *codeSteps) CodeRedeemed(*verification.Request) { s.codesRedeemed++ }

// codeInitiation is a call that asks for a code.
func (w *world) codeInitiation() verification.Initiation {
	in := w.initiation()
	in.Terms = verification.Terms{Level: verification.LevelSession, Deliver: verification.DeliverCode}
	in.RequestedTerms = verification.Terms{Deliver: verification.DeliverCode}
	in.OtherMethods = []verification.Method{verification.Telegram}
	return in
}

// testNumber returns the test number that ends in 11 and that digit.
func testNumber(last int) phone.Number { return verification.TestNumbers()[last].Number }

// TestInitiate_sendsOnceForItsOwnCreate: one call of all that overlap, and none of the others.
func TestInitiate_sendsOnceForItsOwnCreate(t *testing.T) {
	w := newWorld(t)
	sender := codesender.New(300)
	w.service.Sender = sender
	other := verification.NewService(verification.NewCodeSpace(projectName), w.backend.Open(projectName))
	other.Sender = sender
	in := w.codeInitiation()
	in.IdempotencyKey, in.HasIdempotencyKey = "order-1", true
	var wait sync.WaitGroup
	for i := range 200 {
		wait.Go(func() {
			service := []*verification.Service{w.service, other}[i%2]
			if _, err := service.Initiate(t.Context(), in); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	sent := sender.ListSent()
	w.Expect(sent).To(HaveLen(1))
	w.Expect(sent[0]).To(Equal(w.readStored(sent[0].ID)), "what was committed")
	w.Expect(sender.CountFree()).To(Equal(299), "retries hold no slot")
}

// slowStore commits a creation long after its caller left, or panics.
type slowStore struct {
	verification.Store

	panics bool
}

func (s slowStore) Create(ctx context.Context, n verification.New, limits verification.Limits) (verification.Created, error) {
	<-time.After(3 * time.Second)
	if s.panics {
		panic("bug")
	}
	return s.Store.Create(ctx, n, limits)
}

// TestInitiate_sendsAfterItsCallerLeft: the answer comes when the caller's time is over, and the code when the request is committed.
func TestInitiate_sendsAfterItsCallerLeft(t *testing.T) {
	for _, panics := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			sender, begin := codesender.New(1), time.Now()
			w.service = verification.NewService(verification.NewCodeSpace(projectName), slowStore{w.store, panics})
			seen := &codeSteps{}
			w.service.Sender, w.service.Observer = sender, seen
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			_, err := w.service.Initiate(ctx, w.codeInitiation())
			w.Expect(err).To(MatchError(context.DeadlineExceeded))
			w.Expect(time.Since(begin)).To(Equal(1500 * time.Millisecond))
			w.Expect(sender.ListSent()).To(BeEmpty())
			w.Expect(sender.CountFree()).To(BeZero(), "its slot is held, so a shutdown waits for it")
			<-time.After(2 * time.Second)
			synctest.Wait()
			if panics {
				w.Expect(sender.ListSent()).To(BeEmpty())
				w.Expect(sender.CountFree()).To(Equal(1))
				w.Expect(seen.all).To(BeEmpty())
				return
			}
			sent := sender.ListSent()
			w.Expect(sent).To(HaveLen(1))
			w.Expect(sent[0]).To(Equal(w.readStored(sent[0].ID)))
			w.Expect(seen.all).To(Equal([]verification.SessionStep{verification.SessionStarted}), "it counts as started")
		})
	}
}

func TestInitiate_sendsNothing(t *testing.T) {
	limited := verification.Limits{PerPhoneNumber: verification.Rate{Requests: 1, Period: time.Hour}}
	refusal := &verification.Error{Code: verification.CodeCountryRefused}
	for name, c := range map[string]struct {
		change func(w *world, in *verification.Initiation)
		want   verification.ErrorCode
	}{
		"a link":     {func(_ *world, in *verification.Initiation) { in.Terms.Deliver = "" }, ""},
		"a test key": {func(w *world, in *verification.Initiation) { in.Test, in.Phone = true, w.number(numberExpired) }, ""},
		"refused":    {func(_ *world, in *verification.Initiation) { in.Refusal = refusal }, verification.CodeCountryRefused},
		"refused, of a caller who looked up too many": {func(w *world, in *verification.Initiation) {
			in.Refusal, in.IdempotencyKey, in.HasIdempotencyKey = refusal, "order-1", true
			sender := w.service.Sender
			w.service = verification.NewService(verification.NewCodeSpace(projectName), weary{w.store, verification.CallerOf(w.t.Context())})
			w.service.Sender = sender
		}, verification.CodeCountryRefused},
		"limited": {func(w *world, in *verification.Initiation) {
			in.Limits = limited
			link := w.initiation()
			link.Limits = limited
			w.start(link)
		}, verification.CodeRateLimited},
		"the store is down": {func(w *world, _ *verification.Initiation) { w.backend.Fail(errors.New("down")) }, verification.CodeStoreUnavailable},
		"the key of another call": {func(w *world, in *verification.Initiation) {
			in.IdempotencyKey, in.HasIdempotencyKey = "order-1", true
			link := *in
			link.Terms, link.RequestedTerms = verification.Terms{}, verification.Terms{}
			w.start(link)
		}, verification.CodeIdempotencyKeyReused},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			sender := codesender.New(1)
			w.service.Sender = sender
			in := w.codeInitiation()
			c.change(w, &in)
			_, err := w.service.Initiate(t.Context(), in)
			w.Expect(codeOf(err)).To(Equal(c.want))
			w.Expect(sender.ListSent()).To(BeEmpty())
			w.Expect(sender.CountFree()).To(Equal(1), "the slot is free again")
		})
	}
}

// TestInitiate_withoutASlot refuses what is new before anything is stored, and answers a retry, but sends nothing for it.
func TestInitiate_withoutASlot(t *testing.T) {
	for name, c := range map[string]struct {
		sender verification.CodeSender
		want   verification.ErrorCode
	}{
		"all are taken": {codesender.New(0), verification.CodeCodesBusy},
		"no sender":     {nil, verification.CodeCodesNotConfigured},
	} {
		w := newWorld(t)
		in := w.codeInitiation()
		in.IdempotencyKey, in.HasIdempotencyKey = "order-1", true
		in.Limits.PerKey = verification.Rate{Requests: 1, Period: time.Hour}
		w.service.Sender = c.sender
		for _, call := range []func(*verification.Initiation){
			func(*verification.Initiation) {}, func(in *verification.Initiation) { in.HasIdempotencyKey = false },
		} {
			refused := in
			call(&refused)
			_, err := w.service.Initiate(t.Context(), refused)
			w.Expect(codeOf(err)).To(Equal(c.want), name)
		}
		w.service.Sender = codesender.New(1)
		first := w.start(in)
		w.Expect(first.Existing).To(BeFalse(), "nothing was stored or counted before")
		w.service.Sender = c.sender
		w.Expect(w.start(in).Request).To(Equal(first.Request), name)
		w.backend.Fail(errors.New("down"))
		_, err := w.service.Initiate(t.Context(), in)
		w.Expect(codeOf(err)).To(Equal(verification.CodeStoreUnavailable), name)
	}
}

// creations records what a store is to create.
type creations struct {
	verification.Store

	all []verification.New
}

func (c *creations) Create(ctx context.Context, n verification.New, limits verification.Limits) (verification.Created, error) {
	c.all = append(c.all, n)
	return c.Store.Create(ctx, n, limits)
}

// TestInitiate_namesItsCreation: by it two replicas with the same id in the same microsecond know which of them created the request.
func TestInitiate_namesItsCreation(t *testing.T) {
	w := newWorld(t)
	seen := &creations{Store: w.store}
	w.service = verification.NewService(verification.NewCodeSpace(projectName), seen)
	w.service.Sender = codesender.New(2)
	in := w.codeInitiation()
	in.IdempotencyKey, in.HasIdempotencyKey = "order-1", true
	w.start(in)
	w.start(in)
	w.start(w.initiation())
	w.Expect(seen.all[0].Creator).To(MatchRegexp(`^[0-9a-f]{16}$`))
	w.Expect(seen.all[1].Creator).To(MatchRegexp(`^[0-9a-f]{16}$`))
	w.Expect(seen.all[1].Creator).NotTo(Equal(seen.all[0].Creator))
	w.Expect(seen.all[2].Creator).To(BeEmpty())
}

func TestBodyHash_deliver(t *testing.T) {
	w := newWorld(t)
	w.service.Sender = codesender.New(1)
	in := w.codeInitiation()
	in.IdempotencyKey, in.HasIdempotencyKey = "order-1", true
	w.start(in)
	in.RequestedTerms.Deliver = ""
	_, err := w.service.Initiate(t.Context(), in)
	w.Expect(codeOf(err)).To(Equal(verification.CodeIdempotencyKeyReused))
	w.Expect(err.Error()).To(ContainSubstring("deliver"))
}
