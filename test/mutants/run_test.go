package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// sample is a repository with one rule, and a suite that keeps half of it.
func sample(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/sample\n\ngo 1.26.0\n",
		"internal/rule/rule.go": `package rule

// Limit is what Admit goes by.
const Limit = 3

type Door struct{ inside int }

func (d *Door) Admit(wanted bool) bool {
	if !wanted || d.inside >= Limit {
		return false
	}
	d.inside++
	return true
}
`,
		"internal/rule/rule_test.go": `package rule

import "testing"

func TestAdmit(t *testing.T) {
	var d Door
	for range Limit {
		if !d.Admit(true) {
			t.Fatal("refused too early")
		}
	}
	if d.Admit(true) {
		t.Fatal("admitted one too many")
	}
}

func TestBroken(t *testing.T) { t.Fatal("always") }
`,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func plantIn(t *testing.T, root string, mutants ...Mutant) []outcome {
	t.Helper()
	for i := range mutants {
		mutants[i].Symbol, mutants[i].Promise = "rule.(*Door).Admit", "design.md 1: a door"
		if mutants[i].Suite == "" {
			mutants[i].Suite, mutants[i].Test = "rule", "TestAdmit"
		}
	}
	c := campaign{
		root: root, dir: filepath.Join(root, "bin"), mutants: mutants, workers: 2, out: t.Output(),
		suites: map[string]Suite{
			"rule":   {Package: "./internal/rule", Limit: 10 * time.Second},
			"broken": {Package: "./internal/rule"},
		},
	}
	outcomes, err := c.run(t.Context())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return outcomes
}

func TestRun_tellsWhatBecameOfEachMutant(t *testing.T) {
	g := NewWithT(t)
	outcomes := plantIn(t, sample(t),
		Mutant{Name: "one-too-many", Old: "d.inside >= Limit", New: "d.inside > Limit"},
		Mutant{Name: "unnoticed", Old: "!wanted ||", New: ""},
		Mutant{Name: "not-go", Old: "d.inside++", New: "d.inside+++"},
		Mutant{Name: "unused", Old: "d.inside >= Limit", New: "d.outside >= Limit"},
		Mutant{Name: "elsewhere", Old: "d.inside--", New: ""},
		Mutant{Name: "no-tests", Old: "d.inside++", New: "d.inside += 1", Suite: "rule", Test: "TestNothing"},
		Mutant{Name: "red", Old: "d.inside++", New: "d.inside += 2", Suite: "broken", Test: "TestBroken"},
	)
	verdicts := map[string]verdict{}
	for _, o := range outcomes {
		verdicts[o.name()] = o.Verdict
	}
	g.Expect(verdicts).To(Equal(map[string]verdict{
		"one-too-many": noticed, "unnoticed": green, "not-go": notBuilt, "unused": notBuilt, "elsewhere": notApplied,
		"no-tests": noTests, "red": suiteIsRed,
	}))
	g.Expect(outcomes[0].By).To(Equal("TestAdmit"))
	g.Expect(summarize(t.Output(), outcomes, 0)).To(MatchError("6 mutants were not noticed"))
	g.Expect(summarize(t.Output(), outcomes[:1], 0)).To(Succeed())
}

func TestRun_theTimeLimitIsNoNoticingUnlessItIsSaid(t *testing.T) {
	g := NewWithT(t)
	endless := Mutant{Name: "endless", Old: "d.inside++", New: "for {\n\t}"}
	said := endless
	said.Name, said.Hangs = "said", true
	outcomes := plantIn(t, sample(t), endless, said)
	g.Expect(outcomes[0].Verdict).To(Equal(timedOut))
	g.Expect(outcomes[1].Verdict).To(Equal(noticed))
}

func TestRun_goesOnWhereItEnded(t *testing.T) {
	g := NewWithT(t)
	root := sample(t)
	mutant := Mutant{Name: "one-too-many", Old: "d.inside >= Limit", New: "d.inside > Limit"}
	g.Expect(plantIn(t, root, mutant)[0].kept).To(BeFalse())
	g.Expect(plantIn(t, root, mutant)[0].kept).To(BeTrue())

	path := filepath.Join(root, "internal", "rule", "rule_test.go")
	text, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(path, append(text, "// changed\n"...), 0o600)).To(Succeed())
	g.Expect(plantIn(t, root, mutant)[0].kept).To(BeFalse(), "the suite is another one")
}

func TestRun_keepsNothingOfAnInterruptedRun(t *testing.T) {
	g := NewWithT(t)
	root := sample(t)
	c := campaign{
		root: root, dir: filepath.Join(root, "bin"), workers: 1, out: t.Output(),
		suites: map[string]Suite{"rule": {Package: "./internal/rule"}},
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	outcomes := c.runAll(ctx, []task{{suite: "rule", test: "TestAdmit", key: "k"}})
	g.Expect(outcomes).To(HaveLen(1))
	g.Expect(outcomes[0].Verdict).To(Equal(interrupted))
	g.Expect(os.ReadDir(filepath.Join(root, "bin"))).Error().To(MatchError(os.ErrNotExist))
}

func TestApply_findsADeclarationWhereverItIs(t *testing.T) {
	g := NewWithT(t)
	root := sample(t)
	moved := filepath.Join(root, "internal", "other")
	g.Expect(os.Rename(filepath.Join(root, "internal", "rule"), moved)).To(Succeed())
	p, err := parseProduct(root, "internal")
	g.Expect(err).NotTo(HaveOccurred())
	for symbol, old := range map[string]string{
		"rule.(*Door).Admit": "if !wanted ||   d.inside >=\n Limit {", "(*Door).Admit": "d.inside++",
		"Limit": "= 3", "another.Limit": "3", "Door": "inside int",
	} {
		changed, err := p.apply(Mutant{Symbol: symbol, Old: old, New: "x"})
		g.Expect(err).NotTo(HaveOccurred(), symbol)
		g.Expect(changed).To(HaveKey(filepath.Join(moved, "rule.go")))
	}
	for symbol, old := range map[string]string{"Admit": "d.inside++", "(*Door).Admit": "d.inside", "Limit": "4"} {
		_, err := p.apply(Mutant{Symbol: symbol, Old: old, New: "x"})
		g.Expect(err).To(HaveOccurred(), symbol)
	}
}

func TestApply_severalEditsOfOneFile(t *testing.T) {
	g := NewWithT(t)
	p, err := parseProduct(sample(t), "internal")
	g.Expect(err).NotTo(HaveOccurred())
	changed, err := p.apply(Mutant{
		Symbol: "(*Door).Admit", Old: "d.inside++", New: "d.inside += step",
		Also: []Edit{{Symbol: "Limit", Old: "= 3", New: "= 30"}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	for _, text := range changed {
		g.Expect(string(text)).To(And(ContainSubstring("const Limit = 30\n"), ContainSubstring("d.inside += step\n")))
	}
}

func TestChoose(t *testing.T) {
	g := NewWithT(t)
	all := []Mutant{{Name: "a-phone", Suite: "phone"}, {Name: "a-database", Suite: "postgres"}}
	g.Expect(choose(all, "", "ci")).To(HaveLen(1))
	g.Expect(choose(all, "^a", "")).To(HaveLen(2))
	g.Expect(choose(all, "nothing", "")).Error().To(HaveOccurred())
	g.Expect(choose(all, "(", "")).Error().To(HaveOccurred())
	g.Expect(choose(all, "", "some")).Error().To(HaveOccurred())
}
