package main

import (
	"context"
	"fmt"
	"time"

	"github.com/phoneproof/phoneproof/test/system"
)

// memory is what processes hold that have nothing to do, and one that has as many objects as there may be.
func memory(ctx context.Context, b *bench) error {
	err := b.with(ctx, system.Options{Store: system.PostgreSQL}, func(x *site) error {
		return b.holds(ctx, "memory, PostgreSQL, idle", x)
	})
	if err != nil {
		return err
	}
	return b.with(ctx, system.Options{Store: system.Kubernetes}, func(x *site) error {
		if err := b.holds(ctx, "memory, Kubernetes, idle", x); err != nil {
			return err
		}
		if _, err := x.begin(ctx, b.pending); err != nil {
			return err
		}
		return b.holds(ctx, fmt.Sprintf("memory, Kubernetes, %d pending", b.pending), x)
	})
}

// holds looks at the memory of a replica, once a second.
func (b *bench) holds(ctx context.Context, figure string, x *site) error {
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
	b.add(row{figure: figure, unit: "MiB", ours: found})
	return nil
}
