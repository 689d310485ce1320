package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// sample holds the values of one measurement by their units, whose prefixes benchstat understands.
type sample map[string]float64

// The units that several figures have.
const (
	unitRate   = "req/s"
	unitEvents = "events/s"
	unitServer = "server-ns/op" // CPU time
	unitStore  = "store-ns/op"  // CPU time of PostgreSQL, or of the API server with etcd
	unitBoth   = "both-ns/op"
)

// writeHeader writes what benchstat has to know of the figures, and what they were measured with as a line that it ignores.
func (b *bench) writeHeader(ctx context.Context) error {
	commit, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("unknown") // the program may run outside of the repository
	}
	_, err = fmt.Fprintf(b.out, "# the program is %s, the load that of commit %s; rounds last %v\n"+
		"goos: %s\ngoarch: %s\ncpu: %d x %s\nUnit %s better=higher\nUnit %s better=higher\n",
		b.program, strings.TrimSpace(string(commit)), b.length, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpuModel(), unitRate, unitEvents)
	return err
}

// cpuModel returns the name of the machine's processor; empty if it is not known.
func cpuModel() string {
	content, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(content), "model name")
	line, _, _ := strings.Cut(after, "\n")
	return strings.Trim(line, " \t:")
}

// writeSample writes one measurement as a line of Go's benchmark format.
func (b *bench) writeSample(name string, found sample) error {
	line := []string{"Benchmark" + name, "1"}
	for _, unit := range slices.Sorted(maps.Keys(found)) {
		line = append(line, fmt.Sprintf("%.6g %s", found[unit], unit))
	}
	_, err := fmt.Fprintln(b.out, strings.Join(line, " "))
	return err
}

// side is one of the things that are measured by turns.
type side struct {
	name    string
	measure func(ctx context.Context, round int) (sample, error)
}

// measureByTurns measures each side once per round. Every second round goes backwards, so that changes of the machine
// over time favour none.
func (b *bench) measureByTurns(ctx context.Context, sides ...side) error {
	sides = slices.Clone(sides)
	for round := range b.rounds {
		for _, s := range sides {
			found, err := b.measureOnce(ctx, s, round)
			if err == nil {
				err = b.writeSample(s.name, found)
			}
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", s.name, round+1, err)
			}
		}
		slices.Reverse(sides)
	}
	return nil
}

// mostRepeats is how often a failed measurement is repeated.
const mostRepeats = 3

// measureOnce measures one side. A busy machine may stall for longer than a call waits for its answer, so a round with
// a refused call is repeated.
func (b *bench) measureOnce(ctx context.Context, s side, round int) (sample, error) {
	for failures := 0; ; failures++ {
		found, err := s.measure(ctx, round)
		if err == nil || failures == mostRepeats || ctx.Err() != nil {
			return found, errors.Join(err, ctx.Err())
		}
		b.logf("  %s failed and is repeated: %v", s.name, err)
	}
}
