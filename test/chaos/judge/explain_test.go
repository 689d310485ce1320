package judge_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/chaos/judge"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
)

// fault returns a fault that hit the victims, or everyone without victims.
func fault(kind schedule.Kind, from, until float64, victims ...string) ledger.Fault {
	if len(victims) == 0 {
		victims = []string{ledger.Everyone}
	}
	return ledger.Fault{Kind: string(kind), From: at(from), Until: at(until), Victims: victims}
}

// newShareFault returns a fault that hits a share of operations.
func newShareFault(kind schedule.Kind, from, until float64, operation string, victims ...string) ledger.Fault {
	f := fault(kind, from, until, victims...)
	f.Hits = map[string]int{operation: 1}
	return f
}

// newNoAnswer returns a call that was not answered, about a request, or about the lease if that is empty.
func newNoAnswer(from, until float64, request, victim string) ledger.Fault {
	f := fault(schedule.NoAnswer, from, until, victim)
	f.Request = request
	return f
}

// sendAgain adds a delivery of the event of "proven".
func sendAgain(seconds float64, process string) func(*judge.Evidence) {
	return func(e *judge.Evidence) {
		repeatEvent(e, func(d *ledger.Delivery) { d.At, d.Process, d.Stamp = at(seconds), process, stampOf(seconds) })
	}
}

// dropAnswer changes the record of the first attempt of "proven" to one without an answer, with a second attempt at 9.
func dropAnswer(e *judge.Evidence) {
	changeLastState(e, "proven", func(c *ledger.Change) { c.Code, c.Delivered, c.Next = 0, false, at(9) })
	second := e.Changes[2]
	second.At, second.Committed, second.Attempts, second.Tried = at(10), at(10), 2, at(9.8)
	second.Code, second.Delivered, second.Next = 204, true, at(0)
	e.Changes = append(e.Changes, second)
	e.Final[0] = second
	sendAgain(9.5, "first-2")(e)
}

