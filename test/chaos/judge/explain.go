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

// effect is an effect of a fault on the delivery of an event.
type effect string

// The effects.
const (
	// unrecorded: the receiver has the event, but the attempt is not recorded. So the event is sent again.
	unrecorded effect = "unrecorded"
	// unanswered: the receiver took the event, but the attempt is recorded as one without an answer.
	unanswered effect = "unanswered"
	// unseen: an attempt is recorded that never reached the receiver.
	unseen effect = "unseen"
	// late: the event arrives after another process has recorded an attempt in its place.
	late effect = "late"
	// held: the event arrives after its own attempt has ended.
	held effect = "held"
)

// tail is how long after the end of a fault its effect may be seen.
type tail func(Times) time.Duration

// noTail is for effects that only occur during the fault.
func noTail(Times) time.Duration { return 0 }

// arrivalTail is how long an event, or the consequence of a lost one, may be on its way on a busy machine.
func arrivalTail(Times) time.Duration { return transit }

// attemptTail is how long an attempt may last that began when the fault ended: it may rely on a claim that was read up
// to Fresh ago, and lasts Attempt.
func attemptTail(t Times) time.Duration { return t.Fresh + t.Attempt }

// transit is the most time between a write of one process and the time stamp of the process that reads it, on a busy
// machine.
const transit = time.Second

// effects lists the effects that each kind of fault may have on the processes that it hit, and for how long. A kind
// that is not listed explains nothing.
//
//nolint:gochecknoglobals // Go has no constant maps
var effects = map[schedule.Kind]map[effect]tail{
	// A process that ends cannot record the attempts that it has begun.
	schedule.Kill:       {unrecorded: noTail},
	schedule.KillLeader: {unrecorded: noTail},
	schedule.KillAll:    {unrecorded: noTail},
	schedule.Roll:       {unrecorded: noTail},

	schedule.KillBeforeCommit: {unrecorded: noTail},
	schedule.KillAfterCommit:  {unrecorded: noTail},
	schedule.KillAfterSend:    {unrecorded: noTail},
	schedule.KillBeforeResult: {unrecorded: noTail},
	// A frozen process loses its lease or claim, and its attempt has timed out when it continues.
	schedule.Freeze:       {unrecorded: attemptTail, unanswered: arrivalTail, unseen: arrivalTail, late: attemptTail},
	schedule.FreezeLeader: {unrecorded: attemptTail, unanswered: arrivalTail, unseen: arrivalTail, late: attemptTail},
	// Without the store nothing is recorded, leases expire, and answers to earlier reads arrive late.
	schedule.CrashStore:  {unrecorded: attemptTail, late: attemptTail},
	schedule.FreezeStore: {unrecorded: attemptTail, late: attemptTail},
	schedule.DelayStore:  {unrecorded: attemptTail, late: attemptTail},
	schedule.HoleStore:   {unrecorded: attemptTail, late: attemptTail},
	schedule.SlowStore:   {unrecorded: attemptTail, late: attemptTail},
	schedule.Failover:    {unrecorded: attemptTail, late: attemptTail},
	schedule.Isolate:     {unrecorded: attemptTail, late: attemptTail},
	// The write that records an attempt may fail, or its answer be lost, until the claim ends. What is retried within the
	// same call explains nothing: serialization failures, late and repeated events.
	schedule.CutStore:     {unrecorded: noTail},
	schedule.RefuseCommit: {unrecorded: noTail},
	schedule.CutCommit:    {unrecorded: noTail},
	// A call that is not answered in time is given up. If it is about the lease, the term ends.
	schedule.NoAnswer: {unrecorded: noTail, late: attemptTail},
	// What the line to the receiver holds up has no answer, and arrives when the attempt has ended.
	schedule.CutSink:  {unanswered: noTail},
	schedule.HoleSink: {unanswered: arrivalTail, unseen: arrivalTail, held: arrivalTail},
}

// recording is the operation that records an attempt.
const recording = "update"

// Times are the product's own time limits, by its constants and by the flags and settings of the run. Every window in
// which a fault may explain something is derived from them.
type Times struct {
	// Attempt is the longest time that an attempt lasts: spec.webhook.timeout.
	Attempt time.Duration
	// Record is how long the write that records it is retried: request.RecordTimeout.
	Record time.Duration
	// Fresh is the age up to which a claim is used without being read again: request.ClaimFresh.
	Fresh time.Duration
}

// explainEffect returns the kind of the first fault that has the effect, hit what the process did for the request, began before to and
// had not ended, including its tail, before from; empty if there is none.
func (e *Evidence) explainEffect(by effect, process, request string, from, to time.Time) string {
	for i := range e.Faults {
		f := &e.Faults[i]
		lasts := e.tailOf(f, by)
		if lasts != nil && f.Hit(process, request) && !f.From.After(to) && !f.Until.Add(lasts(e.Times)).Before(from) {
			return f.Kind
		}
	}
	return ""
}

