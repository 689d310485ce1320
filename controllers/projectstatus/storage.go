package projectstatus

import (
	"context"
	"errors"
	"fmt"
	"time"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// defaultStoragePeriod is how often a working store is checked. A failing one, or one whose result changes, is checked
	// doubtFactor times as often.
	defaultStoragePeriod = 30 * time.Second
	doubtFactor          = 10
	// storageTimeout bounds one check.
	storageTimeout = 10 * time.Second
	// checksToBelieve is how many equal results in a row count as a change: one timeout is no outage, and a full store has room
	// for a moment whenever a request expires.
	checksToBelieve = 3
)

// StorageError is why a store cannot be used.
type StorageError struct {
	// Rejected is set if the store answers and refuses; else it cannot be reached.
	Rejected bool
	// Message describes the cause for the project's owner: constant for the same cause, and without a secret.
	Message string
	Err     error
}

// Error returns the message with its cause.
func (e *StorageError) Error() string { return e.Message + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StorageError) Unwrap() error { return e.Err }

// verdict is the result of one check of a store.
type verdict struct{ reason, message string }

func (v verdict) isGood() bool { return v.reason == verifyv1.ReasonStorageReachable }

// Messages for a store that works.
const (
	messageStored      = "requests can be stored"
	messageUnencrypted = "requests can be stored; the connection to the database is unencrypted"
)

// verdictOf returns the verdict for the error of a check.
func verdictOf(err error, unencrypted bool) verdict {
	storageErr, ok := errors.AsType[*StorageError](err)
	known, _ := errors.AsType[*verification.Error](err)
	switch {
	case err == nil && unencrypted:
		return verdict{verifyv1.ReasonStorageReachable, messageUnencrypted}
	case err == nil:
		return verdict{verifyv1.ReasonStorageReachable, messageStored}
	case ok && storageErr.Rejected:
		return verdict{verifyv1.ReasonStorageRejected, storageErr.Message}
	case ok:
		return verdict{verifyv1.ReasonStorageUnreachable, storageErr.Message}
	case known != nil && known.Code == verification.CodeTooManyStored:
		return verdict{
			verifyv1.ReasonStorageFull,
			"as many requests are stored as spec.request.maxStored allows and none may be deleted yet; init answers 429",
		}
	default:
		return verdict{verifyv1.ReasonStorageUnreachable, "the store does not answer, or not in time; the pods' logs say more"}
	}
}

// steady accepts a verdict that was seen often enough. Its zero value accepts the first good one.
type steady struct {
	believed  verdict
	candidate verdict
	seen      int
}

// addCheck takes one verdict and reports whether the accepted one changes.
func (s *steady) addCheck(v verdict) bool {
	if v == s.believed {
		s.seen = 0
		return false
	}
	if v.reason != s.candidate.reason { // the message may change from check to check
		s.seen = 0
	}
	s.candidate = v
	s.seen++
	if s.seen < checksToBelieve && (s.believed != verdict{} || !v.isGood()) {
		return false
	}
	s.believed, s.seen = v, 0
	return true
}

// nextDelay returns the time until the next check. A working store is checked once in a period.
func (s *steady) nextDelay(period time.Duration) time.Duration {
	if s.seen == 0 && s.believed.isGood() {
		return period
	}
	return period / doubtFactor
}

// watchStorage checks the store until ctx ends.
func (c *Controller) watchStorage(ctx context.Context) error {
	var believed steady
	return controllers.Run(ctx, controllers.Options{
		Reconcile: func(ctx context.Context) (time.Duration, error) {
			err := c.checkStorage(ctx)
			if v := verdictOf(err, c.Unencrypted()); ctx.Err() == nil && believed.addCheck(v) { // else the check ended with the term
				c.Board.setStorage(v)
				c.Log.Info("storage state changed", "reason", v.reason, "cause", fmt.Sprint(err))
			}
			return believed.nextDelay(c.StoragePeriod), nil
		},
		Log: c.Log,
	})
}

func (c *Controller) checkStorage(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	return c.Storage(ctx)
}