// deviations are deliveries that need a fault, the invariant that requires it, and faults that do and do not explain them.
var deviations = map[string]struct {
	invariant string
	forge     func(*judge.Evidence)
	does      []ledger.Fault
	doesNot   []ledger.Fault
}{
	"sent twice": {
		"I5", sendAgain(3.6, "first-2"),
		[]ledger.Fault{
			fault(schedule.Kill, 3.55, 3.56, "first-1"), fault(schedule.KillAll, 3.4, 3.4, "first-1", "first-2"),
			fault(schedule.Kill, 3.1, 3.2, "first-1"), // while its event was on its way
			fault(schedule.Freeze, 3.1, 9, "first-1"), fault(schedule.HoleStore, 1, 3.6), fault(schedule.Freeze, 3.4, 3.45, "first-2"),
			newShareFault(schedule.RefuseCommit, 3, 4, "update"), newShareFault(schedule.CutCommit, 3, 4, "update", "first-1"),
			newShareFault(schedule.CutStore, 3, 4, "update", "first-1"),
			newNoAnswer(3.55, 5, "proven", "first-1"), newNoAnswer(2, 3.55, "", "first-1"),
		},
		[]ledger.Fault{
			newNoAnswer(3.55, 5, "expired", "first-1"), newNoAnswer(3.55, 5, "proven", "first-2"), newNoAnswer(3.7, 5, "proven", "first-1"),
			fault(schedule.Kill, 3.55, 3.56, "first-2"), fault(schedule.Kill, 0.1, 0.4, "first-1"), fault(schedule.Kill, 3.7, 3.7, "first-1"),
			fault(schedule.Kill, 2.8, 2.9, "first-1"), // before it was sent
			fault(schedule.RotateKey, 3, 4), fault(schedule.DelaySink, 3, 4), fault(schedule.CutSink, 3, 4), fault("unheard-of", 3, 4),
			fault(schedule.HoleSink, 3.55, 4), // the first one had arrived
			fault(schedule.SerializeCommit, 3, 4), fault(schedule.LagWatch, 3, 4), fault(schedule.RepeatWatch, 3, 4),
			{Kind: string(schedule.CutStore), From: at(3), Until: at(4), Hits: map[string]int{"update": 1}},
			// They hit something else, another process, or too early.
			fault(schedule.RefuseCommit, 3, 4), newShareFault(schedule.RefuseCommit, 3, 4, "insert"),
			newShareFault(schedule.CutCommit, 3, 4, "claim"), newShareFault(schedule.CutCommit, 3, 4, "update", "first-2"),
			newShareFault(schedule.RefuseCommit, 2, 2.9, "update"), newShareFault(schedule.CutStore, 2, 2.9, "update", "first-1"),
		},
	},
	"sent twice by a process that lives": {
		"I5", sendAgain(3.6, "first-1"),
		nil,
		[]ledger.Fault{
			fault(schedule.HoleSink, 3.4, 3.6), newShareFault(schedule.RefuseCommit, 3, 4, "update"),
			newShareFault(schedule.CutStore, 3, 4, "update"), fault(schedule.CrashStore, 3, 4),
			fault(schedule.Freeze, 3.1, 3.55, "first-1"), fault(schedule.Freeze, 3.55, 3.58, "first-1"),
		},
	},
	"sent after it was delivered": {
		"I6", sendAgain(6, "first-1"),
		[]ledger.Fault{
			fault(schedule.Freeze, 3.9, 5.5, "first-1"), fault(schedule.HoleSink, 2, 5.5), newNoAnswer(3.9, 5.5, "", "first-1"),
		},
		[]ledger.Fault{
			newNoAnswer(3.9, 5.5, "proven", "first-1"), newNoAnswer(3.9, 5.5, "", "first-2"),
			fault(schedule.Freeze, 4.5, 5.9, "first-1"), fault(schedule.Freeze, 3.9, 5.5, "first-2"), fault(schedule.HoleSink, 2, 4.5),
			fault(schedule.Kill, 3.9, 3.9, "first-1"),
		},
	},
	"sent before it was due": {
		"I5", func(e *judge.Evidence) {
			e.Events[0].Answer = ledger.Fails
			changeLastState(e, "proven", func(c *ledger.Change) { c.Code, c.Delivered, c.Next = 500, false, at(9) })
			sendAgain(7, "first-2")(e)
		},
		[]ledger.Fault{fault(schedule.FreezeLeader, 3.9, 6, "first-2")},
		[]ledger.Fault{fault(schedule.FreezeLeader, 3.9, 6, "first-1")},
	},
	"not recorded": {
		"I4", func(e *judge.Evidence) {
			e.Changes = slices.Delete(e.Changes, 2, 3)
			changeLastState(e, "proven", func(c *ledger.Change) { c.Attempts, c.Delivered = 0, false })
		},
		[]ledger.Fault{fault(schedule.Kill, 3.7, 3.7, "first-1"), fault(schedule.CrashStore, 6.4, 20)},
		[]ledger.Fault{fault(schedule.Kill, 6.6, 6.6, "first-1"), fault(schedule.DelaySink, 3, 4)},
	},
	"hanging and not recorded": {
		"I4", func(e *judge.Evidence) {
			e.Events[0].Answer, e.Events[0].Answered = ledger.Hangs, time.Time{}
			e.Changes = slices.Delete(e.Changes, 2, 3)
			changeLastState(e, "proven", func(c *ledger.Change) { c.Attempts, c.Delivered = 0, false })
		},
		[]ledger.Fault{fault(schedule.Kill, 7.4, 7.4, "first-1")},
		[]ledger.Fault{fault(schedule.Kill, 7.6, 7.6, "first-1")},
	},
	"answered late and not recorded": { // on a disk that takes long
		"I4", func(e *judge.Evidence) {
			e.Events[0].Answered = at(4.1)
			e.Changes = slices.Delete(e.Changes, 2, 3)
			changeLastState(e, "proven", func(c *ledger.Change) { c.Attempts, c.Delivered = 0, false })
		},
		[]ledger.Fault{fault(schedule.Kill, 7, 7, "first-1")},
		[]ledger.Fault{fault(schedule.Kill, 7.2, 7.2, "first-1")},
	},
	"not recorded, and its answer lost": {
		"I4", func(e *judge.Evidence) {
			e.Faults = append(e.Faults, fault(schedule.HoleSink, 3.4, 4))
			e.Changes = slices.Delete(e.Changes, 2, 3)
			changeLastState(e, "proven", func(c *ledger.Change) { c.Attempts, c.Delivered = 0, false })
		},
		[]ledger.Fault{fault(schedule.Kill, 7.4, 7.4, "first-1")},
		[]ledger.Fault{fault(schedule.Kill, 7.6, 7.6, "first-1")},
	},
	"recorded and not seen": {
		"I4", func(e *judge.Evidence) {
			dropAnswer(e)
			e.Events = slices.Delete(e.Events, 0, 1)
		},
		[]ledger.Fault{fault(schedule.HoleSink, 3, 4), fault(schedule.Freeze, 2, 3.7, "first-7")},
		[]ledger.Fault{fault(schedule.Kill, 3.7, 3.7, "first-1"), fault(schedule.HoleSink, 3.9, 5)},
	},
	"taken and not answered": {
		"I4", dropAnswer,
		[]ledger.Fault{fault(schedule.CutSink, 3.4, 5, "first-1"), fault(schedule.HoleSink, 3.6, 5)},
		[]ledger.Fault{
			fault(schedule.CutSink, 3.4, 5, "first-2"), {Kind: string(schedule.CutSink), From: at(3), Until: at(5)}, fault(schedule.DelaySink, 3, 5),
		},
	},
	"answered otherwise": {
		"I4", func(e *judge.Evidence) { e.Events[1].Answer = ledger.Fails }, nil,
		[]ledger.Fault{fault(schedule.HoleSink, 3, 4), fault(schedule.Freeze, 3, 4, "first-1")},
	},
	"recorded twice at once": {
		"I4", func(e *judge.Evidence) { changeLastState(e, "proven", func(c *ledger.Change) { c.Attempts = 2 }) }, nil,
		[]ledger.Fault{fault(schedule.Kill, 3.6, 3.6, "first-1")},
	},
}

