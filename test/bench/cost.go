package main

import (
	"context"
	"time"

	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/cputime"
)

// cost is the CPU time of a server and of its store.
type cost struct{ server, store time.Duration }

// payer is what answers requests, and knows what that costs.
type payer interface{ readCost() (cost, error) }

// readCost returns what the replica and its store have used so far.
func (x *site) readCost() (cost, error) {
	server, err := x.replica.CPU()
	if err != nil {
		return cost{}, err
	}
	var store time.Duration
	if x.system.Plane != nil {
		store, err = x.system.Plane.CPU()
	} else {
		store, err = x.system.Database.CPU()
	}
	return cost{server, store}, err
}

// readCost returns what the floor server and its database have used so far.
func (f *floorSite) readCost() (cost, error) {
	server, err := cputime.OfProcess(f.server.Process.Pid)
	if err != nil {
		return cost{}, err
	}
	store, err := f.database.CPU()
	return cost{server, store}, err
}

// addTo adds what each of n items cost since before.
func (c cost) addTo(found sample, before cost, n int64) {
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(max(n, 1)) }
	found[unitServer], found[unitStore] = each(c.server-before.server), each(c.store-before.store)
	found[unitBoth] = found[unitServer] + found[unitStore]
}

// measureMaximum measures how many requests a second are answered with all clients sending, and the CPU time of each.
func (b *bench) measureMaximum(ctx context.Context, of payer, client load.Client) (sample, load.Result, error) {
	before, err := of.readCost()
	if err != nil {
		return nil, load.Result{}, err
	}
	r, err := load.Closed(ctx, clients, b.length, client)
	if err != nil {
		return nil, r, err
	}
	after, err := of.readCost()
	found := sample{unitRate: r.PerSecond()}
	after.addTo(found, before, r.Latency.Count())
	return found, r, err
}

// maximumSide returns a side that sends requests to a server.
func (b *bench) maximumSide(name string, s *shop, of payer, render renderer) side {
	return side{name, func(ctx context.Context, _ int) (sample, error) {
		found, _, err := b.measureMaximum(ctx, of, load.Expect(s.address, render))
		return found, err
	}}
}
