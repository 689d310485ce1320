package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/controllers/request"
	"github.com/phoneproof/phoneproof/test/chaos/judge"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
	"github.com/phoneproof/phoneproof/test/system"
)

// reserve is the part of a run's time for its start and its end.
const reserve = 60 * time.Second

// runStore runs a store and judges the run.
func runStore(ctx context.Context, o options, store system.Store, out *report) error {
	t := &trial{options: o, store: store, dir: filepath.Join(o.dir, string(store)), out: out}
	t.logf("%s: seed %d, %d kills; replay with: make chaos STORE=%s SEED=%d KILLS=%d %s",
		store, o.seed, o.kills, store, o.seed, o.kills, t.makeArguments())
	out.turn.Lock()
	err := t.runLoad(ctx)
	out.turn.Unlock()
	if err == nil {
		err = errors.Join(t.awaitQuiet(ctx), t.load.UseRevokedKeyAgain(ctx), t.saveUnanswered(), t.witness.Conclude(ctx, t.dir))
	}
	if err = errors.Join(err, t.stopAll()); err != nil {
		out.add(tally{failed: 1}, "")
		t.logf("%s: run failed: %v; ledgers and logs are in %s", store, err, t.dir)
		return err
	}
	evidence, err := t.loadEvidence()
	if err != nil {
		return err
	}
	var (
		counts   tally
		lines    strings.Builder
		violated []string
	)
	fmt.Fprintf(&lines, "%s:\n", store)
	if o.standby != system.NoStandby {
		fmt.Fprintf(&lines, "  %s standby%s\n", o.standby, describeFailovers(evidence))
	}
	for _, v := range judge.Judge(evidence) {
		counts.add(v)
		printVerdict(&lines, v)
		if summary := v.Summary(); summary != "" {
			violated = append(violated, summary)
		}
	}
	out.add(counts, lines.String())
	if counts.failed > 0 && o.standby == system.Asynchronous {
		t.logf("%s: an asynchronous standby may lack what was acknowledged: what the violations above count is lost", store)
		return nil
	}
	if counts.failed > 0 {
		return fmt.Errorf("%d invariants violated; ledgers and logs are in %s\n%s", counts.failed, t.dir, strings.Join(violated, "\n"))
	}
	if o.keep {
		return nil
	}
	return os.RemoveAll(t.dir)
}

// makeArguments returns the amount of load as an argument for make.
func (t *trial) makeArguments() string {
	if t.requests > 0 {
		return fmt.Sprintf("CODEKILLS=%d REQUESTS=%d", t.codeKills, t.requests)
	}
	return fmt.Sprintf("CODEKILLS=%d DURATION=%s", t.codeKills, t.duration)
}

// runLoad runs the load under faults until both have ended and the replicas are ready.
func (t *trial) runLoad(ctx context.Context) error {
	if err := t.startSystem(ctx); err != nil {
		return err
	}
	if err := t.startReplicas(ctx); err != nil {
		return err
	}
	if err := t.killOnTheWay(ctx); err != nil {
		return err
	}
	faults := schedule.Draw(t.scheduleOptions())
	t.began = time.Now()
	t.logf("%s: %d replicas are ready, %d faults are drawn", t.store, len(t.roster.places), len(faults))
	stop := make(chan struct{})
	loaded := make(chan error, 1)
	loading, unload := context.WithCancel(ctx)
	defer unload()
	go func() { loaded <- t.load.Run(loading, stop) }() // ends with the load
	i := &injector{trial: t, done: map[schedule.Kind]int{}, hits: map[schedule.Kind]map[string]int{}, missing: map[schedule.Kind][]string{}}
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	go t.reportProgress(watching) // ends with watching
	err := i.injectAll(ctx, faults)
	if err != nil {
		unload() // a fault that failed may not have ended
	}
	i.awaitProgress(loading, 1)
	close(stop)
	t.lines.clearFaults()
	t.sink.Calm()
	err = errors.Join(err, <-loaded)
	unwatch()
	took := time.Since(t.began)
	t.logf("%s: %s in %s", t.store, t.load, took.Round(time.Second))
	t.logf("%s: faults %s", t.store, formatCounts(i.done))
	t.logf("%s: hit %s", t.store, formatHits(i.hits))
	if err = errors.Join(err, i.checkMissing(), t.lines.checkNames()); err != nil {
		return err
	}
	return t.roster.awaitReady(ctx)
}