// tailOf returns how long a fault has an effect; nil if it does not have it.
func (e *Evidence) tailOf(f *ledger.Fault, by effect) tail {
	switch kind := schedule.Kind(f.Kind); {
	case kind == schedule.CutStore && e.Kubernetes: // its traffic is encrypted: what was cut is unknown and may be the lease
		return map[effect]tail{unrecorded: noTail, late: attemptTail}[by]
	case by == late && f.Request != "": // the term goes on
		return nil
	case by == unrecorded && hitsShare(kind) && f.Hits[recording] == 0:
		return nil
	default:
		return effects[kind][by]
	}
}

// hitsShare reports whether a kind of fault hits a share of the operations and records which.
func hitsShare(kind schedule.Kind) bool {
	return slices.Contains([]schedule.Kind{schedule.CutStore, schedule.RefuseCommit, schedule.CutCommit}, kind)
}

// recordedBy returns the latest time at which the attempt of a delivery is recorded by an undisturbed process. The
// attempt lasts its whole timeout if the receiver gives no answer, or if its line may have lost it.
func (e *Evidence) recordedBy(d *ledger.Delivery) time.Time {
	over := d.At.Add(e.Times.Attempt)
	heard := d.Answered.Add(transit)
	if !d.Answered.IsZero() && heard.Before(over) && e.explainEffect(unanswered, d.Process, d.Request, d.At, d.Answered) == "" {
		over = heard
	}
	return over.Add(e.Times.Record)
}

// beganAt returns the earliest time at which the attempt of a delivery began, by the sender's time stamp in whole
// seconds: a line may hold up an event while its sender ends. Without a hole no event is on its way for longer than an
// attempt lasts.
func (e *Evidence) beganAt(d *ledger.Delivery) time.Time {
	seconds, err := strconv.ParseInt(d.Stamp, 10, 64)
	began := time.Unix(seconds, 0)
	if err == nil && began.Before(d.At) &&
		(d.At.Sub(began) < e.Times.Attempt+time.Second || e.explainEffect(held, d.Process, d.Request, d.At, began.Add(time.Second)) != "") {
		return began
	}
	return d.At
}

// explainLoss returns the kind of fault because of which the attempt of a delivery is not recorded: it hit the sender
// before the attempt was due to be recorded, and before the event came again; a zero again means never.
func (e *Evidence) explainLoss(d *ledger.Delivery, again time.Time) string {
	due := e.recordedBy(d)
	if !again.IsZero() && again.Before(due) {
		due = again
	}
	return e.explainEffect(unrecorded, d.Process, d.Request, e.beganAt(d), due)
}

// explainAgain returns the kind of fault because of which one delivery follows another while the attempt after a state
// was due: see explainTakeover, or one of them belongs to an earlier attempt. A process that lives on keeps what it could
// not record, and does not send it again.
func (e *Evidence) explainAgain(after *ledger.Change, first, second *ledger.Delivery) string {
	if first.Process == "" || first.Process != second.Process {
		if kind := e.explainTakeover(first, second); kind != "" {
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

// explainTakeover returns the kind of fault because of which two processes delivered the same attempt: the first sender
// could not record it, the second was already on its way when the first arrived, or it was overtaken, and its sender
// could not record it.
func (e *Evidence) explainTakeover(first, second *ledger.Delivery) string {
	if kind := e.explainLoss(first, second.At); kind != "" {
		return kind
	}
	if kind := e.explainEffect(late, second.Process, second.Request, second.At, first.At); kind != "" {
		return kind
	}
	if !e.wasOvertaken(first, second) {
		return ""
	}
	return e.explainLoss(second, first.At)
}

// wasOvertaken reports whether a line held up the second delivery, which was sent before the first or within the same
// second, since before the first came.
func (e *Evidence) wasOvertaken(first, second *ledger.Delivery) bool {
	return !e.beganAt(second).After(e.beganAt(first)) &&
		e.explainEffect(held, second.Process, second.Request, second.At, first.At) != ""
}

// explainLate returns the kind of fault because of which a delivery came after a state that it contradicts: it held up
// the delivery since before that state was committed.
func (e *Evidence) explainLate(d *ledger.Delivery, after *ledger.Change) string {
	if kind := e.explainEffect(late, d.Process, d.Request, d.At, commitTime(after)); kind != "" {
		return kind
	}
	return e.explainEffect(held, d.Process, d.Request, d.At, commitTime(after))
}

// explainAttempt returns the kind of fault because of which the record of an attempt differs from what the receiver
// saw, and whether one is needed.
func (e *Evidence) explainAttempt(t *attempt) (kind string, needed bool) {
	switch {
	case t.record == nil || t.wasAnswered() || t.timedOut(e.Times.Attempt):
		return "", false
	case t.record.Code != 0: // an answer that the receiver did not give
		return "", true
	case len(t.sent) == 0:
		return e.explainEffect(unseen, "", t.record.ID, t.record.Tried.Add(-e.Times.Attempt), t.record.Tried), true
	}
	for _, d := range t.sent {
		if kind = e.explainEffect(unanswered, d.Process, d.Request, d.At, t.record.Tried); kind != "" {
			break
		}
	}
	return kind, true
}

// reasons counts explanations by kind of fault.
type reasons map[string]int

// add counts one; an empty kind is ignored.
func (r reasons) add(kind string) {
	if kind != "" {
		r[kind]++
	}
}

// String lists the kinds by name.
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
