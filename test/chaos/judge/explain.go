package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
)

// effect is what a fault may do to the delivery of an event.
type effect string

// The effects.
const (
	// unrecorded: the receiver has the event, and the attempt is not recorded. So the event is sent again.
	unrecorded effect = "unrecorded"
	// unanswered: the receiver took the event, and the attempt is recorded as one that got no answer.
	unanswered effect = "unanswered"
	// unseen: an attempt is recorded that never reached the receiver.
	unseen effect = "unseen"
	// late: the event comes after another process recorded an attempt in its place.
	late effect = "late"
)

// effects is what each kind of fault may do to the processes that it hit. What is not here explains nothing.
//
//nolint:gochecknoglobals // a constant, which Go has no maps of
var effects = map[schedule.Kind][]effect{
	// A process that ends takes with it what it knew of the attempts it had begun.
	schedule.Kill:       {unrecorded},
	schedule.KillLeader: {unrecorded},
	schedule.KillAll:    {unrecorded},
	schedule.Roll:       {unrecorded},
	// One that stands still loses its lease or claim, and meets the end of its attempt's time when it goes on.
	schedule.Freeze:       {unrecorded, unanswered, unseen, late},
	schedule.FreezeLeader: {unrecorded, unanswered, unseen, late},
	// Without the store nothing is recorded, leases run out, and what was read before is old when it comes.
	schedule.CrashStore:  {unrecorded, late},
	schedule.FreezeStore: {unrecorded, late},
	schedule.CutStore:    {unrecorded},
	schedule.DelayStore:  {unrecorded, late},
	schedule.HoleStore:   {unrecorded, late},
	schedule.SlowStore:   {unrecorded, late},
	// What records an attempt may be refused until the claim ends. What is repeated within the same call explains nothing:
	// serialization failures, answers to single writes, conflicts, and news that come late or twice.
	schedule.RefuseCommit: {unrecorded},
	schedule.CutCommit:    {unrecorded},
	// A connection to the API server carries the lease, too.
	schedule.CutWrite:  {unrecorded, late},
	schedule.CutStored: {unrecorded, late},
	// What the line to the receiver swallows has no answer, and arrives when the attempt is over.
	schedule.CutSink:  {unanswered},
	schedule.HoleSink: {unrecorded, unanswered, unseen, late},
}

// Times are what the product allows itself, by its constants and by the flags and settings of the run. Every window in
// which a fault may explain something is made of them.
type Times struct {
	// Attempt is how long an attempt lasts at most: spec.webhook.timeout.
	Attempt time.Duration
	// Record is how long the write that records it is tried: request.RecordTimeout.
	Record time.Duration
	// Fresh is how old a claim may be that is sent from without another look: request.ClaimFresh.
	Fresh time.Duration
}

// aftermath is how long after a fault the attempts go on that it hit: one that was just about to begin when the fault ended
// may go by a look of Fresh before, and lasts Attempt.
func (t Times) aftermath() time.Duration { return t.Fresh + t.Attempt }

// recorded is how long after its arrival an event's attempt is recorded, by a process that nothing happens to.
func (t Times) recorded() time.Duration { return t.Attempt + t.Record }

// explain returns the kind of the first fault that has the effect, hit the process, began before to, and was not over, with
// its aftermath, before from; empty if there is none.
func (e *Evidence) explain(by effect, process string, from, to time.Time) string {
	for _, f := range e.Faults {
		if slices.Contains(effects[schedule.Kind(f.Kind)], by) && f.Hit(process) &&
			!f.From.After(to) && !f.Until.Add(e.Times.aftermath()).Before(from) {
			return f.Kind
		}
	}
	return ""
}

// explainLoss returns the kind of fault because of which the attempt of a delivery is not recorded: it hit the sender
// before that was to happen, and before the event came again; zero means that it never did.
func (e *Evidence) explainLoss(d *ledger.Delivery, again time.Time) string {
	due := d.At.Add(e.Times.recorded())
	if !again.IsZero() && again.Before(due) {
		due = again
	}
	return e.explain(unrecorded, d.Process, d.At, due)
}

// explainAgain returns the kind of fault because of which one delivery follows another while the same attempt was due: the
// first one's sender could not record it, or the second was on its way since before the first came.
func (e *Evidence) explainAgain(first, second *ledger.Delivery) string {
	if kind := e.explainLoss(first, second.At); kind != "" {
		return kind
	}
	return e.explain(late, second.Process, second.At, first.At)
}

// explainStray returns the kind of fault because of which a delivery came while none was due: it held the delivery up since
// before the state was committed that it contradicts.
func (e *Evidence) explainStray(s *stray) string {
	return e.explain(late, s.Process, s.At, committed(&s.after))
}

// explainTurn returns the kind of fault because of which an attempt is recorded otherwise than the receiver saw it, and
// whether that needs any.
func (e *Evidence) explainTurn(t *turn) (kind string, needed bool) {
	switch {
	case t.record == nil || t.answered():
		return "", false
	case t.record.Code != 0: // what nobody answered cannot be heard
		return "", true
	case len(t.sent) == 0:
		return e.explain(unseen, "", t.record.Tried.Add(-e.Times.Attempt), t.record.Tried), true
	}
	for _, d := range t.sent {
		if kind = e.explain(unanswered, d.Process, d.At, t.record.Tried); kind != "" {
			break
		}
	}
	return kind, true
}

// reasons counts what explained something, by kinds of faults.
type reasons map[string]int

// add counts one; the empty kind is no reason.
func (r reasons) add(kind string) {
	if kind != "" {
		r[kind]++
	}
}

// String lists them by name.
func (r reasons) String() string {
	if len(r) == 0 {
		return "none"
	}
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(r)) {
		all = append(all, fmt.Sprintf("%s %d", kind, r[kind]))
	}
	return strings.Join(all, ", ")
}
