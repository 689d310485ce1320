package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// newSample creates a repository with one rule, and a suite that tests half of it.
func newSample(t *testing.T) string {
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

import (
	"os"
	"testing"
)

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

func TestKilled(t *testing.T) {
	var d Door
	if d.Admit(true); d.inside == 7 {
		p, _ := os.FindProcess(os.Getpid())
		p.Kill()
		select {}
	}
}

func TestElsewhere(t *testing.T) {
	var d Door
	d.Admit(true)
	if d.inside == 8 {
		go func() { panic("in a goroutine of the product") }()
		select {} // a test that ends could end the process before the panic does
	}
}

func TestMain(m *testing.M) {
	var d Door
	if d.Admit(true); d.inside == 9 {
		panic("no test has begun")
	}
	os.Exit(m.Run())
}
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
			"killed": {Package: "./internal/rule"},
		},
	}
	outcomes, err := c.run(t.Context())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return outcomes
}

func TestRun_returnsTheOutcomeOfEachMutant(t *testing.T) {
	g := NewWithT(t)
	outcomes := plantIn(t, newSample(t),
		Mutant{Name: "one-too-many", Old: "d.inside >= Limit", New: "d.inside > Limit"},
		Mutant{Name: "unnoticed", Old: "!wanted ||", New: ""},
		Mutant{Name: "not-go", Old: "d.inside++", New: "d.inside+++"},
		Mutant{Name: "unused", Old: "d.inside >= Limit", New: "d.outside >= Limit"},
		Mutant{Name: "elsewhere", Old: "d.inside--", New: ""},
		Mutant{Name: "no-tests", Old: "d.inside++", New: "d.inside += 1", Suite: "rule", Test: "TestNothing"},
		Mutant{Name: "red", Old: "d.inside++", New: "d.inside += 2", Suite: "broken", Test: "TestBroken"},
		Mutant{Name: "killed-from-outside", Old: "d.inside++", New: "d.inside = 7", Suite: "killed", Test: "TestKilled"},
		Mutant{Name: "panic-elsewhere", Old: "d.inside++", New: "d.inside = 8", Suite: "killed", Test: "TestElsewhere"},
		Mutant{Name: "panic-before-any", Old: "d.inside++", New: "d.inside = 9", Suite: "killed", Test: "TestElsewhere"},
	)
	verdicts := map[string]verdict{}
	for _, o := range outcomes {
		verdicts[o.name()] = o.Verdict
	}
	g.Expect(verdicts).To(Equal(map[string]verdict{
		"one-too-many": noticed, "unnoticed": green, "not-go": notBuilt, "unused": notBuilt, "elsewhere": notApplied,
		"no-tests": noTests, "red": suiteIsRed, "killed-from-outside": otherProblem, "panic-elsewhere": noticed,
		"panic-before-any": otherProblem,
	}))
	g.Expect(outcomes[0].By).To(Equal("TestAdmit"))
	g.Expect(printSummary(t.Output(), outcomes, 0)).To(MatchError("8 mutants were not noticed"))
	g.Expect(printSummary(t.Output(), outcomes[:1], 0)).To(Succeed())
}

// The outputs are Ginkgo's own: a suite that fails before its specs has noticed nothing.
func TestJudgeOutput_specs(t *testing.T) {
	ended := exec.CommandContext(t.Context(), "false").Run()
	begun := "[BeforeSuite] \n/a/suite_test.go:30\n"
	ready := begun + "[BeforeSuite] PASSED [1.700 seconds]\n"
	for name, c := range map[string]struct {
		out  string
		want verdict
	}{
		"a spec failed":             {ready + "Summarizing 1 Failure:\n  [FAIL] A store [It] keeps\n  /a/b_test.go:3\nRan 1 of 9 Specs in 1 seconds", noticed},
		"its preparation failed":    {ready + "  [PANICKED!] A store [BeforeEach] keeps\nRan 1 of 9 Specs in 1 seconds", noticed},
		"none fits":                 {ready + "Ran 0 of 9 Specs in 0.008 seconds\nPASS\n", noTests},
		"the suite failed":          {begun + "  [FAIL] [BeforeSuite] \n/a/suite_test.go:36\nRan 0 of 9 Specs in 0.008 seconds\n--- FAIL: TestA", noTests},
		"its end failed":            {ready + "  [FAIL] [AfterSuite] \nRan 1 of 9 Specs in 1 seconds\n--- FAIL: TestA", otherProblem},
		"its cleanup failed":        {ready + "  [FAIL] [DeferCleanup (Suite)] \nRan 1 of 9 Specs in 1 seconds", otherProblem},
		"a goroutine's panic":       {ready + "panic: boom\n\ngoroutine 7 [running]:\n", noticed},
		"a panic before the specs":  {begun + "panic: boom\n\ngoroutine 7 [running]:\n", otherProblem},
		"the process was ended":     {ready, otherProblem},
		"it did not end by itself":  {ready + "panic: test timed out after 4m0s\n", timedOut},
		"a spec of a suite's limit": {ready + "A suite timeout occurred", timedOut},
	} {
		t.Run(name, func(t *testing.T) {
			r := execution{suite: Suite{Specs: "TestA"}}.judgeOutput([]byte(c.out), ended)
			NewWithT(t).Expect(r.Verdict).To(Equal(c.want), r.By)
		})
	}
}

