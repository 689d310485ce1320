// Command bench measures PhoneProof on this machine, in Go's benchmark format: benchstat compares two runs, or within one the
// floor server, the least that a verification server can be, with PhoneProof.
//
// What is compared within a run is measured by turns, so that other load of the machine affects both. Everything is durable,
// and every answer is checked: a load that is partly refused has no figure.
//
//	go run ./test/bench -figures=init,status -rounds=6 -seconds=5 > new.txt
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

// run measures, or runs the floor server.
func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == modeFloor {
		return serveFloor(ctx)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	names := flags.String("figures", "", "prefixes of the figures' names, separated by commas; empty means all: "+figureNames())
	b := &bench{}
	flags.IntVar(&b.rounds, "rounds", 6, "number of measurements of each side; benchstat is sure of nothing with fewer than 6")
	seconds := flags.Int("seconds", 5, "length of each measurement in seconds")
	flags.IntVar(&b.stored, "stored", 1_000_000, "number of stored requests in the large database")
	flags.IntVar(&b.sharing, "sharing", 1, "number of projects that these requests belong to")
	flags.IntVar(&b.pending, "pending", 10_000, "number of pending objects in the memory figure")
	flags.IntVar(&b.operated, "operated", 1000, "number of projects of the idle operator")
	flags.StringVar(&b.program, "program", "",
		"the server to measure, built from test/program/phoneproof of any version; empty builds that of this tree")
	file := flags.String("out", "", "file for the figures, which are printed, too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := chooseFigures(*names)
	if err != nil {
		return err
	}
	if b.rounds < 1 || *seconds < 1 || b.pending < 1 || b.operated < 1 {
		return errors.New("rounds, seconds, pending and operated must be at least 1")
	}
	if b.stored < few || b.sharing < 1 || b.sharing > b.stored/few {
		return fmt.Errorf("stored must be at least %d, and as many for each of sharing projects", few)
	}
	b.length = time.Duration(*seconds) * time.Second
	return b.measureTo(ctx, *file, chosen)
}

// bench is one run.
type bench struct {
	rounds   int
	length   time.Duration
	stored   int
	sharing  int
	pending  int
	operated int

	out     io.Writer
	dir     string // temporary folder of this run
	program string
	built   bool // program is that of this tree
}

// measureTo measures figures and prints them, also to a file if one is named.
func (b *bench) measureTo(ctx context.Context, file string, chosen []figure) (err error) {
	b.out = os.Stdout
	if file != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		kept, err2 := os.Create(file)
		if err2 != nil {
			return err2
		}
		defer func() { err = errors.Join(err, kept.Close()) }()
		b.out = io.MultiWriter(os.Stdout, kept)
	}
	log.SetLogger(logr.Discard()) // failures are errors of figures
	if b.dir, err = os.MkdirTemp("", "phoneproof-bench-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if b.built = b.program == ""; b.built {
		b.program, err = system.Build(ctx, b.dir)
	} else {
		b.program, err = filepath.Abs(b.program)
	}
	if err != nil {
		return err
	}
	return errors.Join(b.writeHeader(ctx), b.measureFigures(ctx, chosen))
}

// measureFigures measures figures one after the other. The failure of one does not end the others.
func (b *bench) measureFigures(ctx context.Context, chosen []figure) error {
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
	return failed
}

// logf prints a line of progress to stderr.
func (b *bench) logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
