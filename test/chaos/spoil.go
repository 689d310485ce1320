package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
	"github.com/phoneproof/phoneproof/test/faultproxy"
	"github.com/phoneproof/phoneproof/test/tcpline"
)

const (
	// faultEvery is the share of transactions that a fault hits: one in faultEvery of each operation.
	faultEvery = 3
	// informerLag is how late events reach informers.
	informerLag = 10 * time.Second
	// repeatedRevisions is how many revisions of the API server an informer receives again.
	repeatedRevisions = 1000
	// hitTimeout bounds the wait for a fault to hit something when little happens. While the store is stopped nothing can be hit, so
	// that time does not count.
	hitTimeout = 30 * time.Second
	// restartInterval is how long after its start a fault that hit nothing starts again: informers restart their
	// watches more often.
	restartInterval = 3 * time.Second
	// minFaultTime is how long a fault lasts at least.
	minFaultTime = 2 * time.Second
	// pollInterval is how often the hits are checked.
	pollInterval = 50 * time.Millisecond
)

// The SQLSTATEs that a commit fails with: raise_exception and disk_full, or serialization_failure and deadlock_detected.
//
//nolint:gochecknoglobals // Go has no constant slices
var (
	refusals       = []string{"P0001", "53100"}
	serializations = []string{"40001", "40P01"}
)

// hit is an operation, named as in the ledgers, of a process that a fault hit.
type hit struct{ operation, victim string }

// partialFault is a fault that hits a share of the traffic.
type partialFault struct {
	busy  *sync.Mutex
	begin func() error
	end   func() error
	// hits returns how often each was hit since the run began.
	hits func() map[hit]int
	// wants are the operations that it must hit.
	wants []string
	// storeStopped reports whether another fault keeps the store from answering.
	storeStopped func() bool
	// restart starts it again while it has hit nothing, if it only has an effect at its start; else nil.
	restart func()
}

// injectPartial makes some transactions, watches or answers fail for a while, and longer if its kind has not hit yet
// everything that it must hit in the run. It returns what it hit.
func (i *injector) injectPartial(ctx context.Context, f schedule.Fault, record *ledger.Fault) (map[hit]int, error) {
	s := i.newPartialFault(ctx, f)
	s.storeStopped = i.storeStopped
	s.busy.Lock()
	defer s.busy.Unlock()
	before := s.hits()
	record.From = time.Now()
	if err := s.begin(); err != nil {
		return nil, err
	}
	sleep(ctx, max(f.For, minFaultTime))
	s.awaitHits(ctx, before, i.missingOperations(f.Kind, s.wants))
	if err := s.end(); err != nil {
		return nil, err
	}
	record.Until = time.Now()
	hits := addedHits(before, s.hits())
	i.recordHits(f.Kind, hits)
	return hits, nil
}

// splitByVictim returns the records of a fault: one for each process that it hit, with its hits. So a hit of one
// process explains nothing about another. An unknown process may be any.
func splitByVictim(record ledger.Fault, hits map[hit]int) []ledger.Fault {
	if len(hits) == 0 {
		return []ledger.Fault{record}
	}
	each := map[string]map[string]int{}
	for h, n := range hits {
		if each[h.victim] == nil {
			each[h.victim] = map[string]int{}
		}
		each[h.victim][h.operation] += n
	}
	var records []ledger.Fault
	for _, victim := range slices.Sorted(maps.Keys(each)) {
		record.Victims, record.Hits = []string{cmp.Or(victim, ledger.Everyone)}, each[victim]
		records = append(records, record)
	}
	return records
}

// hitsOf returns the hits of a proxy behind a line.
func hitsOf(counted tcpline.Hits) map[hit]int {
	hits := map[hit]int{}
	for h, n := range counted {
		hits[hit{h.What, h.Client}] = n
	}
	return hits
}

// The operations that partial faults hit, besides those of transactions.
const (
	lostAnswer = "answer"
	lateEvent  = "late event"
	oldState   = "old state"
)

// newPartialFault returns the fault for a kind. A database's partial faults never coincide with its crash or freeze,
// because its triggers are controlled by SQL statements.
func (i *injector) newPartialFault(ctx context.Context, f schedule.Fault) partialFault {
	switch f.Kind {
	case schedule.CutSink:
		return newAnswerFault(i.lines.sink, &i.sinkLine, f.Count)
	case schedule.CutStore:
		if i.lines.transactions == nil {
			return newAnswerFault(i.lines.store, &i.storeLine, f.Count)
		}
		return i.newCommitFault(ctx, f)
	case schedule.RefuseCommit, schedule.SerializeCommit, schedule.CutCommit:
		return i.newCommitFault(ctx, f)
	default:
		return i.newWatchFault(f)
	}
}

// newAnswerFault returns a fault that loses the answers to count requests over a line.
func newAnswerFault(line *faultproxy.Proxy, busy *sync.Mutex, count int) partialFault {
	return partialFault{
		busy:  busy,
		begin: func() error { line.CutAnswers(count); return nil },
		end:   func() error { line.CutAnswers(0); return nil },
		hits: func() map[hit]int {
			hits := map[hit]int{}
			for _, owner := range line.Cuts() {
				hits[hit{lostAnswer, owner}]++
			}
			return hits
		},
		wants: []string{lostAnswer},
	}
}

