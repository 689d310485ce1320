package main

import (
	"context"
	"fmt"
	"time"

	"github.com/phoneproof/phoneproof/test/system"
)

// idleTime is when the memory of an idle process is measured: long after its start has ended.
const idleTime = time.Minute

// podMemory is GOMEMLIMIT of a pod with the default limit of 256Mi.
const podMemory = "230MiB"

// idleAim is the most resident memory of an idle process, in MiB.
const idleAim = 30

// measureIdleMemory measures processes at rest with each store: of the released program, unless another one was chosen.
func measureIdleMemory(ctx context.Context, b *bench) error {
	program := b.program
	if b.built {
		var err error
		if program, err = system.BuildRelease(ctx); err != nil {
			return err
		}
	}
	for _, store := range []system.Store{system.Memory, system.PostgreSQL, system.Kubernetes} {
		options := system.Options{Store: store, Program: program, Environment: []string{"GOMEMLIMIT=" + podMemory}}
		if err := b.withSite(ctx, options, func(x *site) error { return b.measureIdle(ctx, store, x) }); err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
	}
	return nil
}

// measureIdle measures the memory of processes at rest, one started for each round.
func (b *bench) measureIdle(ctx context.Context, store system.Store, x *site) error {
	var total, own, files series
	for round := range b.rounds {
		if round > 0 {
			x.replica.Kill()
			var err error
			if x.shop, err = openShop(ctx, x.Project); err != nil {
				return err
			}
		}
		if err := sleepFor(ctx, idleTime); err != nil {
			return err
		}
		held, err := x.replica.Memory()
		if err != nil {
			return err
		}
		total, own, files = append(total, mebibytes(held.Resident)), append(own, mebibytes(held.Own)), append(files, mebibytes(held.Files))
	}
	name := fmt.Sprintf("at rest, %s, ", store)
	b.addRow(row{figure: name + "resident memory", unit: "MiB", ours: total, aim: atMost(idleAim)})
	b.addRow(row{figure: name + "the process's own", unit: "MiB", ours: own})
	b.addRow(row{figure: name + "pages of the program", unit: "MiB", ours: files})
	return nil
}

// mebibytes returns bytes in MiB.
func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
