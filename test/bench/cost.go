package main

import (
	"context"
	"time"

	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/cputime"
)

// The keys of what a request costs, in microseconds of CPU time.
const (
	keyServer = "server"
	keyStore  = "store" // PostgreSQL, or the API server with etcd
	keyBoth   = "both"
)

// cost is the CPU time of a server and of its store.
type cost struct{ server, store time.Duration }

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

// readCost returns what a process without a store has used so far.
func (c *child) readCost() (cost, error) {
	server, err := cputime.OfProcess(c.cmd.Process.Pid)
	return cost{server: server}, err
}

// perItemSince returns the CPU time since before, divided by n, in microseconds.
func (c cost) perItemSince(before cost, n int64) (server, store float64) {
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(max(n, 1)) }
	return each(c.server - before.server), each(c.store - before.store)
}

// payer is what answers requests, and knows what that costs.
type payer interface{ readCost() (cost, error) }

// measureMaximum returns how many requests a second are answered with all clients sending, and the CPU time of each.
func (b *bench) measureMaximum(ctx context.Context, of payer, client load.Client) (sample, load.Result, error) {
	before, err := of.readCost()
	if err != nil {
		return nil, load.Result{}, err
	}
	b.startProfile()
	r, err := load.Closed(ctx, clients, b.length, client)
	if err != nil {
		return nil, r, err
	}
	after, err := of.readCost()
	server, store := after.perItemSince(before, r.Latency.Count())
	return sample{"rate": r.PerSecond(), keyServer: server, keyStore: store, keyBoth: server + store}, r, err
}

// addCostRows adds the rows of what each request cost. limitIs names the limit of the server's part; empty without one.
func (b *bench) addCostRows(figure string, found, limit samples, limitIs string) {
	server := row{figure: figure + ", CPU for each, the server", unit: "µs", ours: found.valuesOf(keyServer)}
	if limitIs != "" {
		server.limit, server.limitIs = limit.valuesOf(keyServer), limitIs
	}
	b.addRow(server)
	b.addRow(row{figure: figure + ", CPU for each, the store", unit: "µs", ours: found.valuesOf(keyStore)})
}

// addFloorRows adds the rows of what each request cost beside the floor server: the server's part, the database's, and both.
func (b *bench) addFloorRows(figure string, found, floor samples, both *aim) {
	for _, part := range []struct {
		name, key string
		aim       *aim
	}{{"the server", keyServer, nil}, {"the database", keyStore, nil}, {"both", keyBoth, both}} {
		b.addRow(row{
			figure: figure + ", CPU for each, " + part.name, unit: "µs", ours: found.valuesOf(part.key), limit: floor.valuesOf(part.key),
			limitIs: "floor server", aim: part.aim,
		})
	}
}
