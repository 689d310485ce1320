// Command mutants plants defects in the product, one at a time, and runs the suite that must notice each: see
// docs/reliability.md.
//
// The invariant: it exits 0 only if every chosen mutant was planted in the current product, and noticed by a suite that
// passes without it.
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
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	only := flags.String("only", "", "regular expression of the mutants' names")
	slice := flags.String("slice", "", "ci for the cheapest mutants; empty for all")
	workers := flags.Int("workers", runtime.NumCPU(), "number of mutants at once")
	dir := flags.String("dir", filepath.Join("bin", "mutants"), "folder for results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := chooseMutants(allMutants(), *only, *slice)
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find repository: %w", err)
	}
	start := time.Now()
	c := campaign{root: root, dir: *dir, suites: suites, mutants: chosen, workers: *workers, out: out}
	outcomes, err := c.run(ctx)
	if err != nil {
		return err
	}
	return printSummary(out, outcomes, time.Since(start))
}

// chooseMutants returns the mutants that -only and -slice select.
func chooseMutants(all []Mutant, only, slice string) ([]Mutant, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	if slice != "" && slice != "ci" {
		return nil, fmt.Errorf("-slice is %q: want ci", slice)
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(m Mutant) bool {
		return !pattern.MatchString(m.Name) || slice == "ci" && !suites[m.Suite].CI
	})
	if len(chosen) == 0 {
		return nil, errors.New("no mutant matches -only and -slice")
	}
	return chosen, nil
}

// printSummary prints the mutants that were not noticed, and the counts.
func printSummary(out io.Writer, outcomes []outcome, took time.Duration) error {
	counts := map[verdict]int{}
	for _, o := range outcomes {
		counts[o.Verdict]++
		if o.Verdict != noticed {
			fmt.Fprintf(out, "\n%s: %s\n  breaks: %s\n  suite:  %s, %s\n",
				strings.ToUpper(string(o.Verdict)), o.name(), o.mutant.Promise, o.suite, o.test)
			if o.Details != "" {
				fmt.Fprintf(out, "  %s\n", strings.ReplaceAll(strings.TrimSpace(o.Details), "\n", "\n  "))
			}
		}
	}
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		if v != noticed {
			fmt.Fprintf(out, "%s: %d\n", v, counts[v])
		}
	}
	not := len(outcomes) - counts[noticed]
	fmt.Fprintf(out, "%d planted, %d noticed, %d not, %.0f s\n", len(outcomes), counts[noticed], not, took.Seconds())
	if not > 0 {
		return fmt.Errorf("%d mutants were not noticed", not)
	}
	return nil
}
