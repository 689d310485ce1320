package judge_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/chaos/judge"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
)

// fault is one that hit some, or everyone if nobody is named.
func fault(kind schedule.Kind, from, until float64, victims ...string) ledger.Fault {
	if len(victims) == 0 {
		victims = []string{ledger.Everyone}
	}
	return ledger.Fault{Kind: string(kind), From: at(from), Until: at(until), Victims: victims}
}

// send has the event of "proven" come once more.
func send(seconds float64, process string) func(*judge.Evidence) {
	return func(e *judge.Evidence) {
		again(e, func(d *ledger.Delivery) { d.At, d.Process = at(seconds), process })
	}
}

// unanswer has the first attempt of "proven" recorded as one without an answer, with a second one at 9.
func unanswer(e *judge.Evidence) {
	settle(e, "proven", func(c *ledger.Change) { c.Code, c.Delivered, c.Next = 0, false, at(9) })
	second := e.Changes[2]
	second.At, second.Committed, second.Attempts, second.Tried = at(10), at(10), 2, at(9.8)
	second.Code, second.Delivered, second.Next = 204, true, at(0)
	e.Changes = append(e.Changes, second)
	e.Final[0] = second
	send(9.5, "first-2")(e)
}

// deviations are courses of events that need a fault, the invariant that asks for it, and faults that explain them and
// that do not.
var deviations = map[string]struct {
	invariant string
	forge     func(*judge.Evidence)
	does      []ledger.Fault
	doesNot   []ledger.Fault
}{
	"sent twice": {
		"I5", send(3.6, "first-2"),
		[]ledger.Fault{
			fault(schedule.Kill, 3.55, 3.56, "first-1"), fault(schedule.KillAll, 3.4, 3.4, "first-1", "first-2"),
			fault(schedule.Freeze, 3.1, 9, "first-1"), fault(schedule.HoleStore, 1, 3.6), fault(schedule.Freeze, 3.4, 3.45, "first-2"),
			fault(schedule.RefuseCommit, 3, 4), fault(schedule.CutCommit, 3, 4), fault(schedule.CutWrite, 3, 4), fault(schedule.CutStored, 3, 4),
		},
		[]ledger.Fault{
			fault(schedule.Kill, 3.55, 3.56, "first-2"), fault(schedule.Kill, 0.1, 0.4, "first-1"), fault(schedule.Kill, 3.7, 3.7, "first-1"),
			fault(schedule.RotateKey, 3, 4), fault(schedule.DelaySink, 3, 4), fault("unheard-of", 3, 4),
			fault(schedule.SerializeCommit, 3, 4), fault(schedule.FailWrite, 3, 4), fault(schedule.FailStored, 3, 4),
			fault(schedule.Conflict, 3, 4), fault(schedule.LagWatch, 3, 4), fault(schedule.RepeatWatch, 3, 4),
			{Kind: string(schedule.CutStore), From: at(3), Until: at(4)},
		},
	},
	"sent after it was delivered": {
		"I6", send(6, "first-1"),
		[]ledger.Fault{fault(schedule.Freeze, 3.9, 5.5, "first-1"), fault(schedule.HoleSink, 2, 3.5)},
		[]ledger.Fault{
			fault(schedule.Freeze, 4.5, 5.9, "first-1"), fault(schedule.Freeze, 3.9, 5.5, "first-2"), fault(schedule.HoleSink, 1, 2.5),
			fault(schedule.Kill, 3.9, 3.9, "first-1"),
		},
	},
	"sent before it was due": {
		"I5", func(e *judge.Evidence) {
			e.Events[0].Answer = ledger.Fails
			settle(e, "proven", func(c *ledger.Change) { c.Code, c.Delivered, c.Next = 500, false, at(9) })
			send(7, "first-2")(e)
		},
		[]ledger.Fault{fault(schedule.FreezeLeader, 3.9, 6, "first-2")},
		[]ledger.Fault{fault(schedule.FreezeLeader, 3.9, 6, "first-1")},
	},
	"not recorded": {
		"I4", func(e *judge.Evidence) {
			e.Changes = slices.Delete(e.Changes, 2, 3)
			settle(e, "proven", func(c *ledger.Change) { c.Attempts, c.Delivered = 0, false })
		},
		[]ledger.Fault{fault(schedule.Kill, 3.7, 3.7, "first-1"), fault(schedule.CrashStore, 6, 20)},
		[]ledger.Fault{fault(schedule.Kill, 7.6, 7.6, "first-1"), fault(schedule.CutSink, 3, 4)},
	},
	"recorded and not seen": {
		"I4", func(e *judge.Evidence) {
			unanswer(e)
			e.Events = slices.Delete(e.Events, 0, 1)
		},
		[]ledger.Fault{fault(schedule.HoleSink, 3, 4), fault(schedule.Freeze, 2, 3.7, "first-7")},
		[]ledger.Fault{fault(schedule.Kill, 3.7, 3.7, "first-1"), fault(schedule.HoleSink, 3.9, 5)},
	},
	"taken and not answered": {
		"I4", unanswer,
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
		"I4", func(e *judge.Evidence) { settle(e, "proven", func(c *ledger.Change) { c.Attempts = 2 }) }, nil,
		[]ledger.Fault{fault(schedule.Kill, 3.6, 3.6, "first-1")},
	},
}

// TestJudge_deviations has each deviation excused by the fault that hit it, and by no other, however many there are.
func TestJudge_deviations(t *testing.T) {
	for name, d := range deviations {
		judged := func(faults ...ledger.Fault) *judge.Verdict {
			e := truth()
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

// TestJudge_slow has an event come after its attempt was over: nothing is repeated, so no fault is needed, once.
func TestJudge_slow(t *testing.T) {
	for name, seconds := range map[string]float64{"before the record": 3.9, "after it": 6} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := truth()
			unanswer(e)
			e.Events[0].At = at(seconds)
			for _, v := range judge.Judge(e) {
				g.Expect(v.OK()).To(BeTrue(), "%s: %v", v.Name, v.Violations)
			}
			send(7, "first-1")(e)
			violated := 0
			for _, v := range judge.Judge(e) {
				violated += v.Count
			}
			g.Expect(violated).To(Equal(1), "another one")
		})
	}
}

// TestJudge_showsTheChain has a violation come with all that the ledgers have on it.
func TestJudge_showsTheChain(t *testing.T) {
	g := NewWithT(t)
	e := truth()
	send(3.6, "first-2")(e)
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
