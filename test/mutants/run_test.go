package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

func TestElsewhere(t *testing.T) {
	var d Door
	switch d.Admit(true); d.inside {
	case 7: // as if the machine had no memory left
		p, _ := os.FindProcess(os.Getpid())
		p.Kill()
		select {}
	case 8:
		go func() { panic("in a goroutine of the product") }()
		select {}
	}
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

func TestPlant_tellsTheVerdictOnEachMutant(t *testing.T) {
	g := NewWithT(t)
	rule := Suite{Package: "./internal/rule", Limit: 10 * time.Second}
	c := campaign{
		root: newSample(t), workers: 2, out: t.Output(), suites: map[string]Suite{"rule": rule, "broken": rule, "elsewhere": rule},
	}
	mutants := []Mutant{
		{Name: "one-too-many", Old: "!wanted ||   d.inside >=\n Limit", New: "d.inside > Limit"},
		{Name: "constant", Symbol: "another.Limit", Old: "= 3", New: "= 0 * 3"},
		{Name: "unnoticed", Old: "!wanted ||", New: ""},
		{Name: "not-go", Old: "d.inside++", New: "d.outside++"},
		{Name: "never-there", Old: "d.inside--", New: ""},
		{Name: "there-twice", Old: "d.inside", New: ""},
		{Name: "endless", Old: "d.inside++", New: "for {\n\t}"},
		{Name: "no-tests", Old: "d.inside++", New: "d.inside += 1", Test: "TestNothing"},
		{Name: "red", Old: "d.inside++", New: "d.inside += 2", Suite: "broken", Test: "TestBroken"},
		{Name: "killed-from-outside", Old: "d.inside++", New: "d.inside = 7", Suite: "elsewhere", Test: "TestElsewhere"},
		{Name: "panic-elsewhere", Old: "d.inside++", New: "d.inside = 8", Suite: "elsewhere", Test: "TestElsewhere"},
	}
	for i, m := range mutants {
		if m.Symbol == "" {
			mutants[i].Symbol = "rule.(*Door).Admit"
		}
		if m.Suite == "" {
			mutants[i].Suite = "rule"
		}
		if m.Test == "" {
			mutants[i].Test = "TestAdmit"
		}
	}
	runs, err := c.plant(t.Context(), mutants)
	g.Expect(err).NotTo(HaveOccurred())
	verdicts := map[string]string{}
	for _, r := range runs {
		verdicts[r.mutant.Name] = r.verdict
	}
	g.Expect(verdicts).To(Equal(map[string]string{
		"one-too-many": noticed, "constant": green, "unnoticed": green, "not-go": notBuilt, "never-there": notApplied,
		"there-twice": notApplied, "endless": timedOut, "no-tests": noTests, "red": suiteIsRed, "killed-from-outside": otherProblem,
		"panic-elsewhere": noticed,
	}))
	g.Expect(runs[0].by).To(Equal("TestAdmit"))
	g.Expect(printSummary(t.Output(), runs)).To(MatchError("9 mutants were not noticed"))
	g.Expect(printSummary(t.Output(), runs[:1])).To(Succeed())
	g.Expect(printSummary(t.Output(), nil)).NotTo(Succeed())
}

// The outputs of Ginkgo are its own: a suite that fails before or after its specs has noticed nothing. A judging program notices a
// mutant only by the invariant that the mutant names.
func TestJudgeOutput(t *testing.T) {
	ended := exec.CommandContext(t.Context(), "false").Run()
	dashes := strings.Repeat("-", 30) + "\n"
	specs, program := run{suite: Suite{Specs: "TestA"}}, run{suite: Suite{Program: []string{"-x"}}, test: "I5:"}
	verdict, _ := program.judgeOutput([]byte("VIOLATED I5: b\n"), errors.Join(ended, context.DeadlineExceeded))
	NewWithT(t).Expect(verdict).To(Equal(timedOut), "whatever was found until then")
	for name, c := range map[string]struct {
		run  run
		out  string
		want string
	}{
		"a spec failed":           {specs, "Summarizing 1 Failure:\n  [FAIL] A store [It] keeps\nRan 1 of 9 Specs in 1 seconds", noticed},
		"its preparation failed":  {specs, "  [PANICKED!] A store [BeforeEach] keeps\nRan 1 of 9 Specs in 1 seconds", noticed},
		"none fits":               {specs, "Ran 0 of 9 Specs in 0.008 seconds\nPASS\n", noTests},
		"the suite failed":        {specs, "  [FAIL] [BeforeSuite] \nRan 0 of 9 Specs in 0.008 seconds\n--- FAIL: TestA", noTests},
		"its end failed":          {specs, "  [FAIL] [AfterSuite] \nRan 1 of 9 Specs in 1 seconds\n--- FAIL: TestA", otherProblem},
		"its cleanup failed":      {specs, "  [FAIL] [DeferCleanup (Suite)] \nRan 1 of 9 Specs in 1 seconds", otherProblem},
		"the process was ended":   {specs, "", otherProblem},
		"a spec crashed":          {specs, "=== RUN   TestA\n" + dashes + "[BeforeSuite] \n" + dashes + "A store keeps\npanic: a\n", noticed},
		"the suite crashed":       {specs, "=== RUN   TestA\n" + dashes + "[BeforeSuite] \n/a_test.go:3\npanic: a\n", otherProblem},
		"no test had begun":       {run{}, "panic: a\n", otherProblem},
		"the suite's limit":       {specs, "A suite timeout occurred", timedOut},
		"the invariant":           {program, "VIOLATED I1: a\nVIOLATED I5: b\n", noticed},
		"another invariant alone": {program, "VIOLATED I1: a\nok I5: b\n", otherProblem},
	} {
		t.Run(name, func(t *testing.T) {
			verdict, by := c.run.judgeOutput([]byte(c.out), ended)
			NewWithT(t).Expect(verdict).To(Equal(c.want), by)
		})
	}
}
