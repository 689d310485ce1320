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

	"github.com/phoneproof/phoneproof/test/apiproxy"
	"github.com/phoneproof/phoneproof/test/chaos/commits"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
	"github.com/phoneproof/phoneproof/test/faultproxy"
	"github.com/phoneproof/phoneproof/test/tcpline"
)

const (
	// spoiled is the share of transactions, and of writes, that a fault hits: one in so many of each operation.
	spoiled = 3
	// conflicting is that of updates that meet a conflict.
	conflicting = 2
	// informerLag is how late informers are.
	informerLag = 10 * time.Second
	// rewound is how many revisions of the API server an informer hears of again.
	rewound = 1000
	// firstHit bounds the wait for a fault to hit something, where little happens.
	firstHit = 30 * time.Second
	// nextBegin is how long after it began a fault that hit nothing begins again: informers watch again within less.
	nextBegin = 3 * time.Second
	// cutTime is how long a fault lasts at least.
	cutTime = 2 * time.Second
	// look is how often that is looked for.
	look = 50 * time.Millisecond
)

// The SQLSTATEs that a commit fails with: what a trigger raises and a disk that is full, or a serialization failure and a
// deadlock.
//
//nolint:gochecknoglobals // constants, which Go has no slices of
var (
	refusals       = []string{"P0001", "53100"}
	serializations = []string{"40001", "40P01"}
)

// hit is an operation of a process, named as in the ledgers, that a fault hit.
type hit struct{ operation, victim string }

// spoiling is a fault that hits some of what goes by.
type spoiling struct {
	busy  *sync.Mutex
	begin func() error
	end   func() error
	// hits returns how often each was hit since the run began.
	hits func() map[hit]int
	// wants are the operations that it is to hit.
	wants []string
	// again begins it once more while it has hit nothing, where what it hits is there at its begin alone; or it is nil.
	again func()
}

// spoil has some transactions, writes or answers fail for a while, and longer where it has not hit yet what it is to hit in
// the run. It returns what it hit.
func (i *injector) spoil(ctx context.Context, f schedule.Fault, record *ledger.Fault) (map[hit]int, error) {
	s := i.spoiling(ctx, f)
	s.busy.Lock()
	defer s.busy.Unlock()
	before := s.hits()
	record.From = time.Now()
	if err := s.begin(); err != nil {
		return nil, err
	}
	sleep(ctx, max(f.For, cutTime))
	s.awaitHits(ctx, before, i.wanting(f.Kind, s.wants))
	if err := s.end(); err != nil {
		return nil, err
	}
	record.Until = time.Now()
	hits := difference(before, s.hits())
	i.tellHits(f.Kind, hits)
	return hits, nil
}

// splitByVictim returns the records of a fault: one for each process that it hit, with what it hit of that one. So a hit of one
// process explains nothing of another one's. A process that is not known may be any.
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

// The operations of a spoiling.
const (
	lostAnswer = "answer"
	lateEvent  = "late event"
	oldState   = "old state"
)

// spoiling returns what a kind of fault does. None of a database's coincides with its crash or freeze: triggers are steered
// by statements of our own.
func (i *injector) spoiling(ctx context.Context, f schedule.Fault) spoiling {
	switch f.Kind {
	case schedule.CutSink:
		return cuttingAnswers(i.lines.sink, &i.sinkLine, f.Count)
	case schedule.CutStore:
		if i.lines.transactions == nil {
			return cuttingAnswers(i.lines.store, &i.storeLine, f.Count)
		}
		return i.spoilingCommits(ctx, f)
	case schedule.RefuseCommit, schedule.SerializeCommit, schedule.CutCommit:
		return i.spoilingCommits(ctx, f)
	default:
		return i.spoilingCalls(f)
	}
}

