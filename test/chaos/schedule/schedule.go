// Package schedule draws the faults of a chaos run from a seed.
//
// The invariant: the same options give the same faults in the same order, with the same victims and lengths, on any
// machine. The time at which one begins depends on the run: it is given as a share of its load.
package schedule

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is what a fault does.
type Kind string

// The kinds. The store is the database or the API server; lines are the connections to it and to the receiver.
const (
	Kill         Kind = "kill"          // kill -9 of a replica, which is replaced
	KillLeader   Kind = "kill-leader"   // kill -9 of the one that holds the lease
	KillAll      Kind = "kill-all"      // kill -9 of all at once
	Freeze       Kind = "freeze"        // SIGSTOP of a replica for longer than its lease, then SIGCONT
	FreezeLeader Kind = "freeze-leader" // the one that holds the lease
	Roll         Kind = "roll"          // SIGTERM of one after the other, each replaced before the next
	CrashStore   Kind = "crash-store"   // it is killed and starts again
	FreezeStore  Kind = "freeze-store"  // it is stopped and continued
	CutStore     Kind = "cut-store"     // requests are executed, and their answers never come
	DelayStore   Kind = "delay-store"   // all traffic is delayed
	HoleStore    Kind = "hole-store"    // no traffic gets through, and no connection fails
	SlowStore    Kind = "slow-store"    // few bytes per second
	CutSink      Kind = "cut-sink"      // events arrive, and their answers never come
	DelaySink    Kind = "delay-sink"
	HoleSink     Kind = "hole-sink"
	RotateHook   Kind = "rotate-webhook" // the webhook's secret
	RotateKey    Kind = "rotate-key"     // the API key, with an overlap
)

// The kinds for a database. Each hits one in a number of transactions of each operation: insert, update and claim.
const (
	RefuseCommit    Kind = "refuse-commit"    // its COMMIT is refused, by a deferred constraint trigger
	SerializeCommit Kind = "serialize-commit" // its COMMIT meets a serialization failure or a deadlock
	CutCommit       Kind = "cut-commit"       // its statements are executed, and its connection ends before the COMMIT arrives
)

// The kinds for a database with a standby, which takes the primary's place.
const (
	Failover Kind = "failover" // the primary is killed, and comes back as the standby
	Isolate  Kind = "isolate"  // the primary is cut off from clients and standby, and comes back as a second primary until it is fenced
)

// The kinds for an API server, which hit the watches of informers. What single writes meet is tested call by call at the store.
const (
	LagWatch    Kind = "lag-watch"    // events reach informers late
	RepeatWatch Kind = "repeat-watch" // informers receive old states again
)

// OfDatabase returns the kinds that need a database.
func OfDatabase() []Kind { return []Kind{RefuseCommit, SerializeCommit, CutCommit} }

// OfStore returns the kinds that stop a store, or disturb the line to it.
func OfStore() []Kind {
	return []Kind{CrashStore, FreezeStore, CutStore, DelayStore, HoleStore, SlowStore}
}

// OfAPIServer returns the kinds that need an API server.
func OfAPIServer() []Kind { return []Kind{LagWatch, RepeatWatch} }

// NoAnswer is observed, not injected: the API server did not answer a call about a request, or about the lease, before the process gave
// up, as on a busy machine.
const NoAnswer Kind = "no-answer"

// Kills reports whether the kind ends processes by kill -9, at any point of their work.
func (k Kind) Kills() bool { return k == Kill || k == KillLeader || k == KillAll }

// Fault is a fault to inject.
type Fault struct {
	Kind Kind
	// At is when it begins, as a share of the load.
	At float64
	// Victim chooses among the replicas, modulo their number.
	Victim int
	// For is its length, for kinds that have one.
	For time.Duration
	// Count is how many exchanges it breaks, for kinds that count.
	Count int
}

// Options decide completely what is drawn.
type Options struct {
	Seed uint64
	// Kills is the number of kills of single processes; every tenth is of the leader. KillAll comes in addition. Without any there are no
	// other faults.
	Kills int
	// Leaders reports whether one replica holds a lease that all work depends on.
	Leaders bool
	// Failovers is the number of failovers to a standby; every other one leaves the primary running.
	Failovers int
	// Without are kinds that are left out.
	Without []Kind
}

