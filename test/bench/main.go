// Command bench measures PhoneProof on this machine, each figure beside a limit of the same machine: what a bare
// program, PostgreSQL's own pgbench, or the same process under better circumstances does in its place.
//
// Ours and the limit are measured by turns in the same run, so that what else the machine does meets both. What counts
// is their ratio, round by round; the figures themselves belong to the machine. Everything is durable, and every answer
// is checked: a load that is refused in part has no figure.
//
//	go run ./test/bench -figures=init,status -rounds=5 -seconds=5
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/phoneproof/phoneproof/test/system"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // there is nothing left to defer
	}
}

// run measures, or is one of the programs that are measured beside ours.
func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == modeBare {
		return serveBare(args[1:])
	}
	if len(args) > 0 && args[0] == modePost {
		return post(ctx, args[1:])
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	names := flags.String("figures", "", "which figures, by the beginnings of their names, with commas; empty is all: "+figureNames())
	b := &bench{}
	flags.IntVar(&b.rounds, "rounds", 5, "how often each side is measured")
	seconds := flags.Int("seconds", 5, "how long each time")
	flags.IntVar(&b.projects, "projects", 50, "how many projects share the database, of which one has a receiver that hangs")
	flags.IntVar(&b.stored, "stored", 1_000_000, "how many requests are many")
	flags.IntVar(&b.pending, "pending", 10_000, "how many objects are many")
	flags.StringVar(&b.out, "out", "bin", "the folder of bench.json, bench.md and profiles/")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*names)
	if err != nil {
		return err
	}
	if b.rounds < 1 || *seconds < 1 || *seconds > 20 || b.projects < 2 || b.stored < few || b.pending < 1 {
		// With more seconds, attempts at a receiver that hangs would end by their timeout before the round does.
		return fmt.Errorf("rounds and pending are at least 1, seconds 1 to 20, projects at least 2, stored %d", few)
	}
	b.length = time.Duration(*seconds) * time.Second
	return b.measure(ctx, chosen)
}

// choose returns the figures whose names begin so.
func choose(names string) ([]figure, error) {
	if names == "" {
		return figures, nil
	}
	var chosen []figure
	for name := range strings.SplitSeq(names, ",") {
		before := len(chosen)
		for _, f := range figures {
			if strings.HasPrefix(f.name, name) {
				chosen = append(chosen, f)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("no figure begins with %q; there are %s", name, figureNames())
		}
	}
	return chosen, nil
}

// bench is one run.
type bench struct {
	rounds   int
	length   time.Duration
	projects int
	stored   int
	pending  int
	out      string

	dir     string // what is made for this run alone
	program string
	bare    *child
	rows    []row
	begun   func() // tells the profile that the load begins; nil while there is none
	// repeated is how many measurements were begun anew.
	repeated int
}

// measure runs figures one after the other and tells what they found. One that fails leaves the others alone.
func (b *bench) measure(ctx context.Context, chosen []figure) error {
	log.SetLogger(logr.Discard()) // what fails is an error of a figure
	var err error
	if b.dir, err = os.MkdirTemp("", "phoneproof-bench-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if b.program, err = system.Build(ctx, b.dir, false); err != nil {
		return err
	}
	if b.bare, err = startBare(ctx); err != nil {
		return err
	}
	defer b.bare.kill()
	began := time.Now()
	var failed error
	for _, f := range chosen {
		b.sayf("%s: %s", f.name, f.what)
		if err := f.measure(ctx, b); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", f.name, err))
			b.sayf("%s failed: %v", f.name, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	report := report{Machine: describe(ctx, b.dir), Began: began.UTC(), Took: time.Since(began).Round(time.Second).String(),
		Rounds: b.rounds, Seconds: b.length.Seconds(), Repeated: b.repeated, Rows: b.rows}
	return errors.Join(failed, report.write(b.out, os.Stdout))
}

// sayf tells how far the run is.
func (b *bench) sayf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// profiles is the folder of the profiles.
func (b *bench) profiles() string { return filepath.Join(b.out, "profiles") }
