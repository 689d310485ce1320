package main

import (
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

	"github.com/phoneproof/phoneproof/test/chaos/judge"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
	"github.com/phoneproof/phoneproof/test/system"
)

// reserve is what of a run's time goes into its start and its end.
const reserve = 60 * time.Second

// one runs a store and judges it.
func one(ctx context.Context, o options, store system.Store, out *report) error {
	t := &trial{options: o, store: store, dir: filepath.Join(o.dir, string(store)), out: out}
	t.sayf("%s: seed %d, %d kills; replay with: make chaos STORE=%s SEED=%d KILLS=%d %s",
		store, o.seed, o.kills, store, o.seed, o.kills, t.amount())
	err := errors.Join(t.play(ctx), t.end())
	if err != nil {
		out.add(tally{failed: 1}, "")
		t.sayf("%s: the run broke off: %v; ledgers and logs are in %s", store, err, t.dir)
		return err
	}
	evidence, err := t.evidence()
	if err != nil {
		return err
	}
	var (
		counts tally
		lines  strings.Builder
	)
	fmt.Fprintf(&lines, "%s:\n", store)
	for _, v := range judge.Judge(evidence) {
		counts.add(v)
		printVerdict(&lines, v)
	}
	out.add(counts, lines.String())
	if counts.failed > 0 {
		return fmt.Errorf("%d invariants do not hold; ledgers and logs are in %s", counts.failed, t.dir)
	}
	if o.keep {
		return nil
	}
	return os.RemoveAll(t.dir)
}

// amount is what was asked for, as make takes it.
func (t *trial) amount() string {
	if t.requests > 0 {
		return fmt.Sprintf("REQUESTS=%d", t.requests)
	}
	return fmt.Sprintf("DURATION=%s", t.duration)
}

// play runs the load under faults until everything has come to its end.
func (t *trial) play(ctx context.Context) error {
	if err := t.start(ctx); err != nil {
		return err
	}
	if err := t.populate(ctx); err != nil {
		return err
	}
	faults := schedule.Draw(t.drawing())
	t.began = time.Now()
	t.sayf("%s: %d replicas are ready, %d faults are drawn", t.store, len(t.roster.places), len(faults))
	stop := make(chan struct{})
	loaded := make(chan error, 1)
	loading, unload := context.WithCancel(ctx)
	defer unload()
	go func() { loaded <- t.load.Run(loading, stop) }() // ends when the load does
	i := &injector{trial: t, done: map[schedule.Kind]int{}, hits: map[schedule.Kind]map[string]int{}, missing: map[schedule.Kind][]string{}}
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	go t.report(watching) // ends with watching
	err := i.inject(ctx, faults)
	if err != nil {
		unload() // what could not be injected may not be over
	}
	if t.requests == 0 {
		t.pass(ctx)
		close(stop)
	}
	t.lines.clear()
	t.sink.Calm()
	err = errors.Join(err, <-loaded)
	unwatch()
	took := time.Since(t.began)
	t.sayf("%s: %s in %s", t.store, t.load, took.Round(time.Second))
	t.sayf("%s: faults %s", t.store, list(i.done))
	t.sayf("%s: hit %s", t.store, listHits(i.hits))
	if err = errors.Join(err, i.missed(), t.lines.checkNames()); err != nil {
		return err
	}
	return errors.Join(t.roster.ready(ctx), t.settle(ctx), t.collect(ctx))
}

// drawing says which faults to draw: those that the store can have.
func (t *trial) drawing() schedule.Options {
	if t.store == system.Kubernetes {
		return schedule.Options{Seed: t.seed, Kills: t.kills, Leaders: true, Without: schedule.OfDatabase()}
	}
	return schedule.Options{Seed: t.seed, Kills: t.kills, Without: schedule.OfAPIServer()}
}

// pass returns when the time of the load is over.
func (t *trial) pass(ctx context.Context) { sleep(ctx, time.Until(t.began.Add(t.loadTime()))) }

func (t *trial) loadTime() time.Duration { return max(t.duration/3, t.duration-reserve) }

// progress is how much of the load is done, from 0 to 1.
func (t *trial) progress() float64 {
	if t.requests > 0 {
		return float64(t.load.Begun()) / float64(t.requests)
	}
	return float64(time.Since(t.began)) / float64(t.loadTime())
}

// report says from time to time how far the run is.
func (t *trial) report(ctx context.Context) {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.sayf("%s: %3.0f %%, %s", t.store, 100*t.progress(), t.load)
		}
	}
}

// settle returns when nothing is due any more, or the quiet time is over: then the judge says what is left.
func (t *trial) settle(ctx context.Context) error {
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
	t.sayf("%s: quiet after %s, %d requests open", t.store, time.Since(began).Round(time.Second), open)
	return ctx.Err()
}

// printVerdict prints whether an invariant holds, and what violates it.
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

func list(done map[schedule.Kind]int) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(done)) {
		all = append(all, fmt.Sprintf("%s %d", kind, done[kind]))
	}
	return strings.Join(all, ", ")
}
