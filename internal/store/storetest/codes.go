package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// codeChecks are those of the codes that are sent to numbers.
func codeChecks() []check {
	return []check{
		{name: "counts the tries of a code exactly among replicas, on the page and in confirmations", run: codeTries},
		{name: "redeems a code once, wherever it is entered", run: codeRedeemedOnce},
		{name: "stores the result of a code once, also that of a final request", run: codeResultOnce},
		{name: "has one creator of a request with a code, whose code alone is sent", run: codeSentOnce},
	}
}

// newDelivered returns a creation of a request whose number gets a code, with a number of its own for each i.
func (t *trial) newDelivered(i int) verification.New {
	n := t.newForKey("backend", fmt.Sprintf("+49151%08d", 30_000_000+i))
	n.Method, n.Creator = verification.WhatsApp, fmt.Sprintf("%016x", i)
	n.Terms = verification.Terms{Level: verification.LevelSession, Deliver: verification.DeliverCode}
	return n
}

// enterDelivered enters a delivered code at a replica: on the page, or as the client.
func (t *trial) enterDelivered(
	ctx context.Context, s verification.Store, id, digits string, onPage bool,
) (verification.Request, error) {
	service := verification.NewService(t.project, s)
	code, _ := verification.ParseSessionCode(digits)
	if onPage {
		return service.CheckSessionCode(ctx, id, code, sessionSecrets, allEvents)
	}
	return service.ConfirmSession(ctx, id, false, code, sessionSecrets, allEvents)
}

// codeTries enters wrong digits sixteen times at once, half of them on the page.
func codeTries(ctx context.Context, t *trial) {
	const tries = 16
	stores := t.openReplicas(2)
	r := t.createRequest(ctx, stores[0], t.newDelivered(0))
	right := t.project.DeliveredCode(sessionSecret, &r).Reveal()
	wrong := string('0'+(right[0]-'0'+1)%10) + right[1:]
	results, errs := runRacers(tries, func(i int) (verification.Request, error) {
		return t.enterDelivered(ctx, stores[i%2], r.ID, wrong, i%4 < 2)
	})
	stored := t.getRequest(ctx, stores[1], r.ID)
	t.Expect([]any{stored.WrongCodes, stored.Phase, stored.Event().Hint}).To(Equal([]any{
		verification.MaxDeliveredTries, verification.Expired, verification.HintWrongCode,
	}))
	counts := map[int]int{}
	for i, err := range errs {
		if errors.Is(err, verification.ErrWrongCode) {
			counts[results[i].WrongCodes]++
		} else {
			t.Expect(err).To(haveCode(verification.CodeRequestExpired))
		}
	}
	t.Expect(counts).To(Equal(map[int]int{1: 1, 2: 1, 3: 1}), "each try that counts gets its own number")
	for i, s := range stores {
		_, err := t.enterDelivered(ctx, s, r.ID, right, i == 0)
		t.Expect(err).To(haveCode(verification.CodeRequestExpired), "the right code comes too late")
	}
	t.Expect(t.getRequest(ctx, stores[0], r.ID)).To(equalRequest(stored))
}

// codeRedeemedOnce is a race of the page with the client.
func codeRedeemedOnce(ctx context.Context, t *trial) {
	stores := t.openReplicas(2)
	for i := range rounds {
		r := t.createRequest(ctx, stores[0], t.newDelivered(i))
		digits := t.project.DeliveredCode(sessionSecret, &r).Reveal()
		results, errs := runRacers(2, func(i int) (verification.Request, error) {
			return t.enterDelivered(ctx, stores[i], r.ID, digits, i == 0)
		})
		stored := t.getRequest(ctx, stores[1], r.ID)
		t.Expect([]any{stored.Phase, stored.Via, stored.Actual, stored.WrongCodes}).To(Equal([]any{
			verification.Verified, verification.ViaCode, r.Phone, 0,
		}))
		t.Expect(errs[1]).NotTo(HaveOccurred())
		t.Expect(results[1]).To(equalRequest(stored))
		if errs[0] != nil {
			t.Expect(errs[0]).To(haveCode(verification.CodeAlreadyConfirmed))
		} else {
			t.Expect(stored.ProvenAt).To(Equal(results[0].ProvenAt), "the page was first")
		}
	}
}

// codeResultOnce has each result come twice, at two replicas, and one of another request with the same id.
func codeResultOnce(ctx context.Context, t *trial) {
	stores := t.openReplicas(2)
	for i, end := range []mutation{nil, cancelRequest, verifyClaimed(true)} {
		r := t.createRequest(ctx, stores[0], t.newDelivered(i))
		if end != nil {
			r = t.updateRequest(ctx, stores[1], r.ID, end)
		}
		for _, result := range []verification.CodeResult{
			{State: verification.CodeSent, Reason: "undeliverable"}, {State: verification.CodeSent, Reason: verification.CodeReasonOtherNumber},
		} {
			before := r
			record := func(s verification.Store, createdAt time.Time) verification.Request {
				service := verification.NewService(t.project, s)
				t.Expect(service.RecordCodeResult(ctx, r.ID, createdAt, result, allEvents)).To(Succeed())
				return t.getRequest(ctx, s, r.ID)
			}
			t.Expect(record(stores[0], r.CreatedAt.Add(-time.Microsecond))).To(equalRequest(before))
			r = record(stores[0], r.CreatedAt)
			t.Expect(r.Code).To(Equal(result))
			t.Expect(r.Version).NotTo(Equal(before.Version))
			t.Expect(record(stores[1], r.CreatedAt)).To(equalRequest(r), "nothing is written")
			t.Expect(r.Phase).To(Equal(before.Phase))
		}
	}
}

// codeSentOnce has many replicas start one request with the same Idempotency-Key at once, and one of them later.
func codeSentOnce(ctx context.Context, t *trial) {
	stores, sender := t.openReplicas(4), NewCodeSender(racers+1)
	n := t.newDelivered(0)
	start := func(i int) (verification.Initiated, error) {
		service := verification.NewService(t.project, stores[i%len(stores)])
		service.Sender = sender
		return service.Initiate(ctx, verification.Initiation{
			Phone: n.Phone, Method: n.Method, TTL: n.TTL, KeyName: n.KeyName, Terms: n.Terms, RequestedTerms: n.Terms,
			IdempotencyKey: "order-1", HasIdempotencyKey: true,
		})
	}
	_, errs := runRacers(racers, start)
	t.Expect(errs).To(HaveEach(BeNil()))
	again, err := start(1)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(again.Existing).To(BeTrue())
	t.Expect(sender.ListSent()).To(HaveExactElements(equalRequest(again.Request)))
}
