package projectstatus

import (
	"context"
	"errors"
	"fmt"
	"time"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// defaultStoragePeriod is how often a store that serves is asked whether it does. One that does not, or that says
	// something else than it did, is asked doubtFactor times as often.
	defaultStoragePeriod = 30 * time.Second
	doubtFactor          = 10
	// storageTimeout is how long it may take to say so.
	storageTimeout = 10 * time.Second
	// looksToBelieve is how often a store must say something new in a row: one timeout is no outage, and a full store has
	// room for a moment whenever a request expires.
	looksToBelieve = 3
)

// StorageError says why a store does not serve us.
type StorageError struct {
	// Rejected says that the store answers and refuses; else it cannot be reached.
	Rejected bool
	// Message says why in words for the project's owner: the same for the same cause, and without a secret.
	Message string
	Err     error
}

// Error returns the message with its cause.
func (e *StorageError) Error() string { return e.Message + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StorageError) Unwrap() error { return e.Err }

// verdict is what one look at a store gave.
type verdict struct{ reason, message string }

func (v verdict) good() bool { return v.reason == verifyv1.ReasonStorageReachable }

// The messages about a store that serves.
const (
	messageStored      = "requests can be stored"
	messageUnencrypted = "requests can be stored; the connection to the database is unencrypted"
)

// verdictOf judges what a store says.
func verdictOf(err error, unencrypted bool) verdict {
	told, ok := errors.AsType[*StorageError](err)
	known, _ := errors.AsType[*verification.Error](err)
	switch {
	case err == nil && unencrypted:
		return verdict{verifyv1.ReasonStorageReachable, messageUnencrypted}
	case err == nil:
		return verdict{verifyv1.ReasonStorageReachable, messageStored}
	case ok && told.Rejected:
		return verdict{verifyv1.ReasonStorageRejected, told.Message}
	case ok:
		return verdict{verifyv1.ReasonStorageUnreachable, told.Message}
	case known != nil && known.Code == verification.CodeTooManyStored:
		return verdict{
			verifyv1.ReasonStorageFull,
			"as many requests are stored as spec.request.maxStored allows and none may be deleted yet; init answers 429",
		}
	default:
		return verdict{verifyv1.ReasonStorageUnreachable, "the store does not answer, or not in time; the pods' logs say more"}
	}
}

// steady believes what was said often enough. Its zero value believes the first good news.
type steady struct {
	believed  verdict
	candidate verdict
	seen      int
}

// note takes one look and tells whether it changes what is believed.
func (s *steady) note(v verdict) bool {
	if v == s.believed {
		s.seen = 0
		return false
	}
	if v.reason != s.candidate.reason { // the words may change from look to look
		s.seen = 0
	}
	s.candidate = v
	s.seen++
	if s.seen < looksToBelieve && (s.believed != verdict{} || !v.good()) {
		return false
	}
	s.believed, s.seen = v, 0
	return true
}

// next is how long to wait for the next look, if a store that serves is looked at once in a period.
func (s *steady) next(period time.Duration) time.Duration {
	if s.seen == 0 && s.believed.good() {
		return period
	}
	return period / doubtFactor
}

// watchStorage looks at the store until ctx ends.
func (c *Controller) watchStorage(ctx context.Context) error {
	var believed steady
	for ctx.Err() == nil {
		err := c.lookAtStorage(ctx)
		if v := verdictOf(err, c.Unencrypted()); ctx.Err() == nil && believed.note(v) { // else the look ended with the term
			c.Board.stored(v)
			c.Log.Info("what the store says changed", "reason", v.reason, "cause", fmt.Sprint(err))
		}
		sleep(ctx, believed.next(c.StoragePeriod))
	}
	return nil
}

func (c *Controller) lookAtStorage(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	return c.Storage(ctx)
}