// Each of two runs of a program would find the other's file.
func TestRun_sharesNoFolder(t *testing.T) {
	g := NewWithT(t)
	root := newSample(t)
	suite := Suite{Command: []string{"sh", "-c", "test ! -e {dir}/mine && touch {dir}/mine"}}
	for range 2 {
		e := execution{root: root, dir: t.TempDir(), suite: suite}
		_, err := e.runCommand(t.Context(), time.Minute, root, "", e.commandLine()...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.Stat(filepath.Join(e.dir, "mine"))).Error().NotTo(HaveOccurred())
	}
}

// A judging program notices a mutant only by the invariant that the mutant names.
func TestJudgeOutput_invariants(t *testing.T) {
	g := NewWithT(t)
	ended := exec.CommandContext(t.Context(), "false").Run()
	e := execution{suite: Suite{Command: []string{"judge"}}, test: "I5:"}
	g.Expect(e.judgeOutput([]byte("VIOLATED I1: a\nVIOLATED I5: b\n"), ended)).To(And(
		HaveField("Verdict", noticed), HaveField("By", "VIOLATED I5: b")))
	g.Expect(e.judgeOutput([]byte("VIOLATED I1: a\nok I5: b\n"), ended)).To(HaveField("Verdict", otherProblem))
}

func TestRun_aTimeoutOnlyCountsIfTheMutantHangs(t *testing.T) {
	g := NewWithT(t)
	endless := Mutant{Name: "endless", Old: "d.inside++", New: "for {\n\t}"}
	hanging := endless
	hanging.Name, hanging.Hangs = "hanging", true
	outcomes := plantIn(t, newSample(t), endless, hanging)
	g.Expect(outcomes[0].Verdict).To(Equal(timedOut))
	g.Expect(outcomes[1].Verdict).To(Equal(noticed))
}

func TestRun_continuesWhereItEnded(t *testing.T) {
	g := NewWithT(t)
	root := newSample(t)
	mutant := Mutant{Name: "one-too-many", Old: "d.inside >= Limit", New: "d.inside > Limit"}
	g.Expect(plantIn(t, root, mutant)[0].kept).To(BeFalse())
	g.Expect(plantIn(t, root, mutant)[0].kept).To(BeTrue())

	path := filepath.Join(root, "internal", "rule", "rule_test.go")
	text, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(path, append(text, "// changed\n"...), 0o600)).To(Succeed())
	g.Expect(plantIn(t, root, mutant)[0].kept).To(BeFalse(), "the suite has changed")
}

func TestRun_keepsNothingOfAnInterruptedRun(t *testing.T) {
	g := NewWithT(t)
	root := newSample(t)
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

func TestApplyMutant_findsADeclarationInAnyFile(t *testing.T) {
	g := NewWithT(t)
	root := newSample(t)
	moved := filepath.Join(root, "internal", "other")
	g.Expect(os.Rename(filepath.Join(root, "internal", "rule"), moved)).To(Succeed())
	p, err := parseProduct(root, "internal")
	g.Expect(err).NotTo(HaveOccurred())
	for symbol, old := range map[string]string{
		"rule.(*Door).Admit": "if !wanted ||   d.inside >=\n Limit {", "(*Door).Admit": "d.inside++",
		"Limit": "= 3", "another.Limit": "3", "Door": "inside int",
	} {
		changed, err := p.applyMutant(Mutant{Symbol: symbol, Old: old, New: "x"})
		g.Expect(err).NotTo(HaveOccurred(), symbol)
		g.Expect(changed).To(HaveKey(filepath.Join(moved, "rule.go")))
	}
	for symbol, old := range map[string]string{"Admit": "d.inside++", "(*Door).Admit": "d.inside", "Limit": "4"} {
		_, err := p.applyMutant(Mutant{Symbol: symbol, Old: old, New: "x"})
		g.Expect(err).To(HaveOccurred(), symbol)
	}
}

func TestApplyMutant_severalEditsOfOneFile(t *testing.T) {
	g := NewWithT(t)
	p, err := parseProduct(newSample(t), "internal")
	g.Expect(err).NotTo(HaveOccurred())
	changed, err := p.applyMutant(Mutant{
		Symbol: "(*Door).Admit", Old: "d.inside++", New: "d.inside += step",
		Also: []Edit{{Symbol: "Limit", Old: "= 3", New: "= 30"}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	for _, text := range changed {
		g.Expect(string(text)).To(And(ContainSubstring("const Limit = 30\n"), ContainSubstring("d.inside += step\n")))
	}
}

func TestChooseMutants(t *testing.T) {
	g := NewWithT(t)
	all := []Mutant{{Name: "a-phone", Suite: "phone"}, {Name: "a-database", Suite: "postgres"}}
	g.Expect(chooseMutants(all, "", "ci")).To(HaveLen(1))
	g.Expect(chooseMutants(all, "^a", "")).To(HaveLen(2))
	g.Expect(chooseMutants(all, "nothing", "")).Error().To(HaveOccurred())
	g.Expect(chooseMutants(all, "(", "")).Error().To(HaveOccurred())
	g.Expect(chooseMutants(all, "", "some")).Error().To(HaveOccurred())
}
