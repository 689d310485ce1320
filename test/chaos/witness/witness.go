// Package witness records what a store has committed, from beneath it: in the database by a trigger, in Kubernetes by
// etcd's log. Neither relies on the system under test or on the API server.
//
// The invariant: no committed state of a request is missed, and those of one request come in the order of their commits.
package witness

import (
	"context"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// Witness watches one project's requests.
type Witness interface {
	// Open returns how many requests still need work that is due soon.
	Open(ctx context.Context) (int, error)
	// Stored reports whether a request is committed at this moment.
	Stored(ctx context.Context, id string) (bool, error)
	// Conclude writes the ledgers of changes and of final states into a folder. It is called when nothing changes any more.
	Conclude(ctx context.Context, dir string) error
}

const (
	// soon is how far ahead an attempt may be that the run waits for.
	soon = 15 * time.Second
)

// isOpen reports whether a request needs work within soon. After two failures the next attempt is minutes away.
func isOpen(c ledger.Change, now time.Time) bool {
	switch {
	case c.Op == ledger.Deleted:
		return false
	case c.Phase == string(verification.Pending):
		return true
	case c.Phase == string(verification.Expired), c.Delivered, c.Exhausted:
		return false
	default:
		return c.Next.Before(now.Add(soon))
	}
}