// cuttingAnswers loses the answers to so many requests over a line.
func cuttingAnswers(line *faultproxy.Proxy, busy *sync.Mutex, count int) spoiling {
	return spoiling{
		busy:  busy,
		begin: func() error { line.CutAnswers(count, nil); return nil },
		end:   func() error { line.CutAnswers(0, nil); return nil },
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

// spoilingCommits breaks commits of a database.
func (i *injector) spoilingCommits(ctx context.Context, f schedule.Fault) spoiling {
	transactions := i.lines.transactions
	s := spoiling{busy: &i.storeBusy, wants: []string{commits.Insert, commits.Update, commits.Claim}}
	counted := transactions.Refused
	failing := func(states []string) {
		s.begin = func() error {
			transactions.NoteRefusals(commits.Message)
			return i.triggers.Fail(ctx, states[f.Victim%len(states)], spoiled)
		}
		s.end = func() error {
			err := i.triggers.Stop(ctx)
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
		s.begin = func() error { transactions.CutCommits(spoiled); return nil }
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

// spoilingCalls breaks calls to an API server.
func (i *injector) spoilingCalls(f schedule.Fault) spoiling {
	calls := i.lines.calls
	writes := func(how apiproxy.Spoiling, every int, wants ...string) spoiling {
		return spoiling{
			busy:  &i.writes,
			begin: func() error { calls.Spoil(how, every); return nil },
			end:   func() error { calls.Spoil(apiproxy.Nothing, 0); return nil },
			hits:  func() map[hit]int { return hitsOf(calls.Spoiled()) },
			wants: wants,
		}
	}
	switch f.Kind {
	case schedule.FailWrite:
		return writes(apiproxy.FailBefore, spoiled, apiproxy.Create, apiproxy.Update)
	case schedule.FailStored:
		return writes(apiproxy.FailAfter, spoiled, apiproxy.Create, apiproxy.Update)
	case schedule.CutWrite:
		return writes(apiproxy.CutBefore, spoiled, apiproxy.Create, apiproxy.Update)
	case schedule.CutStored:
		return writes(apiproxy.CutAfter, spoiled, apiproxy.Create, apiproxy.Update)
	case schedule.Conflict:
		return writes(apiproxy.Conflict, conflicting, apiproxy.Update)
	case schedule.LagWatch:
		return spoiling{
			busy:  &i.watches,
			begin: func() error { calls.LagWatches(informerLag); return nil },
			end:   func() error { calls.LagWatches(0); return nil },
			hits:  func() map[hit]int { return map[hit]int{{operation: lateEvent}: calls.Late()} },
			wants: []string{lateEvent},
		}
	default:
		return spoiling{
			busy:  &i.watches,
			begin: func() error { calls.RepeatWatches(rewound); return nil },
			end:   func() error { calls.RepeatWatches(0); return nil },
			hits:  func() map[hit]int { return map[hit]int{{operation: oldState}: calls.Repeated()} },
			wants: []string{oldState},
			again: func() { calls.RepeatWatches(rewound) },
		}
	}
}

// awaitHits returns when each of the operations was hit more often than before, or when nothing is to be hoped for any more.
func (s *spoiling) awaitHits(ctx context.Context, before map[hit]int, wanting []string) {
	for began, last := time.Now(), time.Now(); ; sleep(ctx, look) {
		left := slices.Clone(wanting)
		for h := range difference(before, s.hits()) {
			left = slices.DeleteFunc(left, func(operation string) bool { return operation == h.operation })
		}
		if len(left) == 0 || ctx.Err() != nil || time.Since(began) > firstHit {
			return
		}
		if s.again != nil && time.Since(last) > nextBegin {
			last = time.Now()
			s.again()
		}
	}
}

// wanting returns which of the operations that a kind of fault is to hit it has not hit in the run.
func (i *injector) wanting(kind schedule.Kind, wants []string) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, begun := i.missing[kind]; !begun {
		i.missing[kind] = wants
	}
	return i.missing[kind]
}

// tellHits adds what a fault hit to what its kind did.
func (i *injector) tellHits(kind schedule.Kind, hits map[hit]int) {
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

// missed names the kinds of faults that did not hit what they are to hit: a run with them proves nothing about them.
func (i *injector) missed() error {
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

// difference is what was added.
func difference(before, after map[hit]int) map[hit]int {
	added := map[hit]int{}
	for what, n := range after {
		if n > before[what] {
			added[what] = n - before[what]
		}
	}
	return added
}

// listHits says what each kind of fault hit, and how much of it.
func listHits(hits map[schedule.Kind]map[string]int) string {
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
