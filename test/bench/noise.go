package main

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

// The rates at which a neighbour's requests come.
const (
	calmStatus = 100
	calmInit   = 20
)

// pair is two projects, one of which makes noise.
type pair struct {
	calm, noisy *shop
	// known and flood are requests of each that are verified.
	known, flood []started
}

// measureNoise measures a project while another one's clients ask as fast as they are answered, by turns: both in a pool's process, each
// in a process of its own, and in the pool without the noise.
func measureNoise(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.Kubernetes}, func(x *site) error {
		pooled, err := x.startPooledPair(ctx)
		if err != nil {
			return err
		}
		apart, err := x.startPairApart(ctx)
		if err != nil {
			return err
		}
		found, err := b.measureByTurns(ctx, b.noiseSide(pooled, true), b.noiseSide(apart, true), b.noiseSide(pooled, false))
		if err != nil {
			return err
		}
		for _, key := range []string{"status p50", "status p99", "init p50", "init p99"} {
			b.addRow(row{
				figure: "beside a noisy project of the pool, " + key, unit: "ms", ours: found[0].valuesOf(key),
				limit: found[1].valuesOf(key), limitIs: "a process each", aim: atMost(1.2),
			})
			b.addRow(row{
				figure: "beside a noisy project of the pool, " + key, unit: "ms", ours: found[0].valuesOf(key),
				limit: found[2].valuesOf(key), limitIs: "no noise",
			})
		}
		b.addRow(row{
			figure: "the noisy project's own rate", unit: "1/s", ours: found[0].valuesOf("noise"),
			limit: found[1].valuesOf("noise"), limitIs: "a process each",
		})
		return nil
	})
}

// startPooledPair serves two projects in one process.
func (x *site) startPooledPair(ctx context.Context) (*pair, error) {
	first, err := x.system.NewProject(ctx, "pooled")
	if err != nil {
		return nil, err
	}
	others, err := first.AddProjects(ctx, 1)
	if err != nil {
		return nil, err
	}
	process, err := first.StartPool(others...)
	if err != nil {
		return nil, err
	}
	if err := process.AwaitReady(ctx); err != nil {
		return nil, err
	}
	serve := func(name string) *shop {
		return &shop{Project: first, replica: process.Replica, address: process.APIs[name]}
	}
	return newPair(ctx, serve(system.ProjectName), serve(others[0]))
}

// startPairApart serves two projects in a process each.
func (x *site) startPairApart(ctx context.Context) (*pair, error) {
	var shops []*shop
	for _, namespace := range []string{"calm", "noisy"} {
		project, err := x.system.NewProject(ctx, namespace)
		if err != nil {
			return nil, err
		}
		one, err := openShop(ctx, project)
		if err != nil {
			return nil, err
		}
		shops = append(shops, one)
	}
	return newPair(ctx, shops[0], shops[1])
}

func newPair(ctx context.Context, calm, noisy *shop) (*pair, error) {
	p := &pair{calm: calm, noisy: noisy}
	var err, err2 error
	p.known, err = calm.verifyNumbers(ctx, statusRequests)
	p.flood, err2 = noisy.verifyNumbers(ctx, statusRequests)
	return p, errors.Join(err, err2)
}

// noiseSide returns a side that measures the calm project.
func (b *bench) noiseSide(p *pair, noise bool) side {
	return func(ctx context.Context, round int) (sample, error) {
		group, ctx := errgroup.WithContext(ctx)
		var flood load.Result
		if noise {
			group.Go(func() (err error) {
				flood, err = load.Closed(ctx, clients, b.length, load.Expect(p.noisy.address, p.noisy.renderStatus(p.flood)))
				return err
			})
		}
		results, err := b.runStreams(ctx, round, []stream{
			{keyStatus, calmStatus, load.Expect(p.calm.address, p.calm.renderStatus(p.known))},
			{keyInit, calmInit, load.Expect(p.calm.address, p.calm.renderInit)},
		})
		if err := errors.Join(err, group.Wait()); err != nil {
			return nil, err
		}
		found := sample{}
		if noise {
			found["noise"] = flood.PerSecond()
		}
		for _, key := range []string{keyStatus, keyInit} {
			found[key+" p50"] = toMilliseconds(results[key].Latency.Quantile(0.5))
			found[key+" p99"] = toMilliseconds(results[key].Latency.Quantile(0.99))
		}
		return found, nil
	}
}
