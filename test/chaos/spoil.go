package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/test/apiproxy"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
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

// spoiling is a fault that hits a share of what goes by.
type spoiling struct {
	busy  *sync.Mutex
	begin func() error
	end   func() error
	// hits returns how many of each thing were hit since the run began.
	hits func() (map[string]int, error)
	// again begins it once more while it has hit nothing, where what it hits is there at its begin alone; or it is nil.
	again func()
}

// spoil has a share of transactions, writes or events fail for a while, and longer where it has hit none yet.
func (i *injector) spoil(ctx context.Context, f schedule.Fault, record *ledger.Fault) (err error) {
	s := i.spoiling(ctx, f)
	s.busy.Lock()
	defer s.busy.Unlock()
	before, err := s.hits()
	if err != nil {
		return err
	}
	record.From, record.Victims = time.Now(), []string{ledger.Everyone}
	if err := s.begin(); err != nil {
		return err
	}
	sleep(ctx, f.For)
	after, err := s.awaitHit(ctx, before)
	if err := errors.Join(err, s.end()); err != nil {
		return err
	}
	record.Until, record.Hits = time.Now(), difference(before, after)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.hits[f.Kind] == nil {
		i.hits[f.Kind] = map[string]int{}
	}
	for what, n := range record.Hits {
		i.hits[f.Kind][what] += n
	}
	return nil
}

// spoiling returns what a kind of fault does. None of a database's coincides with its crash or freeze: triggers are steered
// by statements of our own.
func (i *injector) spoiling(ctx context.Context, f schedule.Fault) spoiling {
	transactions, calls := i.lines.transactions, i.lines.calls
	failing := func(states []string) spoiling {
		return spoiling{
			busy:  &i.storeBusy,
			begin: func() error { return i.triggers.Fail(ctx, states[f.Victim%len(states)], spoiled) },
			end:   func() error { return i.triggers.Stop(ctx) },
			hits:  func() (map[string]int, error) { return i.triggers.Failed(ctx) },
		}
	}
	writes := func(how apiproxy.Spoiling, every int) spoiling {
		return spoiling{
			busy:  &i.writes,
			begin: func() error { calls.Spoil(how, every); return nil },
			end:   func() error { calls.Spoil(apiproxy.Nothing, 0); return nil },
			hits:  func() (map[string]int, error) { return calls.Spoiled(), nil },
		}
	}
	switch f.Kind {
	case schedule.RefuseCommit:
		return failing(refusals)
	case schedule.SerializeCommit:
		return failing(serializations)
	case schedule.CutCommit:
		return spoiling{
			busy:  &i.storeBusy,
			begin: func() error { transactions.CutCommits(spoiled); return nil },
			end:   func() error { transactions.CutCommits(0); return nil },
			hits:  func() (map[string]int, error) { return transactions.Cut(), nil },
		}
	case schedule.FailWrite:
		return writes(apiproxy.FailBefore, spoiled)
	case schedule.FailStored:
		return writes(apiproxy.FailAfter, spoiled)
	case schedule.CutWrite:
		return writes(apiproxy.CutBefore, spoiled)
	case schedule.CutStored:
		return writes(apiproxy.CutAfter, spoiled)
	case schedule.Conflict:
		return writes(apiproxy.Conflict, conflicting)
	case schedule.LagWatch:
		return spoiling{
			busy:  &i.watches,
			begin: func() error { calls.LagWatches(informerLag); return nil },
			end:   func() error { calls.LagWatches(0); return nil },
			hits:  func() (map[string]int, error) { return map[string]int{"late event": calls.Late()}, nil },
		}
	default:
		return spoiling{
			busy:  &i.watches,
			begin: func() error { calls.RepeatWatches(rewound); return nil },
			end:   func() error { calls.RepeatWatches(0); return nil },
			hits:  func() (map[string]int, error) { return map[string]int{"old state": calls.Repeated()}, nil },
			again: func() { calls.RepeatWatches(rewound) },
		}
	}
}

// awaitHit returns the hits as soon as there is one more than before, or when nothing is to be hoped for any more.
func (s *spoiling) awaitHit(ctx context.Context, before map[string]int) (map[string]int, error) {
	for began, last := time.Now(), time.Now(); ; sleep(ctx, look) {
		now, err := s.hits()
		if err != nil || ctx.Err() != nil || len(difference(before, now)) > 0 || time.Since(began) > firstHit {
			return now, err
		}
		if s.again != nil && time.Since(last) > nextBegin {
			last = time.Now()
			s.again()
		}
	}
}

// missed names the kinds of faults that hit nothing: a run with them proves nothing about them.
func (i *injector) missed() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all error
	for kind, hits := range i.hits {
		if len(hits) == 0 {
			all = errors.Join(all, fmt.Errorf("%s hit nothing", kind))
		}
	}
	return all
}

// difference is what was added.
func difference(before, after map[string]int) map[string]int {
	added := map[string]int{}
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