// others are the kinds besides kills of one process: the number of kills per fault, the least number of faults (a run
// without one proves nothing about it), and their length.
//
//nolint:gochecknoglobals // Go has no constant slices
var others = []struct {
	kind   Kind
	per    int
	least  int
	lasts  [2]time.Duration
	breaks int
}{
	{kind: KillAll, per: 25, least: 1},
	{kind: Freeze, per: 20, least: 1, lasts: [2]time.Duration{11 * time.Second, 15 * time.Second}},
	{kind: FreezeLeader, per: 20, least: 1, lasts: [2]time.Duration{7 * time.Second, 11 * time.Second}},
	{kind: Roll, per: 40, least: 1},
	{kind: CrashStore, per: 25, least: 2, lasts: [2]time.Duration{0, 2 * time.Second}},
	{kind: FreezeStore, per: 40, least: 1, lasts: [2]time.Duration{2 * time.Second, 5 * time.Second}},
	{kind: CutStore, per: 10, least: 2, breaks: 8},
	{kind: DelayStore, per: 40, least: 1, lasts: [2]time.Duration{2 * time.Second, 5 * time.Second}},
	{kind: HoleStore, per: 40, least: 1, lasts: [2]time.Duration{2 * time.Second, 5 * time.Second}},
	{kind: SlowStore, per: 40, least: 1, lasts: [2]time.Duration{2 * time.Second, 4 * time.Second}},
	{kind: CutSink, per: 20, least: 1, breaks: 8},
	{kind: DelaySink, per: 40, least: 1, lasts: [2]time.Duration{time.Second, 2 * time.Second}},
	{kind: HoleSink, per: 60, least: 1, lasts: [2]time.Duration{time.Second, 3 * time.Second}},
	{kind: RotateHook, per: 60, least: 1},
	{kind: RotateKey, per: 60, least: 1},
	// New kinds are added at the end, so that the other faults of a seed stay the same.
	{kind: RefuseCommit, per: 20, least: 1, lasts: [2]time.Duration{2 * time.Second, 4 * time.Second}},
	{kind: SerializeCommit, per: 20, least: 1, lasts: [2]time.Duration{2 * time.Second, 4 * time.Second}},
	{kind: CutCommit, per: 20, least: 1, lasts: [2]time.Duration{2 * time.Second, 4 * time.Second}},
	{kind: LagWatch, per: 40, least: 1, lasts: [2]time.Duration{12 * time.Second, 20 * time.Second}},
	{kind: RepeatWatch, per: 40, least: 1, lasts: [2]time.Duration{4 * time.Second, 8 * time.Second}},
}

// Draw returns the faults of a run in their order.
func Draw(o Options) []Fault {
	random := rand.New(rand.NewPCG(o.Seed, 0))
	var faults []Fault
	add := func(kind Kind, lasts [2]time.Duration, breaks int) {
		f := Fault{Kind: kind, At: 0.02 + 0.9*random.Float64(), Victim: random.IntN(1 << 16)}
		if spread := lasts[1] - lasts[0]; spread > 0 {
			f.For = lasts[0] + time.Duration(random.Int64N(int64(spread)))
		}
		if breaks > 0 {
			f.Count = 1 + random.IntN(breaks)
		}
		if !slices.Contains(o.Without, kind) {
			faults = append(faults, f)
		}
	}
	for n := range o.Kills {
		kind := Kill
		if o.Leaders && n%3 == 0 || n%10 == 0 {
			kind = KillLeader
		}
		add(kind, [2]time.Duration{}, 0)
	}
	for _, other := range others {
		if o.Kills == 0 {
			break // a run of something else
		}
		for range max(other.least, o.Kills/other.per) {
			add(other.kind, other.lasts, other.breaks)
		}
	}
	for n := range o.Failovers {
		add([]Kind{Failover, Isolate}[n%2], [2]time.Duration{time.Second, 3 * time.Second}, 0)
	}
	slices.SortStableFunc(faults, func(a, b Fault) int {
		if a.At < b.At {
			return -1
		}
		return 1
	})
	return faults
}
