package schedule_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/chaos/schedule"
)

func TestDraw(t *testing.T) {
	g := NewWithT(t)
	o := schedule.Options{Seed: 7, Kills: 200, Leaders: true, Without: []schedule.Kind{schedule.SlowStore}}
	faults := schedule.Draw(o)
	g.Expect(schedule.Draw(o)).To(Equal(faults), "with the same seed")
	other := o
	other.Seed = 8
	g.Expect(schedule.Draw(other)).NotTo(Equal(faults), "with another seed")

	count := map[schedule.Kind]int{}
	for i, f := range faults {
		count[f.Kind]++
		g.Expect(f.At).To(And(BeNumerically(">=", 0), BeNumerically("<", 1)))
		if i > 0 {
			g.Expect(f.At).To(BeNumerically(">=", faults[i-1].At), "in order")
		}
		if f.Kind == schedule.CutStore {
			g.Expect(f.Count).To(BeNumerically(">", 0))
		}
		if f.Kind == schedule.Freeze {
			g.Expect(f.For).To(BeNumerically(">", 0))
		}
	}
	g.Expect(count[schedule.Kill] + count[schedule.KillLeader]).To(Equal(200))
	g.Expect(count[schedule.CrashStore]).To(BeNumerically(">=", 2))
	g.Expect(count).NotTo(HaveKey(schedule.SlowStore))
	g.Expect(slices.ContainsFunc(faults, func(f schedule.Fault) bool { return f.Kind == schedule.KillAll && f.Kind.Kills() })).To(BeTrue())
}

func TestCodeKills(t *testing.T) {
	g := NewWithT(t)
	for count, in := range map[int]struct{ cluster, telegram int }{0: {0, 0}, 16: {4, 4}, 260: {16, 52}} {
		each, telegram := map[schedule.Kind]int{}, map[schedule.Kind]int{}
		kills := slices.Concat(schedule.CodeKills(count, true), schedule.CodeKills(count, false))
		g.Expect(kills).To(HaveLen(count))
		g.Expect(schedule.CodeKills(count, true)).To(HaveLen(in.cluster))
		for _, kill := range kills {
			each[kill.Kind]++
			if kill.Telegram {
				telegram[kill.Kind]++
			}
		}
		for _, kind := range schedule.OfCodes() {
			g.Expect(each[kind]).To(Equal(count/4), "%s of %d", kind, count)
			g.Expect(telegram[kind]).To(Equal(in.telegram/4), "%s of %d through Telegram", kind, count)
		}
	}
}

func TestDraw_few(t *testing.T) {
	g := NewWithT(t)
	count := map[schedule.Kind]int{}
	for _, f := range schedule.Draw(schedule.Options{Seed: 1, Kills: 5}) {
		count[f.Kind]++
	}
	g.Expect(count).To(And(HaveKeyWithValue(schedule.RotateKey, 1), HaveKeyWithValue(schedule.CrashStore, 2)), "each kind is drawn")
	g.Expect(count[schedule.Kill] + count[schedule.KillLeader]).To(Equal(5))
	g.Expect(schedule.Draw(schedule.Options{Seed: 1})).To(BeEmpty())
	for _, kind := range slices.Concat(schedule.OfDatabase(), schedule.OfAPIServer()) {
		g.Expect(count).To(HaveKeyWithValue(kind, 1))
	}
}
