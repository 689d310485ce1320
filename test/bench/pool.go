package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/phoneproof/phoneproof/test/system"
)

const (
	// pools is the number of pools, each in a namespace of its own, and poolReplicas that of the processes of each.
	pools        = 10
	poolReplicas = 2
	// memberAim is the most memory of a further idle project in a pool's process, and poolsAim that of all processes, in MiB.
	memberAim = 3
	poolsAim  = 4096
)

// measurePools measures processes at rest that serve the projects of a namespace together, with the Kubernetes store: of the released
// program, unless another one was chosen.
func measurePools(ctx context.Context, b *bench) (err error) {
	program := b.program
	if b.built {
		if program, err = system.BuildRelease(ctx); err != nil {
			return err
		}
	}
	x, err := system.Start(ctx, system.Options{
		Store: system.Kubernetes, Program: program, Dir: b.dir, Environment: []string{"GOMEMLIMIT=" + podMemory},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Stop()) }()
	processes, err := b.startPools(ctx, x, b.pooled/pools)
	if err != nil {
		return err
	}
	alone, err := x.NewProject(ctx, "alone")
	if err != nil {
		return err
	}
	one, err := alone.StartPool()
	if err != nil {
		return err
	}
	if err := errors.Join(one.AwaitReady(ctx), sleepFor(ctx, idleTime)); err != nil {
		return err
	}
	before, err := countWrites(ctx, x.Plane.Config)
	if err != nil {
		return err
	}
	if err := sleepFor(ctx, restTime); err != nil {
		return err
	}
	after, err := countWrites(ctx, x.Plane.Config)
	if err != nil {
		return err
	}
	single, err := one.Memory()
	if err != nil {
		return err
	}
	var all float64
	var further series
	for _, p := range processes {
		held, err := p.Memory()
		if err != nil {
			return err
		}
		all += mebibytes(held.Resident)
		further = append(further, mebibytes(held.Resident-single.Resident)/float64(len(p.APIs)-1))
	}
	name := fmt.Sprintf("%d projects in %d pools of %d processes", b.pooled, pools, poolReplicas)
	b.addRow(row{figure: name + ", resident in all", unit: "MiB", ours: series{all}, aim: atMost(poolsAim)})
	b.addRow(row{figure: "pool of one project, resident", unit: "MiB", ours: series{mebibytes(single.Resident)}})
	b.addRow(row{figure: name + ", each further project", unit: "MiB", ours: further, aim: atMost(memberAim)})
	b.addRow(row{
		figure: name + ", API writes at rest but those of leases", unit: "1/min",
		ours: series{(after - before) / restTime.Minutes()}, aim: atMost(0),
	})
	return nil
}

// startPools starts the processes of all pools, with that many projects in each, and waits until they are ready.
func (b *bench) startPools(ctx context.Context, x *system.System, members int) ([]*system.PoolReplica, error) {
	processes := make([]*system.PoolReplica, pools*poolReplicas)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(startedAtOnce)
	for i := range pools {
		group.Go(func() error {
			first, err := x.NewProject(ctx, fmt.Sprintf("pool-%d", i))
			if err != nil {
				return err
			}
			others, err := first.AddProjects(ctx, members-1)
			if err != nil {
				return err
			}
			for n := range poolReplicas {
				p, err := first.StartPool(others...)
				if err != nil {
					return err
				}
				processes[i*poolReplicas+n] = p
				if err := p.AwaitReady(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return processes, group.Wait()
}
