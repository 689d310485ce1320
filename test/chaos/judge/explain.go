package judge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	// held: the event comes after its own attempt was over.
	held effect = "held"
)

// tail is how long after the end of a fault its effect may be seen.
type tail func(Times) time.Duration

// noTime: what is hit is hit during the fault.
func noTime(Times) time.Duration { return 0 }

// arrivalTime is how long an event, or what it leaves undone, may be on its way on a busy machine.
func arrivalTime(Times) time.Duration { return transit }

// attemptTime is how long the attempts go on that were about to begin when the fault ended: one may go by a look of Fresh
// before, and lasts Attempt.
func attemptTime(t Times) time.Duration { return t.Fresh + t.Attempt }

// transit is what may pass between two processes of a busy machine from a write to the stamp of who reads it.
const transit = time.Second

// effects is what each kind of fault may do to the processes that it hit, and for how long. What is not here explains
// nothing.
//
//nolint:gochecknoglobals // a constant, which Go has no maps of
var effects = map[schedule.Kind]map[effect]tail{
	// A process that ends takes with it what it knew of the attempts it had begun.
	schedule.Kill:       {unrecorded: noTime},
	schedule.KillLeader: {unrecorded: noTime},
	schedule.KillAll:    {unrecorded: noTime},
	schedule.Roll:       {unrecorded: noTime},
	// One that stands still loses its lease or claim, and meets the end of its attempt's time when it goes on.
	schedule.Freeze:       {unrecorded: attemptTime, unanswered: arrivalTime, unseen: arrivalTime, late: attemptTime},
	schedule.FreezeLeader: {unrecorded: attemptTime, unanswered: arrivalTime, unseen: arrivalTime, late: attemptTime},
	// Without the store nothing is recorded, leases run out, and what was read before is old when it comes.
	schedule.CrashStore:  {unrecorded: attemptTime, late: attemptTime},
	schedule.FreezeStore: {unrecorded: attemptTime, late: attemptTime},
	schedule.DelayStore:  {unrecorded: attemptTime, late: attemptTime},
	schedule.HoleStore:   {unrecorded: attemptTime, late: attemptTime},
	schedule.SlowStore:   {unrecorded: attemptTime, late: attemptTime},
	// The write that records an attempt may fail, or its answer be lost, until the claim ends. What is repeated within the
	// same call explains nothing: serialization failures, answers to single writes, conflicts, and news that come late or
	// twice.
	schedule.CutStore:     {unrecorded: noTime},
	schedule.RefuseCommit: {unrecorded: noTime},
	schedule.CutCommit:    {unrecorded: noTime},
	// A connection to the API server carries the lease, too.
	schedule.CutWrite:  {unrecorded: noTime, late: attemptTime},
	schedule.CutStored: {unrecorded: noTime, late: attemptTime},
	// What the line to the receiver swallows has no answer, and arrives when the attempt is over.
	schedule.CutSink:  {unanswered: noTime},
	schedule.HoleSink: {unanswered: arrivalTime, unseen: arrivalTime, held: arrivalTime},
}

// recording is the operation that records an attempt.
const recording = "update"

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

// explain returns the kind of the first fault that has the effect, hit the process, began before to, and was not over, with
// its tail, before from; empty if there is none.
func (e *Evidence) explain(by effect, process string, from, to time.Time) string {
	for i := range e.Faults {
		f := &e.Faults[i]
		lasts := e.tailOf(f, by)
		if lasts != nil && f.Hit(process) && !f.From.After(to) && !f.Until.Add(lasts(e.Times)).Before(from) {
			return f.Kind
		}
	}
	return ""
}

// tailOf returns how long a fault has an effect; nil if it has it not.
func (e *Evidence) tailOf(f *ledger.Fault, by effect) tail {
	switch kind := schedule.Kind(f.Kind); {
	case kind == schedule.CutStore && e.Kubernetes: // its bytes are encrypted: what was cut is not known, and may be the lease
		return map[effect]tail{unrecorded: noTime, late: attemptTime}[by]
	case by == unrecorded && hitsShare(kind) && f.Hits[recording] == 0:
		return nil
	default:
		return effects[kind][by]
	}
}

// hitsShare reports whether a kind of fault hits a share of the operations, and says which.
func hitsShare(kind schedule.Kind) bool {
	return slices.Contains([]schedule.Kind{
		schedule.CutStore, schedule.RefuseCommit, schedule.CutCommit, schedule.CutWrite, schedule.CutStored,
	}, kind)
}

// recordedBy returns when the attempt of a delivery is recorded at the latest, by a process that nothing happens to. It
// lasts as long as it may where the receiver gives no answer, or its line may lose it.
func (e *Evidence) recordedBy(d *ledger.Delivery) time.Time {
	over := d.At.Add(e.Times.Attempt)
	heard := d.Answered.Add(transit)
	if !d.Answered.IsZero() && heard.Before(over) && e.explain(unanswered, d.Process, d.At, d.Answered) == "" {
		over = heard
	}
	return over.Add(e.Times.Record)
}

// beganAt returns when the attempt of a delivery began at the earliest, by the sender's own stamp, which is in whole seconds: a
// line may hold an event up while its sender ends. Without a hole nothing is on its way for longer than an attempt lasts.
func (e *Evidence) beganAt(d *ledger.Delivery) time.Time {
	seconds, err := strconv.ParseInt(d.Stamp, 10, 64)
	began := time.Unix(seconds, 0)
	if err == nil && began.Before(d.At) &&
		(d.At.Sub(began) < e.Times.Attempt+time.Second || e.explain(held, d.Process, d.At, began.Add(time.Second)) != "") {
		return began
	}
	return d.At
}

// explainLoss returns the kind of fault because of which the attempt of a delivery is not recorded: it hit the sender
// before that was to happen, and before the event came again; zero means that it never did.
func (e *Evidence) explainLoss(d *ledger.Delivery, again time.Time) string {
	due := e.recordedBy(d)
	if !again.IsZero() && again.Before(due) {
		due = again
	}
	return e.explain(unrecorded, d.Process, e.beganAt(d), due)
}

// explainAgain returns the kind of fault because of which one delivery follows another while the attempt after a state was
// due: the first one's sender could not record it, the second was on its way since before the first came, or one of the two is
// of an attempt before. A process that lives on keeps what it could not record, and does not send it again.
func (e *Evidence) explainAgain(after *ledger.Change, first, second *ledger.Delivery) string {
	if first.Process == "" || first.Process != second.Process {
		if kind := e.explainLoss(first, second.At); kind != "" {
			return kind
		}
		if kind := e.explain(late, second.Process, second.At, first.At); kind != "" {
			return kind
		}
	}
	if after == nil {
		return ""
	}
	if kind := e.explainLate(second, after); kind != "" {
		return kind
	}
	return e.explainLate(first, after)
}

// explainLate returns the kind of fault because of which a delivery came after a state that it contradicts: it held the
// delivery up since before that was committed.
func (e *Evidence) explainLate(d *ledger.Delivery, after *ledger.Change) string {
	if kind := e.explain(late, d.Process, d.At, committed(after)); kind != "" {
		return kind
	}
	return e.explain(held, d.Process, d.At, committed(after))
}

// explainTurn returns the kind of fault because of which an attempt is recorded otherwise than the receiver saw it, and
// whether that needs any.
func (e *Evidence) explainTurn(t *turn) (kind string, needed bool) {
	switch {
	case t.record == nil || t.answered() || t.outlived(e.Times.Attempt):
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
