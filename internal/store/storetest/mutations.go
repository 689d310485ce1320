package storetest

import (
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// mutation is the argument of Store.Update.
type mutation = func(r *verification.Request, now time.Time) error

// verify is a message from the claimed number; eventWanted makes its event due at once.
func verify(eventWanted bool) mutation {
	return func(r *verification.Request, now time.Time) error {
		return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, eventWanted)
	}
}

// bind is a message from a sender whose number is not known.
func bind(binding string) mutation {
	return func(r *verification.Request, now time.Time) error {
		return r.Bind(verification.Evidence{Method: r.Method, SentAt: now}, binding, now)
	}
}

// dueIn is verify with an event that is due so much later.
func dueIn(d time.Duration) mutation {
	return func(r *verification.Request, now time.Time) error {
		if err := verify(true)(r, now); err != nil {
			return err
		}
		r.Delivery.NextAttemptAt = now.Add(d)
		return nil
	}
}

// settled is verify with an event that was delivered before, so that retention counts from then.
func settled(before time.Duration) mutation {
	return func(r *verification.Request, now time.Time) error {
		if err := verify(true)(r, now); err != nil {
			return err
		}
		r.Delivery = verification.Delivery{Attempts: 1, LastAttemptAt: now.Add(-before), DeliveredAt: now.Add(-before)}
		return nil
	}
}

// logged notes an attempt that failed, whoever made it.
func logged(r *verification.Request, now time.Time) error {
	return failed(*r, now.Add(time.Minute))(r, now)
}

// expire is what a loop does to a lapsed request.
func expire(r *verification.Request, now time.Time) error { return r.Expire(now) }

// failed is a delivery attempt that is to be repeated at next; zero exhausts.
func failed(claim verification.Request, next time.Time) mutation {
	return func(r *verification.Request, now time.Time) error {
		return r.RecordAttempt(verification.Attempt{
			Number: claim.Delivery.Attempts + 1, Epoch: claim.Epoch, At: now, StatusCode: 500, Reason: "status", Next: next,
		})
	}
}

// delivered is a delivery attempt that the receiver took.
func delivered(claim verification.Request) mutation {
	return func(r *verification.Request, now time.Time) error {
		return r.RecordAttempt(verification.Attempt{
			Number: claim.Delivery.Attempts + 1, Epoch: claim.Epoch, At: now, StatusCode: 204, Delivered: true,
		})
	}
}

// race runs n calls at the same instant, or as near to it as goroutines get, and returns what each came to.
func race[T any](n int, call func(i int) (T, error)) ([]T, []error) {
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