// Each deviation is excused by the fault that hit it, and by no number of other faults.
func TestJudge_deviations(t *testing.T) {
	for name, d := range deviations {
		judged := func(faults ...ledger.Fault) *judge.Verdict {
			e := goodEvidence()
			d.forge(e)
			e.Faults = append(e.Faults, faults...)
			verdicts := judge.Judge(e)
			return verdicts[slices.IndexFunc(verdicts, func(v *judge.Verdict) bool { return v.Name == d.invariant })]
		}
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(judged().Count).To(Equal(1))
			for _, f := range d.does {
				g.Expect(judged(f).Violations).To(BeEmpty(), "%+v", f)
			}
			for _, f := range d.doesNot {
				g.Expect(judged(f).Count).To(Equal(1), "%+v", f)
			}
			var many []ledger.Fault
			for range 1000 {
				many = append(many, d.doesNot...)
			}
			g.Expect(judged(many...).Count).To(Equal(1), "a long run excuses no more than a short one")
		})
	}
}

// An event may arrive once, for a short time after its attempt timed out, without a fault: nothing is repeated.
func TestJudge_slow(t *testing.T) {
	for name, c := range map[string]struct {
		came, sent float64
		violated   int
	}{
		"before the record":                {3.9, 1.8, 0},
		"after it":                         {5.7, 1.8, 0},
		"too late":                         {5.9, 1.8, 1},
		"of an attempt that did not last":  {3.9, 3, 1},
		"before the end of its attempt":    {3.7, 1.8, 1},
		"of an attempt that began at once": {5.7, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := goodEvidence()
			dropAnswer(e)
			e.Events[0].At, e.Events[0].Stamp = at(c.came), stampOf(c.sent)
			g.Expect(countViolations(e)).To(Equal(c.violated))
			sendAgain(7, "first-1")(e)
			g.Expect(countViolations(e)).To(Equal(c.violated+1), "a second one needs a fault")
		})
	}
}

func countViolations(e *judge.Evidence) (violated int) {
	for _, v := range judge.Judge(e) {
		violated += v.Count
	}
	return violated
}

// The event of an attempt that timed out arrives together with that of the next attempt.
func TestJudge_heldUp(t *testing.T) {
	forged := func(process string, faults ...ledger.Fault) *judge.Evidence {
		e := goodEvidence()
		dropAnswer(e) // the second attempt's event comes at 9.5 and is recorded at 10
		e.Events[0].At, e.Events[0].Process = at(9.3), process
		e.Events = append(e.Events, e.Events[0])
		e.Events[len(e.Events)-1].At = at(3.5)
		e.Faults = append(e.Faults, append(faults, fault(schedule.CutSink, 3.4, 5))...)
		return e
	}
	g := NewWithT(t)
	g.Expect(countViolations(forged("first-2"))).To(Equal(1))
	g.Expect(countViolations(forged("first-2", fault(schedule.HoleSink, 3.9, 9)))).To(BeZero())
	g.Expect(countViolations(forged("first-2", fault(schedule.HoleSink, 4.1, 9)))).To(Equal(1), "the attempt before was recorded by then")
	g.Expect(countViolations(forged("first-1", fault(schedule.Freeze, 3.9, 9, "first-1")))).To(BeZero())
}

// A hole of the line holds up an event for longer than an attempt lasts, and its sender ends meanwhile.
func TestJudge_longHeldUp(t *testing.T) {
	forged := func(faults ...ledger.Fault) *judge.Evidence {
		e := goodEvidence()
		for i := range e.Changes[2:3] {
			e.Changes[2+i].At, e.Changes[2+i].Committed, e.Changes[2+i].Tried = at(10), at(10), at(9.8)
		}
		sendAgain(9.5, "first-2")(e)
		e.Events[0].At, e.Events[0].Stamp = at(8.2), stampOf(3.5)
		e.Faults = append(e.Faults, append(faults, fault(schedule.Kill, 3.7, 3.7, "first-1"))...)
		return e
	}
	g := NewWithT(t)
	g.Expect(countViolations(forged(fault(schedule.HoleSink, 2.9, 8)))).To(BeZero())
	g.Expect(countViolations(forged(fault(schedule.DelaySink, 2.9, 8)))).To(Equal(1))
}

