// Command adversary runs whole systems under people who try to have a stranger verify their session, and judges by a ledger outside
// of PhoneProof whether anyone did: see docs/adversary.md.
//
// The invariant: it exits 0 only if every invariant was tested and held, on every store in -store.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/phoneproof/phoneproof/test/adversary/judge"
	"github.com/phoneproof/phoneproof/test/system"
)

// The levels, as the API calls them.
const (
	levelSession    = "SESSION"
	levelPossession = "POSSESSION"
)

// options are the command-line options.
type options struct {
	stores   []system.Store
	level    string
	victims  int
	duration time.Duration
	workers  int
	replicas int
	dir      string
	keep     bool
	program  string
}

func main() {
	log.SetLogger(logr.Discard()) // failures are errors of the run
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "adversary:", err)
		os.Exit(1)
	}
}

func parseOptions(args []string) (options, error) {
	var (
		o      options
		stores string
	)
	flags := flag.NewFlagSet("adversary", flag.ContinueOnError)
	flags.StringVar(&stores, "store", "postgresql,kubernetes", "stores to test, separated by commas, all at once")
	flags.StringVar(&o.level, "level", levelSession, "SESSION, or POSSESSION, at which the attacks have to succeed")
	flags.IntVar(&o.victims, "victims", 0, "victims of each kind, for each store; zero means as many as there is time for")
	flags.DurationVar(&o.duration, "duration", time.Minute, "length of the run, if -victims is zero; each kind of victim meets each attack once at least")
	flags.IntVar(&o.workers, "workers", 8, "number of concurrent scenes for each store")
	flags.IntVar(&o.replicas, "replicas", 2, "number of replicas for each store")
	flags.StringVar(&o.dir, "dir", filepath.Join("bin", "adversary"), "folder for ledgers and logs; kept after a failure")
	flags.BoolVar(&o.keep, "keep", false, "keep ledgers and logs after a success, too")
	flags.StringVar(&o.program, "program", "", "path of the program from system.Build; empty builds it")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for name := range strings.SplitSeq(stores, ",") {
		store := system.Store(name)
		if !slices.Contains([]system.Store{system.Kubernetes, system.PostgreSQL, system.Memory}, store) {
			return o, fmt.Errorf("-store is %q: want %s, %s or %s", name, system.Kubernetes, system.PostgreSQL, system.Memory)
		}
		if store == system.Memory && o.replicas > 1 {
			return o, errors.New("-store=memory has one replica: set -replicas=1")
		}
		o.stores = append(o.stores, store)
	}
	if o.level != levelSession && o.level != levelPossession {
		return o, fmt.Errorf("-level is %q: want %s or %s", o.level, levelSession, levelPossession)
	}
	return o, nil
}

// run runs all stores and prints the report.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	if o.program == "" {
		build, err := os.MkdirTemp("", "phoneproof-adversary-")
		if err != nil {
			return fmt.Errorf("create folder of the program: %w", err)
		}
		defer func() { _ = os.RemoveAll(build) }()
		if o.program, err = system.Build(ctx, build, false); err != nil {
			return err
		}
	}
	reports := make([]report, len(o.stores))
	errs := make([]error, len(o.stores))
	var running sync.WaitGroup
	for n, store := range o.stores {
		running.Go(func() {
			if reports[n], errs[n] = runStore(ctx, o, store); errs[n] != nil {
				errs[n] = fmt.Errorf("%s: %w", store, errs[n])
			}
		})
	}
	running.Wait()
	var passed, failed, skipped int
	for _, r := range reports {
		fmt.Fprint(out, r.text)
		passed, failed, skipped = passed+r.passed, failed+r.failed, skipped+r.skipped
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return errors.Join(errs...)
}

// report is what a run on one store has to say.
type report struct {
	text                    string
	passed, failed, skipped int
}

// runStore runs a store and judges the run.
func runStore(ctx context.Context, o options, store system.Store) (report, error) {
	t := &trial{options: o, store: store, dir: filepath.Join(o.dir, string(store))}
	began := time.Now()
	if err := errors.Join(t.run(ctx), t.stop()); err != nil {
		return report{failed: 1}, fmt.Errorf("%w; ledgers and logs are in %s", err, t.dir)
	}
	evidence, err := t.evidence()
	if err != nil {
		return report{failed: 1}, err
	}
	var (
		r     report
		lines strings.Builder
	)
	fmt.Fprintf(&lines, "%s, level %s, %d replicas, %s:\n", store, o.level, o.replicas, time.Since(began).Round(time.Second))
	writeTable(&lines, evidence.Records)
	for _, v := range judge.Judge(evidence) {
		result := "VIOLATED"
		switch {
		case v.OK():
			result = "ok"
			r.passed++
		case v.Skipped():
			result = "skipped"
			r.skipped++
		default:
			r.failed++
		}
		writeVerdict(&lines, v, result)
	}
	r.text = lines.String()
	if r.failed > 0 {
		return r, fmt.Errorf("%d invariants violated; ledgers and logs are in %s", r.failed, t.dir)
	}
	if o.keep {
		return r, nil
	}
	return r, os.RemoveAll(t.dir)
}

func writeVerdict(out io.Writer, v *judge.Verdict, result string) {
	fmt.Fprintf(out, "  %-4s %-8s %8d  %s", v.Name, result, v.Looked, v.Holds)
	if v.Note != "" {
		fmt.Fprintf(out, " (%s)", v.Note)
	}
	fmt.Fprintln(out)
	if v.Count > 0 {
		fmt.Fprintf(out, "       %d violations:\n       %s\n", v.Count, strings.Join(v.Violations, "\n       "))
	}
}
