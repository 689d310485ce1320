package judge

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/webhook"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// Evidence is all that is known of a run when it is over.
type Evidence struct {
	Acks     []ledger.Ack
	Statuses []ledger.Status
	Inbound  []ledger.Inbound
	Events   []ledger.Delivery
	// Changes are what a witness beneath the system saw committed, each request's in order.
	Changes []ledger.Change
	// Final is what is stored at the end, as the store itself tells it.
	Final  []ledger.Change
	Faults []ledger.Fault
	// Trespasses are what strangers tried, and Traces are places where their words came through.
	Trespasses []ledger.Trespass
	Traces     []string
	// Leaks are places in logs, metrics, events and statuses that hold what they must not; Searched is how many were
	// looked through.
	Leaks    []string
	Searched int
	// End is when the run was over.
	End time.Time

	histories  map[string][]ledger.Change
	deliveries map[string][]ledger.Delivery
}

// Load reads the ledgers of a run from its folder.
func Load(dir string) (*Evidence, error) {
	e := &Evidence{}
	err := errors.Join(
		into(&e.Acks, dir, ledger.ClientFile), into(&e.Statuses, dir, ledger.StatusFile),
		into(&e.Inbound, dir, ledger.PlatformFile), into(&e.Events, dir, ledger.SinkFile),
		into(&e.Changes, dir, ledger.StoreFile), into(&e.Final, dir, ledger.FinalFile),
		into(&e.Faults, dir, ledger.FaultFile), into(&e.Trespasses, dir, ledger.StrangerFile),
	)
	if err != nil {
		return nil, fmt.Errorf("load the evidence: %w", err)
	}
	return e, nil
}

func into[T any](records *[]T, dir, name string) (err error) {
	*records, err = ledger.Read[T](filepath.Join(dir, name))
	return err
}

// index groups what belongs to one request.
func (e *Evidence) index() {
	e.histories, e.deliveries = map[string][]ledger.Change{}, map[string][]ledger.Delivery{}
	for _, c := range e.Changes {
		e.histories[c.ID] = append(e.histories[c.ID], c)
	}
	for _, d := range e.Events {
		e.deliveries[d.Request] = append(e.deliveries[d.Request], d)
	}
	for _, of := range e.deliveries {
		slices.SortStableFunc(of, func(a, b ledger.Delivery) int { return a.At.Compare(b.At) })
	}
}

// last is the last committed state of a request: what is stored now, or what was when it was deleted.
func (e *Evidence) last(id string) (ledger.Change, bool) {
	history := e.histories[id]
	if len(history) == 0 {
		return ledger.Change{}, false
	}
	return history[len(history)-1], true
}

// hit is how many processes the faults hit that can make somebody send what was sent already: a process that died before
// it recorded an attempt, or one that was stopped, or whose store was, while another took over.
func (e *Evidence) hit() int {
	hit := 0
	for _, f := range e.Faults {
		hit += f.Processes
	}
	return hit
}

// cuts is how many exchanges the network broke.
func (e *Evidence) cuts() int {
	cuts := 0
	for _, f := range e.Faults {
		cuts += f.Cuts
	}
	return cuts
}

// untold is how many events the receiver took without the sender learning of it for sure.
func (e *Evidence) untold() int {
	n := 0
	for _, d := range e.Events {
		if d.Answer == ledger.TakesResets || d.Answer == ledger.TakesSlowly {
			n++
		}
	}
	return n
}

// grace is how long after a fault between replicas and receiver attempts end that it has hit.
const grace = 5 * time.Second

// muddled is how many events came while the line to the receiver was not right, so that their answers may have come too
// late, or never.
func (e *Evidence) muddled() int {
	n := 0
	for _, f := range e.Faults {
		for _, d := range e.Events {
			if f.Sink && d.At.After(f.From) && d.At.Before(f.Until.Add(grace)) {
				n++
			}
		}
	}
	return n
}

// held is how many attempts may have been held up on their way by a process, or a network, that stood still.
func (e *Evidence) held() int {
	processes := 0
	for _, f := range e.Faults {
		if f.Held {
			processes += f.Processes
		}
	}
	return processes*webhook.MaxInFlight + e.cuts()
}

// bound is how many attempts the faults of the run may have repeated or hidden: all that were in flight, at every
// process that a fault hit, every exchange that was broken, and what the receiver took without saying so well.
func (e *Evidence) bound() int {
	return e.hit()*webhook.MaxInFlight + e.cuts() + e.untold() + e.muddled()
}
