package judge

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

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
	// Kubernetes says that the store is an API server, whose line carries the lease of the one process that sends.
	Kubernetes bool
	// Times are what the product allowed itself in the run.
	Times Times
	// End is when the run was over.
	End time.Time

	histories  map[string][]ledger.Change
	deliveries map[string][]ledger.Delivery
	courses    map[string]course
	claims     map[string]claim
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
	var given []ledger.Given
	err = errors.Join(err, into(&given, dir, ledger.AnswerFile))
	if err != nil {
		return nil, fmt.Errorf("load the evidence: %w", err)
	}
	e.addAnswers(given)
	return e, nil
}

// addAnswers tells each delivery when it was answered.
func (e *Evidence) addAnswers(given []ledger.Given) {
	type delivery struct {
		webhook string
		came    int64
	}
	answered := map[delivery]time.Time{}
	for _, g := range given {
		answered[delivery{g.Webhook, g.Came.UnixNano()}] = g.Answered
	}
	for i := range e.Events {
		d := &e.Events[i]
		d.Answered = answered[delivery{d.Webhook, d.At.UnixNano()}]
	}
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
	e.courses = map[string]course{}
	for id := range e.histories {
		e.courses[id] = e.courseOf(id)
	}
	e.claims = e.claimsOf()
}

// last is the last committed state of a request: what is stored now, or what was when it was deleted.
func (e *Evidence) last(id string) (ledger.Change, bool) {
	history := e.histories[id]
	if len(history) == 0 {
		return ledger.Change{}, false
	}
	return history[len(history)-1], true
}

// ids are those of all stored requests, in order.
func (e *Evidence) ids() []string { return slices.Sorted(maps.Keys(e.histories)) }

// verifiedAt returns when a request was verified, as it is stored; zero if it was not.
func (e *Evidence) verifiedAt(id string) time.Time {
	for _, c := range e.histories[id] {
		if c.Phase == verified {
			return c.Verified
		}
	}
	return time.Time{}
}

// committedAt returns when a request's first state of a phase was committed; zero where the store does not tell.
func (e *Evidence) committedAt(id, phase string) time.Time {
	for _, c := range e.histories[id] {
		if c.Phase == phase {
			return c.Committed
		}
	}
	return time.Time{}
}