// saveUnanswered adds the calls that an API server did not answer to the faults: those about a request, and those about the lease, which
// all requests depend on.
func (t *trial) saveUnanswered() error {
	for _, call := range t.lines.listUnanswered() {
		f := ledger.Fault{
			Kind: string(schedule.NoAnswer), From: call.From, Until: call.Until, Victims: []string{cmp.Or(call.Client, ledger.Everyone)},
		}
		switch call.Resource {
		case requests:
			f.Request = call.Object
		case leases:
		default:
			continue
		}
		if err := t.faults.Append(f); err != nil {
			return err
		}
	}
	return nil
}

// scheduleOptions returns the options for the faults that the store can have.
func (t *trial) scheduleOptions() schedule.Options {
	if t.store == system.Kubernetes {
		return schedule.Options{Seed: t.seed, Kills: t.kills, Leaders: true, Without: schedule.OfDatabase()}
	}
	if t.standby != system.NoStandby {
		without := slices.Concat(schedule.OfAPIServer(), schedule.OfDatabase(), schedule.OfStore())
		return schedule.Options{Seed: t.seed, Kills: t.kills, Without: without, Failovers: t.failovers}
	}
	return schedule.Options{Seed: t.seed, Kills: t.kills, Without: schedule.OfAPIServer()}
}

func (t *trial) loadTime() time.Duration { return max(t.duration/3, t.duration-reserve) }

// loadProgress returns how much of the load is done: 1 when it may end, and more while faults still need it.
func (t *trial) loadProgress() float64 {
	if t.requests > 0 {
		return float64(t.load.Begun()) / float64(t.requests)
	}
	return float64(time.Since(t.began)) / float64(t.loadTime())
}

// reportProgress prints the progress of the run from time to time.
func (t *trial) reportProgress(ctx context.Context) {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.logf("%s: %3.0f %%, %s", t.store, 100*t.loadProgress(), t.load)
		}
	}
}

// awaitQuiet returns when nothing is due any more, or the quiet time has passed: then the judge reports what is left.
func (t *trial) awaitQuiet(ctx context.Context) error {
	began := time.Now()
	open := -1
	for ctx.Err() == nil && time.Since(began) < t.quiet {
		var err error
		if open, err = t.witness.Open(ctx); err == nil && open == 0 {
			break
		}
		sleep(ctx, 500*time.Millisecond)
	}
	t.ended = time.Now()
	t.logf("%s: quiet after %s, %d requests open", t.store, time.Since(began).Round(time.Second), open)
	return ctx.Err()
}

// loadEvidence reads the ledgers.
func (t *trial) loadEvidence() (*judge.Evidence, error) {
	e, err := judge.Load(t.dir)
	if err != nil {
		return nil, err
	}
	e.CodeKills = len(schedule.CodeKills(t.codeKills, t.store == system.Kubernetes))
	e.End, e.Kubernetes = t.ended, t.store == system.Kubernetes
	e.Times = judge.Times{Attempt: webhookTimeout, Record: request.RecordTimeout, Fresh: request.ClaimFresh}
	return e, nil
}

// printVerdict prints whether an invariant holds, and its violations.
func printVerdict(out io.Writer, v *judge.Verdict) {
	result := "VIOLATED"
	switch {
	case v.OK():
		result = "ok"
	case v.Skipped():
		result = "skipped"
	}
	fmt.Fprintf(out, "  %-4s %-8s %8d  %s", v.Name, result, v.Looked, v.Holds)
	if v.Note != "" {
		fmt.Fprintf(out, " (%s)", v.Note)
	}
	fmt.Fprintln(out)
	if v.Count > 0 {
		fmt.Fprintf(out, "       %d violations:\n       %s\n", v.Count, strings.Join(v.Violations, "\n       "))
	}
}

func formatCounts(done map[schedule.Kind]int) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(done)) {
		all = append(all, fmt.Sprintf("%s %d", kind, done[kind]))
	}
	return strings.Join(all, ", ")
}
