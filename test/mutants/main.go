// Command mutants plants defects in the product, one at a time, and runs the suite that must notice each: see docs/reliability.md.
//
// The invariant: it exits 0 only if every chosen mutant was planted in the current product, and noticed by a suite that passes without it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := plantAll(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func plantAll(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	only := flags.String("only", "", "regular expression of the mutants' names")
	ci := flags.Bool("ci", false, "the cheapest mutants alone, which need no server")
	workers := flags.Int("workers", runtime.NumCPU(), "number of mutants at once")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read flags: %w", err)
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	chosen := slices.DeleteFunc(allMutants(), func(m Mutant) bool {
		return !pattern.MatchString(m.Name) || *ci && !suites[m.Suite].CI
	})
	root, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find repository: %w", err)
	}
	c := campaign{root: root, suites: suites, workers: *workers, out: out}
	runs, err := c.plant(ctx, chosen)
	if err != nil {
		return err
	}
	return printSummary(out, runs)
}

// campaign plants mutants.
type campaign struct {
	root    string
	suites  map[string]Suite
	workers int
	out     io.Writer
}

// plant runs the suites without a mutant, each with all tests that its mutants name, then with each mutant, and returns the latter.
func (c *campaign) plant(ctx context.Context, mutants []Mutant) ([]*run, error) {
	p, err := parseProduct(c.root)
	if err != nil {
		return nil, err
	}
	tests := map[string]string{}
	for _, m := range mutants {
		tests[m.Suite] += "|" + m.Test
	}
	baselines := map[string]*run{}
	for name, test := range tests {
		baselines[name] = &run{root: c.root, suite: c.suites[name], test: test[1:]}
	}
	c.execute(ctx, slices.Collect(maps.Values(baselines)))
	var planted, all []*run
	for _, m := range mutants {
		r := &run{root: c.root, suite: c.suites[m.Suite], test: m.Test, mutant: &m}
		all = append(all, r)
		if r.path, r.file, err = p.applyMutant(m); err != nil {
			r.verdict, r.details = notApplied, err.Error()
		} else if baselines[m.Suite].verdict != green {
			r.verdict = suiteIsRed
		} else {
			planted = append(planted, r)
		}
	}
	c.execute(ctx, planted)
	return all, nil
}

// execute runs several at once, and prints each result.
func (c *campaign) execute(ctx context.Context, runs []*run) {
	var (
		working sync.WaitGroup
		printer sync.Mutex
	)
	free := make(chan struct{}, c.workers)
	for _, r := range runs {
		working.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			r.execute(ctx)
			printer.Lock()
			defer printer.Unlock()
			name, details := "without a mutant: "+r.suite.Package, ""
			if r.mutant != nil {
				name = r.mutant.Name
			} else if r.verdict != green {
				details = r.details
			}
			fmt.Fprintf(c.out, "%-14s %5.1f s  %s: %s\n%s", r.verdict, r.took.Seconds(), name, r.by, details)
		})
	}
	working.Wait()
}

// printSummary prints the mutants that were not noticed, and returns an error if there is one.
func printSummary(out io.Writer, runs []*run) error {
	missed := 0
	for _, r := range runs {
		if r.verdict != noticed {
			missed++
			fmt.Fprintf(out, "\n%s: %s\n  breaks: %s\n  suite:  %s, %s\n  %s\n", strings.ToUpper(r.verdict), r.mutant.Name,
				r.mutant.Promise, r.mutant.Suite, r.test, strings.ReplaceAll(strings.TrimSpace(r.details), "\n", "\n  "))
		}
	}
	fmt.Fprintf(out, "%d planted, %d noticed\n", len(runs), len(runs)-missed)
	switch {
	case len(runs) == 0:
		return errors.New("no mutant has such a name")
	case missed > 0:
		return fmt.Errorf("%d mutants were not noticed", missed)
	}
	return nil
}