// An event that a hole of the line holds up arrives behind that of the process which took over from its dead sender.
func TestJudge_overtaken(t *testing.T) {
	forged := func(sent float64, faults ...ledger.Fault) *judge.Evidence {
		e := goodEvidence()
		sendAgain(3.6, "first-2")(e)
		e.Events[len(e.Events)-1].Stamp = stampOf(sent)
		e.Faults = append(e.Faults, faults...)
		return e
	}
	hole, roll := fault(schedule.HoleSink, 2, 3.5), fault(schedule.Roll, 2.5, 2.6, "first-2")
	g := NewWithT(t)
	g.Expect(countViolations(forged(2, hole, roll))).To(BeZero())
	g.Expect(countViolations(forged(2, roll))).To(Equal(1), "nothing held it up")
	g.Expect(countViolations(forged(2, hole))).To(Equal(1), "its sender lives")
	g.Expect(countViolations(forged(4, hole, roll))).To(Equal(1), "sent after the first")
	g.Expect(countViolations(forged(2, fault(schedule.HoleSink, 3.55, 3.58), roll))).To(Equal(1), "the first had come by then")
	g.Expect(countViolations(forged(2, hole, fault(schedule.Roll, 3.55, 3.58, "first-2")))).To(Equal(1), "it could be recorded")
}

// The store's line carries the lease, and its encrypted bytes do not show what was cut.
func TestJudge_kubernetes(t *testing.T) {
	for _, kubernetes := range []bool{false, true} {
		cut := fault(schedule.CutStore, 3.9, 4.5, "first-1")
		stray := goodEvidence()
		sendAgain(6, "first-1")(stray)
		lost := goodEvidence()
		sendAgain(4.2, "first-2")(lost)
		lost.Changes[2].At, lost.Changes[2].Committed = at(5), at(5)
		for _, e := range []*judge.Evidence{stray, lost} {
			e.Kubernetes, e.Faults = kubernetes, append(e.Faults, cut)
			want := 1
			if kubernetes {
				want = 0
			}
			NewWithT(t).Expect(countViolations(e)).To(Equal(want))
		}
	}
}

// A violation is shown with all ledger lines about its request.
func TestJudge_showsTheLedgerLines(t *testing.T) {
	g := NewWithT(t)
	e := goodEvidence()
	sendAgain(3.6, "first-2")(e)
	e.Faults = append(e.Faults, fault(schedule.Kill, 3.55, 3.56, "first-2"), fault(schedule.Kill, 90, 90, "first-1"))
	for _, v := range judge.Judge(e) {
		if v.Name != "I5" {
			continue
		}
		g.Expect(v.Violations).To(HaveLen(1))
		shown := v.Violations[0]
		for _, part := range []string{
			ledger.ClientFile, ledger.PlatformFile, ledger.StoreFile, `"process":"first-1"`, `"process":"first-2"`, ledger.StatusFile,
			`"victims":["first-2"]`,
		} {
			g.Expect(shown).To(ContainSubstring(part))
		}
		g.Expect(shown).NotTo(ContainSubstring(`"victims":["first-1"]`), "it was far away")
	}
}

// Of a request with too many lines the nearest are shown, with the faults of that time.
func TestJudge_showsWhatIsNear(t *testing.T) {
	g := NewWithT(t)
	e := goodEvidence()
	for second := range 100 {
		e.Statuses = append(e.Statuses, ledger.Status{
			Facts: facts("PENDING"), Asked: at(1.1), At: at(1.2 + float64(second)/100), ID: "lapsed", Status: "PENDING", Expires: at(60),
		})
	}
	e.Changes[4].Committed = at(71.5) // its EXPIRED is answered before
	e.Statuses[3].Verified = at(70)
	e.Faults = append(e.Faults, fault(schedule.Kill, 70, 70, "first-7"), fault(schedule.Kill, 1, 1, "first-8"))
	verdicts := judge.Judge(e)
	proven := verdicts[slices.IndexFunc(verdicts, func(v *judge.Verdict) bool { return v.Name == "I1p" })]
	g.Expect(proven.Violations).To(HaveLen(1))
	shown := proven.Violations[0]
	g.Expect(shown).To(And(ContainSubstring(`"status":"EXPIRED"`), ContainSubstring(`"victims":["first-7"]`), ContainSubstring("and 6")))
	g.Expect(shown).NotTo(ContainSubstring(`"victims":["first-8"]`))
}