// newCommitFault returns a fault that breaks commits of a database.
func (i *injector) newCommitFault(ctx context.Context, f schedule.Fault) partialFault {
	transactions := i.lines.transactions
	s := partialFault{busy: &i.storeBusy, wants: []string{opInsert, opUpdate, opClaim}}
	counted := transactions.Refused
	failing := func(states []string) {
		s.begin = func() error {
			transactions.NoteRefusals(refusal)
			return i.triggers.failCommits(ctx, states[f.Victim%len(states)], faultEvery)
		}
		s.end = func() error {
			err := i.triggers.stopFailing(ctx)
			transactions.NoteRefusals("")
			return err
		}
	}
	switch f.Kind {
	case schedule.RefuseCommit:
		failing(refusals)
	case schedule.SerializeCommit:
		failing(serializations)
	case schedule.CutCommit:
		s.begin = func() error { transactions.CutCommits(faultEvery); return nil }
		s.end = func() error { transactions.CutCommits(0); return nil }
		counted = transactions.Cut
	default:
		s.begin = func() error { transactions.LoseAnswers(f.Count); return nil }
		s.end = func() error { transactions.LoseAnswers(0); return nil }
		counted = transactions.Lost
	}
	s.hits = func() map[hit]int { return hitsOf(counted()) }
	return s
}

// newWatchFault returns a fault that breaks watches of an API server.
func (i *injector) newWatchFault(f schedule.Fault) partialFault {
	calls := i.lines.calls
	if f.Kind == schedule.LagWatch {
		return partialFault{
			busy:  &i.watches,
			begin: func() error { calls.LagWatches(informerLag); return nil },
			end:   func() error { calls.LagWatches(0); return nil },
			hits:  func() map[hit]int { return map[hit]int{{operation: lateEvent}: calls.Late()} },
			wants: []string{lateEvent},
		}
	}
	return partialFault{
		busy:    &i.watches,
		begin:   func() error { calls.RepeatWatches(repeatedRevisions); return nil },
		end:     func() error { calls.RepeatWatches(0); return nil },
		hits:    func() map[hit]int { return map[hit]int{{operation: oldState}: calls.Repeated()} },
		wants:   []string{oldState},
		restart: func() { calls.RepeatWatches(repeatedRevisions) },
	}
}

// awaitHits returns when each of the operations was hit more often than before, or after hitTimeout of a store that runs.
func (s *partialFault) awaitHits(ctx context.Context, before map[hit]int, wanting []string) {
	for began, last := time.Now(), time.Now(); ; sleep(ctx, pollInterval) {
		left := slices.Clone(wanting)
		for h := range addedHits(before, s.hits()) {
			left = slices.DeleteFunc(left, func(operation string) bool { return operation == h.operation })
		}
		if len(left) == 0 || ctx.Err() != nil || time.Since(began) > hitTimeout {
			return
		}
		if s.storeStopped() {
			began = time.Now()
		}
		if s.restart != nil && time.Since(last) > restartInterval {
			last = time.Now()
			s.restart()
		}
	}
}

// missingOperations returns the operations that a kind of fault must still hit in the run.
func (i *injector) missingOperations(kind schedule.Kind, wants []string) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, begun := i.missing[kind]; !begun {
		i.missing[kind] = wants
	}
	return i.missing[kind]
}

// recordHits adds the hits of a fault to those of its kind.
func (i *injector) recordHits(kind schedule.Kind, hits map[hit]int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.hits[kind] == nil {
		i.hits[kind] = map[string]int{}
	}
	for h, n := range hits {
		i.hits[kind][h.operation] += n
	}
	i.missing[kind] = slices.DeleteFunc(slices.Clone(i.missing[kind]), func(operation string) bool { return i.hits[kind][operation] > 0 })
}

// checkMissing returns an error for each operation that a kind of fault must hit but did not: the run proves nothing
// about it.
func (i *injector) checkMissing() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all error
	for _, kind := range slices.Sorted(maps.Keys(i.missing)) {
		for _, operation := range i.missing[kind] {
			all = errors.Join(all, fmt.Errorf("%s hit no %s", kind, operation))
		}
	}
	return all
}

// addedHits returns the hits that were added.
func addedHits(before, after map[hit]int) map[hit]int {
	added := map[hit]int{}
	for what, n := range after {
		if n > before[what] {
			added[what] = n - before[what]
		}
	}
	return added
}

// formatHits lists what each kind of fault hit, and how often.
func formatHits(hits map[schedule.Kind]map[string]int) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(hits)) {
		var each []string
		for _, what := range slices.Sorted(maps.Keys(hits[kind])) {
			each = append(each, fmt.Sprintf("%d %s", hits[kind][what], what))
		}
		all = append(all, fmt.Sprintf("%s: %s", kind, strings.Join(each, ", ")))
	}
	return strings.Join(all, "; ")
}
