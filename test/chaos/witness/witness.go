// Package witness sees what a store has committed, from beneath it: the database by a trigger of its own, Kubernetes by
// etcd's log. Neither asks the system under test, nor the API server.
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
	// Open is how many requests need something still that comes soon: by the faults and the schedule of deliveries.
	Open(ctx context.Context) (int, error)
	// Conclude writes the ledgers of changes and of final states into a folder. Nothing changes any more.
	Conclude(ctx context.Context, dir string) error
}

const (
	// soon is how far ahead an attempt may be that is waited for.
	soon = 15 * time.Second
)

// open tells whether a request needs something within soon. What failed twice waits for minutes.
func open(c ledger.Change, now time.Time) bool {
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
