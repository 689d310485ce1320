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

// Evidence is everything that a run recorded.
type Evidence struct {
	Acks     []ledger.Ack
	Statuses []ledger.Status
	Inbound  []ledger.Inbound
	Confirms []ledger.Confirm
	Events   []ledger.Delivery
	// Changes are the commits that a witness beneath the system saw; each request's are in order.
	Changes []ledger.Change
	// Final are the states in the store at the end.
	Final  []ledger.Change
	Faults []ledger.Fault
	// KeyTries are uses of a revoked API key.
	KeyTries []ledger.KeyTry
	// Codes are those that the platform got, and Tries the calls that asked for them.
	Codes []ledger.Code
	Tries []ledger.Try
	// CodeKills is the number of kills on the way of a code; without one the rules of codes are not judged.
	CodeKills int
	// Kubernetes reports whether the store is an API server, whose connection is also used for the lease of the only
	// sender.
	Kubernetes bool
	// Times are the product's time limits in the run.
	Times Times
	// End is when the run ended.
	End time.Time

	histories  map[string][]ledger.Change
	deliveries map[string][]ledger.Delivery
	courses    map[string]course
	claims     map[string]claim
	codes      map[string][]ledger.Code
}

// Load reads the ledgers of a run from its folder.
func Load(dir string) (*Evidence, error) {
	e := &Evidence{}
	err := errors.Join(
		readLedger(&e.Acks, dir, ledger.ClientFile), readLedger(&e.Statuses, dir, ledger.StatusFile),
		readLedger(&e.Inbound, dir, ledger.PlatformFile), readLedger(&e.Events, dir, ledger.SinkFile),
		readLedger(&e.Confirms, dir, ledger.ConfirmFile),
		readLedger(&e.Changes, dir, ledger.StoreFile), readLedger(&e.Final, dir, ledger.FinalFile),
		readLedger(&e.Faults, dir, ledger.FaultFile), readLedger(&e.KeyTries, dir, ledger.KeyFile),
		readLedger(&e.Codes, dir, ledger.CodeFile), readLedger(&e.Tries, dir, ledger.TryFile),
	)
	var given []ledger.Given
	err = errors.Join(err, readLedger(&given, dir, ledger.AnswerFile))
	if err != nil {
		return nil, fmt.Errorf("load evidence: %w", err)
	}
	e.addAnswers(given)
	return e, nil
}

// addAnswers sets the time of the answer of each delivery.
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

func readLedger[T any](records *[]T, dir, name string) (err error) {
	*records, err = ledger.Read[T](filepath.Join(dir, name))
	return err
}

// buildIndex groups the evidence by request.
func (e *Evidence) buildIndex() {
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
	e.codes = map[string][]ledger.Code{}
	for _, c := range e.Codes {
		e.codes[c.Request] = append(e.codes[c.Request], c)
	}
	e.claims = e.claimsOf()
}

// lastState returns the last committed state of a request; of a deleted one, the state that was deleted.
func (e *Evidence) lastState(id string) (ledger.Change, bool) {
	history := e.histories[id]
	if len(history) == 0 {
		return ledger.Change{}, false
	}
	return history[len(history)-1], true
}

// requestIDs returns the sorted ids of all requests in the witness's history.
func (e *Evidence) requestIDs() []string { return slices.Sorted(maps.Keys(e.histories)) }

// verifiedAt returns the stored time of a request's verification; zero if it was not verified.
func (e *Evidence) verifiedAt(id string) time.Time {
	for _, c := range e.histories[id] {
		if c.Phase == verified {
			return c.Verified
		}
	}
	return time.Time{}
}

// committedAt returns when a request's first state of a phase was committed; zero if the store does not record it.
func (e *Evidence) committedAt(id, phase string) time.Time {
	for _, c := range e.histories[id] {
		if c.Phase == phase {
			return c.Committed
		}
	}
	return time.Time{}
}
