// Command bench measures PhoneProof on this machine, each figure beside a limit on the same machine: a bare program,
// PostgreSQL's own pgbench, or the same process under better circumstances.
//
// Both are measured by turns in the same run, so that other load of the machine affects both. What counts is their ratio,
// round by round; the figures themselves depend on the machine. Everything is durable, and every answer is checked: a
// load that is partly refused has no figure.
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
	"slices"
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
		os.Exit(1) //nolint:gocritic // the only deferred call is stop
	}
}

// run measures, or runs one of the programs of the limits.
func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == modeBare {
		return serveBare(args[1:])
	}
	if len(args) > 0 && args[0] == modePost {
		return postRepeatedly(ctx, args[1:])
	}
	if len(args) > 0 && args[0] == modeOpen {
		return openPages(ctx)
	}
	if len(args) > 0 && args[0] == modeFloor {
		return serveFloor(ctx)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	names := flags.String("figures", "", "prefixes of the figures' names, separated by commas; empty means all but peers: "+figureNames())
	b := &bench{}
	flags.IntVar(&b.rounds, "rounds", 5, "number of measurements of each side")
	seconds := flags.Int("seconds", 5, "length of each measurement in seconds")
	flags.IntVar(&b.projects, "projects", 50, "number of projects that share the database; the receiver of one hangs")
	flags.IntVar(&b.stored, "stored", 1_000_000, "number of stored requests in the large database")
	flags.IntVar(&b.sharing, "sharing", 1, "number of projects that these requests belong to")
	flags.BoolVar(&b.upkeep, "upkeep", false, "vacuum both databases again and again, with a checkpoint every 30 s, while stored is measured")
	flags.IntVar(&b.pending, "pending", 10_000, "number of pending objects in the memory figure")
	flags.IntVar(&b.operated, "operated", 1000, "number of projects of the idle operator")
	flags.StringVar(&b.peers, "peers", filepath.Join("bin", "peers"), "folder of otpgateway, for the figure peers")
	flags.StringVar(&b.program, "program", "",
		"the server to measure, built from test/program/phoneproof of any version; empty builds that of this tree")
	flags.StringVar(&b.out, "out", "bin", "folder for bench.json, bench.md and profiles/")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := chooseFigures(*names)
	if err != nil {
		return err
	}
	if b.rounds < 1 || *seconds < 1 || *seconds > 20 || b.projects < 2 || b.pending < 1 || b.operated < 1 {
		// In longer rounds, attempts at a receiver that hangs would time out before the round ends.
		return errors.New("rounds, pending and operated must be at least 1, seconds 1 to 20, projects at least 2")
	}
	if b.stored < few || b.sharing < 1 || b.sharing > b.stored/few {
		return fmt.Errorf("stored must be at least %d, and as many for each of sharing projects", few)
	}
	b.length = time.Duration(*seconds) * time.Second
	return b.measureFigures(ctx, chosen)
}

// chooseFigures returns the figures whose names begin with one of the prefixes.
func chooseFigures(names string) ([]figure, error) {
	if names == "" {
		return figures, nil
	}
	var chosen []figure
	for name := range strings.SplitSeq(names, ",") {
		before := len(chosen)
		for _, f := range slices.Concat(figures, peerFigures) {
			if strings.HasPrefix(f.name, name) {
				chosen = append(chosen, f)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("no figure begins with %q; the figures are %s", name, figureNames())
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
	sharing  int
	upkeep   bool
	pending  int
	operated int
	peers    string
	out      string

	dir     string // temporary folder of this run
	program string
	built   bool // program is that of this tree
	bare    *child
	rows    []row
	begun   func() // starts the profile; nil while none is taken
	// repeated is the number of repeated measurements.
	repeated int
}

// measureFigures measures figures one after the other and writes the report. The failure of one does not end the
// others.
func (b *bench) measureFigures(ctx context.Context, chosen []figure) error {
	log.SetLogger(logr.Discard()) // failures are errors of figures
	var err error
	if b.dir, err = os.MkdirTemp("", "phoneproof-bench-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if b.built = b.program == ""; b.built {
		b.program, err = system.Build(ctx, b.dir, false)
	} else {
		b.program, err = filepath.Abs(b.program)
	}
	if err != nil {
		return err
	}
	if b.bare, err = startBare(ctx); err != nil {
		return err
	}
	defer b.bare.kill()
	began := time.Now()
	var failed error
	for _, f := range chosen {
		b.logf("%s: %s", f.name, f.what)
		if err := f.measure(ctx, b); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", f.name, err))
			b.logf("%s failed: %v", f.name, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	report := report{Machine: describeMachine(ctx, b.dir), Began: began.UTC(), Took: time.Since(began).Round(time.Second).String(),
		Rounds: b.rounds, Seconds: b.length.Seconds(), Repeated: b.repeated, Rows: b.rows}
	return errors.Join(failed, report.write(b.out, os.Stdout))
}

// logf prints a line of progress to stderr.
func (b *bench) logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// profilesDir returns the folder for the profiles.
func (b *bench) profilesDir() string { return filepath.Join(b.out, "profiles") }
