package request

import (
	"sync"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// failuresToTell is how many attempts must fail in a row before a receiver is said to be failing: one can be a deploy.
const failuresToTell = 3

// Change is what an attempt says about a receiver that was not known before.
type Change int

// The changes.
const (
	Unchanged Change = iota
	StartsFailing
	Recovers
)

// Receiver follows whether a project's receiver takes events. It is safe for concurrent use.
type Receiver struct {
	mu       sync.Mutex
	failures int
}

// Note takes the outcome of one attempt. Of attempts that run at the same time only the first tells the change.
func (r *Receiver) Note(a verification.Attempt) Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.Delivered {
		failed := r.failures
		r.failures = 0
		if failed >= failuresToTell {
			return Recovers
		}
		return Unchanged
	}
	if r.failures++; r.failures == failuresToTell {
		return StartsFailing
	}
	return Unchanged
}
