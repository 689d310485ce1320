package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// campaign plants mutants and collects the outcomes.
type campaign struct {
	root    string
	dir     string // for results and the workers' files
	suites  map[string]Suite
	mutants []Mutant
	workers int
	out     io.Writer

	product *product
	inputs  *inputs
	results results
}

// task is a suite to run, with a mutant or, if that is nil, without one.
type task struct {
	suite   string
	test    string
	mutant  *Mutant
	changed map[string][]byte
	key     string
}

func (t task) name() string {
	if t.mutant == nil {
		return "suite " + t.suite
	}
	return t.mutant.Name
}

// outcome is a task with its result.
type outcome struct {
	task

	result

	kept bool // the result is of an earlier run
}

// run runs the suites without a mutant, then all mutants, and returns the outcomes of the mutants in their order.
func (c *campaign) run(ctx context.Context) ([]outcome, error) {
	if err := c.prepareInputs(ctx); err != nil {
		return nil, err
	}
	baselines, planted, err := c.planTasks()
	if err != nil {
		return nil, err
	}
	red := map[string]bool{}
	for _, o := range c.runAll(ctx, baselines) {
		if o.Verdict != green {
			red[o.suite] = true
			fmt.Fprintf(c.out, "RED without a mutant: suite %s (%s)\n%s\n", o.suite, o.Verdict, o.Details)
		}
	}
	outcomes := c.runAll(ctx, slices.DeleteFunc(slices.Clone(planted), func(t task) bool { return red[t.suite] || t.changed == nil }))
	byName := map[string]outcome{}
	for _, o := range outcomes {
		byName[o.name()] = o
	}
	all := make([]outcome, 0, len(planted))
	for _, t := range planted {
		o, ran := byName[t.name()]
		switch {
		case ran:
		case red[t.suite]:
			o = outcome{task: t, result: result{Verdict: suiteIsRed}}
		case t.changed == nil:
			o = outcome{task: t, result: result{Verdict: notApplied, Details: t.key}}
		default:
			o = outcome{task: t, result: result{Verdict: interrupted}}
		}
		all = append(all, o)
	}
	return all, nil
}

func (c *campaign) prepareInputs(ctx context.Context) error {
	var err error
	c.results = results{dir: filepath.Join(c.dir, "results")}
	if err := os.MkdirAll(c.results.dir, 0o700); err != nil {
		return fmt.Errorf("create folder of results: %w", err)
	}
	if c.product, err = parseProduct(c.root, productFolders...); err != nil {
		return err
	}
	packages := map[string]bool{}
	for _, m := range c.mutants {
		packages[c.suites[m.Suite].Package] = true
	}
	c.inputs, err = listInputs(ctx, c.root, slices.Sorted(maps.Keys(packages)))
	return err
}

// planTasks returns the suites to run without a mutant, each with all tests that its mutants name, and the mutants. The
// key of a task covers everything that can change its result.
func (c *campaign) planTasks() (baselines, planted []task, err error) {
	tests, sums := map[string][]string{}, map[string]string{}
	for _, m := range c.mutants {
		tests[m.Suite] = append(tests[m.Suite], "(?:"+m.Test+")")
		if sums[m.Suite], err = c.inputs.hashSuite(c.suites[m.Suite]); err != nil {
			return nil, nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		slices.Sort(tests[name])
		test := strings.Join(slices.Compact(tests[name]), "|")
		baselines = append(baselines, task{
			suite: name, test: test, key: hashKey("suite", fmt.Sprint(c.suites[name]), test, sums[name]),
		})
	}
	for _, m := range c.mutants {
		t := task{suite: m.Suite, test: m.Test, mutant: &m}
		changed, err := c.product.applyMutant(m)
		if err != nil {
			t.key = err.Error()
		} else {
			t.changed = changed
			t.key = hashKey("mutant", fmt.Sprint(c.suites[m.Suite]), fmt.Sprint(m), sums[m.Suite])
		}
		planted = append(planted, t)
	}
	return baselines, planted, nil
}

// runAll runs tasks by several workers and prints each outcome at once.
func (c *campaign) runAll(ctx context.Context, tasks []task) []outcome {
	var (
		waiting = make(chan int)
		all     = make([]outcome, len(tasks))
		working sync.WaitGroup
		printer sync.Mutex
		done    int
	)
	for range c.workers {
		working.Go(func() {
			for i := range waiting {
				all[i] = c.runOne(ctx, tasks[i])
				printer.Lock()
				done++
				c.printOutcome(done, len(tasks), all[i])
				printer.Unlock()
			}
		})
	}
	for i := range tasks {
		waiting <- i
	}
	close(waiting)
	working.Wait()
	return all
}

func (c *campaign) runOne(ctx context.Context, t task) outcome {
	if kept, ok := c.results.load(t.key); ok {
		return outcome{task: t, result: kept, kept: true}
	}
	if ctx.Err() != nil {
		return outcome{task: t, result: result{Verdict: interrupted}}
	}
	dir, err := os.MkdirTemp("", "phoneproof-mutant-")
	if err != nil {
		return outcome{task: t, result: result{Verdict: otherProblem, Details: err.Error()}}
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil { // a database runs as another user
		return outcome{task: t, result: result{Verdict: otherProblem, Details: err.Error()}}
	}
	e := execution{root: c.root, dir: dir, suite: c.suites[t.suite], test: t.test, changed: t.changed}
	r := e.run(ctx)
	if t.mutant != nil && t.mutant.Hangs && r.Verdict == timedOut {
		r.Verdict, r.By = noticed, "its time limit"
	}
	if t.mutant == nil && r.Verdict == noticed { // nothing was planted to notice
		r.Verdict = suiteIsRed
	}
	if err := c.results.save(t.key, r); err != nil {
		r = result{Verdict: otherProblem, Details: err.Error()}
	}
	return outcome{task: t, result: r}
}

func (c *campaign) printOutcome(done, all int, o outcome) {
	note := ""
	if o.kept {
		note = " (kept)"
	}
	fmt.Fprintf(c.out, "%3d/%d %-14s %5.1f s  %s: %s%s\n", done, all, o.Verdict, o.Took.Seconds(), o.name(), o.By, note)
}
