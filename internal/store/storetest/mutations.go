package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// mutation is the argument of Store.Update.
type mutation = func(r *verification.Request, now time.Time) error

// allEvents are all kinds of events.
var allEvents = verification.NewEventKinds(
	verification.EventSuccess, verification.EventExpired, verification.EventDeclined, verification.EventAttention)

// verifyClaimed returns the mutation for a message from the claimed number; eventWanted makes its event due at once.
func verifyClaimed(eventWanted bool) mutation {
	return func(r *verification.Request, now time.Time) error {
		var wanted verification.EventKinds
		if eventWanted {
			wanted = allEvents
		}
		return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, wanted)
	}
}

// bindSender returns the mutation for a message from a sender whose number is unknown.
func bindSender(binding string) mutation {
	return func(r *verification.Request, now time.Time) error {
		return r.Bind(verification.Evidence{Method: r.Method, SentAt: now}, binding, now, 0)
	}
}

// askByEcho returns the mutation for a message from a sender who hides the number.
func askByEcho(binding string, wanted verification.EventKinds) mutation {
	return func(r *verification.Request, now time.Time) error {
		sender := verification.Contact{Binding: binding, Nonce: "00112233445566778899aabbccddeeff"}
		return r.AwaitEcho(verification.Evidence{Method: r.Method, SentAt: now}, sender, nil, now, wanted)
	}
}

// dueIn returns verifyClaimed with an event that is due after d.
func dueIn(d time.Duration) mutation {
	return func(r *verification.Request, now time.Time) error {
		if err := verifyClaimed(true)(r, now); err != nil {
			return fmt.Errorf("verify request: %w", err)
		}
		r.Delivery.NextAttemptAt = now.Add(d)
		return nil
	}
}

// deliveredBefore returns verifyClaimed with an event that was delivered earlier, so that retention counts from then.
func deliveredBefore(before time.Duration) mutation {
	return func(r *verification.Request, now time.Time) error {
		if err := verifyClaimed(true)(r, now); err != nil {
			return fmt.Errorf("verify request: %w", err)
		}
		r.Delivery = verification.Delivery{Attempts: 1, LastAttemptAt: now.Add(-before), DeliveredAt: now.Add(-before)}
		return nil
	}
}

// recordFailure records a failed attempt without a claim.
func recordFailure(r *verification.Request, now time.Time) error {
	return recordFailed(*r, now.Add(time.Minute))(r, now)
}

// expireLapsed expires a lapsed request, as a worker does.
func expireLapsed(r *verification.Request, now time.Time) error { return r.Expire(now, 0) }

// recordFailed returns the mutation for a failed delivery attempt with a retry at next; a zero next exhausts the event.
func recordFailed(claim verification.Request, next time.Time) mutation {
	return func(r *verification.Request, now time.Time) error {
		return r.RecordAttempt(verification.Attempt{Event: r.Event(),
			Number: claim.Delivery.Attempts + 1, Epoch: claim.Epoch, At: now, StatusCode: 500, Reason: "status", Next: next,
		})
	}
}

// recordDelivered returns the mutation for a successful delivery attempt.
func recordDelivered(claim verification.Request) mutation {
	return func(r *verification.Request, now time.Time) error {
		return r.RecordAttempt(verification.Attempt{Event: r.Event(),
			Number: claim.Delivery.Attempts + 1, Epoch: claim.Epoch, At: now, StatusCode: 204, Delivered: true,
		})
	}
}

// runRacers runs n calls as simultaneously as goroutines can, and returns their results and errors.
func runRacers[T any](n int, call func(i int) (T, error)) ([]T, []error) {
	var (
		start   = make(chan struct{})
		done    sync.WaitGroup
		results = make([]T, n)
		errs    = make([]error, n)
	)
	for i := range n {
		done.Go(func() {
			<-start
			results[i], errs[i] = call(i)
		})
	}
	close(start)
	done.Wait()
	return results, errs
}
