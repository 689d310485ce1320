// Command chaos runs whole systems under load and faults, and judges by ledgers outside them whether they lost, repeated,
// contradicted or revealed anything that they must not: see docs/reliability.md.
//
// The invariant: it exits 0 only if every invariant was tested and held, on every store in -store.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/phoneproof/phoneproof/test/chaos/judge"
	"github.com/phoneproof/phoneproof/test/system"
)

// options are the command-line options.
type options struct {
	stores   []system.Store
	duration time.Duration
	requests int
	kills    int
	seed     uint64
	workers  int
	rate     float64
	quiet    time.Duration
	dir      string
	keep     bool
	debug    bool
	program  string

	standby   system.Standby
	failovers int

	codeKills int
}

func main() {
	log.SetLogger(logr.Discard()) // failures are errors of the run
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func parseOptions(args []string) (options, error) {
	var (
		o      options
		stores string
	)
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.StringVar(&stores, "store", "postgresql,kubernetes", "stores to test, separated by commas; the load of one begins when that of another has ended")
	flags.DurationVar(&o.duration, "duration", 3*time.Minute, "length of the run of each store, if -requests is zero")
	flags.IntVar(&o.requests, "requests", 0, "verifications for each store, and more while faults need them; zero means as many as there is time for")
	flags.IntVar(&o.kills, "kills", 20, "number of kill -9 of single replicas; other faults come in proportion")
	flags.IntVar(&o.codeKills, "codekills", 260, "number of kill -9 at named points on the way of a code, on all stores together")
	flags.Uint64Var(&o.seed, "seed", 0, "seed of the faults; zero draws one")
	flags.IntVar(&o.workers, "workers", 32, "number of concurrent clients")
	flags.Float64Var(&o.rate, "rate", 15,
		"most verifications that begin per second for each store; zero means as many as the machine can handle")
	// A request lives for a minute, and for two more if its number was proven and its digits are never entered.
	flags.DurationVar(&o.quiet, "quiet", 4*time.Minute, "longest wait, after the faults, for due work")
	flags.StringVar(&o.dir, "dir", filepath.Join("bin", "chaos"), "folder for ledgers and logs; kept after a failure")
	flags.BoolVar(&o.keep, "keep", false, "keep ledgers and logs after a success, too")
	flags.BoolVar(&o.debug, "debug", true, "let replicas log at level debug")
	flags.StringVar(&o.program, "program", "", "path of the program from system.Build; empty builds it")
	flags.StringVar((*string)(&o.standby), "standby", "",
		"standby of the database: synchronous or asynchronous; its failovers take the place of the other faults of a database")
	flags.IntVar(&o.failovers, "failovers", 20, "number of failovers to the standby, if there is one")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch o.standby {
	case system.NoStandby:
	case system.Synchronous, system.Asynchronous:
		stores, o.codeKills = string(system.PostgreSQL), 0 // no proxy there knows transactions
	default:
		return o, fmt.Errorf("-standby is %q: want %s or %s", o.standby, system.Synchronous, system.Asynchronous)
	}
	for name := range strings.SplitSeq(stores, ",") {
		store := system.Store(name)
		if store != system.Kubernetes && store != system.PostgreSQL {
			return o, fmt.Errorf("-store is %q: want %s or %s", name, system.Kubernetes, system.PostgreSQL)
		}
		o.stores = append(o.stores, store)
	}
	for o.seed == 0 {
		o.seed = uint64(rand.Uint32())
	}
	return o, nil
}

// run runs all stores and prints the report.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	if o.program == "" {
		build, err := os.MkdirTemp("", "phoneproof-chaos-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(build) }()
		if o.program, err = system.Build(ctx, build); err != nil {
			return err
		}
	}
	all := &report{out: out}
	failed := make(chan error, len(o.stores))
	for _, store := range o.stores {
		go func() { // ends with its store
			err := runStore(ctx, o, store, all)
			if err != nil {
				err = fmt.Errorf("%s: %w", store, err)
			}
			failed <- err
		}()
	}
	for range o.stores {
		err = errors.Join(err, <-failed)
	}
	fmt.Fprintln(out, all.counts)
	return err
}

// tally counts the invariants that held, that were violated, and that had nothing to be tested on.
type tally struct{ passed, failed, skipped int }

func (t tally) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

func (t *tally) add(v *judge.Verdict) {
	switch {
	case v.OK():
		t.passed++
	case v.Skipped():
		t.skipped++
	default:
		t.failed++
	}
}
