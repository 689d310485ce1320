package main

import (
	"context"
	"fmt"
	"time"

	"github.com/phoneproof/phoneproof/test/system"
)

// measureMemory measures the memory of idle processes, and of one with as many pending objects as are supported.
func measureMemory(ctx context.Context, b *bench) error {
	err := b.withSite(ctx, system.Options{Store: system.PostgreSQL}, func(x *site) error {
		return b.measureRSS(ctx, "memory, PostgreSQL, idle", x)
	})
	if err != nil {
		return err
	}
	return b.withSite(ctx, system.Options{Store: system.Kubernetes}, func(x *site) error {
		if err := b.measureRSS(ctx, "memory, Kubernetes, idle", x); err != nil {
			return err
		}
		if _, err := x.startVerifications(ctx, b.pending); err != nil {
			return err
		}
		return b.measureRSS(ctx, fmt.Sprintf("memory, Kubernetes, %d pending", b.pending), x)
	})
}

// measureRSS reads the memory of a replica once a second, as often as there are rounds.
func (b *bench) measureRSS(ctx context.Context, figure string, x *site) error {
	var found series
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for range b.rounds {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		held, err := x.replica.RSS()
		if err != nil {
			return err
		}
		found = append(found, float64(held)/(1<<20))
	}
	b.addRow(row{figure: figure, unit: "MiB", ours: found})
	return nil
}
