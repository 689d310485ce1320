package main

import (
	"context"
	"fmt"
	"time"

	"github.com/phoneproof/phoneproof/test/system"
)

const (
	// idleTime is when the memory of an idle process is measured: long after its start has ended.
	idleTime = time.Minute
	// podMemory is GOMEMLIMIT of a pod with the default limit of 256Mi.
	podMemory = "230MiB"
)

// measureMemory measures processes at rest with each store, of the released program unless another one was chosen, and one
// with as many pending objects as are supported.
func measureMemory(ctx context.Context, b *bench) error {
	released := b.program
	if b.built {
		var err error
		if released, err = system.BuildRelease(ctx); err != nil {
			return err
		}
	}
	for _, store := range []system.Store{system.Memory, system.PostgreSQL, system.Kubernetes} {
		options := system.Options{Store: store, Program: released, Environment: []string{"GOMEMLIMIT=" + podMemory}}
		if err := b.withSite(ctx, options, func(x *site) error { return b.measureIdle(ctx, store, x) }); err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
	}
	return b.withSite(ctx, system.Options{Store: system.Kubernetes}, func(x *site) error {
		if _, err := x.startVerifications(ctx, b.pending); err != nil {
			return err
		}
		return b.measureMemoryOf(ctx, fmt.Sprintf("Memory/store=kubernetes/pending=%d", b.pending), x)
	})
}

// measureIdle measures processes at rest, one started for each round.
func (b *bench) measureIdle(ctx context.Context, store system.Store, x *site) error {
	return b.measureByTurns(ctx, side{fmt.Sprintf("Memory/store=%s/at=rest", store), func(ctx context.Context, _ int) (sample, error) {
		x.replica.Kill()
		var err error
		if x.shop, err = openShop(ctx, x.Project); err != nil {
			return nil, err
		}
		return x.readMemory(ctx, idleTime)
	}})
}

// measureMemoryOf measures a process once a second, as often as there are rounds.
func (b *bench) measureMemoryOf(ctx context.Context, name string, x *site) error {
	return b.measureByTurns(ctx, side{name, func(ctx context.Context, _ int) (sample, error) { return x.readMemory(ctx, time.Second) }})
}

// readMemory returns the resident memory of the replica after a pause: all of it, its own, and pages of the program.
func (x *site) readMemory(ctx context.Context, pause time.Duration) (sample, error) {
	if err := sleepFor(ctx, pause); err != nil {
		return nil, err
	}
	held, err := x.replica.Memory()
	return sample{"resident-B": float64(held.Resident), "own-B": float64(held.Own), "program-B": float64(held.Files)}, err
}
