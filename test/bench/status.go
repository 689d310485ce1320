package main

import (
	"context"
	"errors"

	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

// statusRequests is the number of requests whose status is queried in turn.
const statusRequests = 200

// measureStatus compares the status operation for final and pending requests in both stores with a handler that returns
// constant JSON.
func measureStatus(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.Kubernetes}, func(objects *site) error {
		return b.withSite(ctx, system.Options{Store: system.PostgreSQL}, func(database *site) error {
			return b.withFloor(ctx, database, "", func(f *floorSite) error { return b.compareStatus(ctx, objects, database, f) })
		})
	})
}

// question is one kind of request whose status is measured.
type question struct {
	figure, profile string
	site            *site
	ask             side
	aim             *aim
	floor           side // nil if the store is none that the floor server has
}

func (b *bench) compareStatus(ctx context.Context, objects, database *site, f *floorSite) error {
	var all []question
	for _, of := range []struct {
		name string
		site *site
	}{{"Kubernetes", objects}, {"PostgreSQL", database}} {
		final, err := of.site.verifyNumbers(ctx, statusRequests)
		pending, err2 := of.site.startVerifications(ctx, statusRequests)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if _, err := of.site.sink.awaitEvents(ctx, final); err != nil {
			return err
		}
		all = append(all,
			question{"status, final, " + of.name, "status-final-", of.site, b.statusSide(of.site, final), atLeast(0.7), nil},
			question{"status, pending, " + of.name, "status-pending-", of.site, b.statusSide(of.site, pending), nil, nil})
	}
	final, err := f.verifyNumbers(ctx, statusRequests)
	pending, err2 := f.startVerifications(ctx, statusRequests)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	all[2].floor, all[3].floor = f.measureMaximum(b, f.renderStatus(final)), f.measureMaximum(b, f.renderStatus(pending))
	constant := load.Request("GET", "/api/verify/status?id="+bareAnswer[14:40], nil, nil)
	sides := []side{func(ctx context.Context, _ int) (sample, error) {
		found, _, err := b.measureMaximum(ctx, b.bare, load.Expect(b.bare.address, func(load.Turn) ([]byte, error) { return constant, nil }))
		return found, err
	}}
	for _, q := range all {
		sides = append(sides, q.ask)
		if q.floor != nil {
			sides = append(sides, q.floor)
		}
	}
	found, err := b.measureByTurns(ctx, sides...)
	if err != nil {
		return err
	}
	bare, next := found[0], 1
	for _, q := range all {
		ours := found[next]
		next++
		b.addRow(row{
			figure: q.figure, unit: "1/s", ours: ours.valuesOf("rate"), limit: bare.valuesOf("rate"), limitIs: "bare handler", aim: q.aim,
		})
		if q.floor == nil {
			b.addCostRows(q.figure, ours, bare, "bare handler")
			continue
		}
		b.addFloorRows(q.figure, ours, found[next], atMost(1.6))
		next++
	}
	for _, q := range all {
		store := "kubernetes"
		if q.site == database {
			store = "postgresql"
		}
		if err := b.takeProfile(ctx, q.profile+store, q.site.replica, q.ask); err != nil {
			return err
		}
	}
	return nil
}

// statusSide returns a side that measures how many status requests a second are answered.
func (b *bench) statusSide(x *site, of []started) side {
	request := x.renderStatus(of)
	return func(ctx context.Context, _ int) (sample, error) {
		found, _, err := b.measureMaximum(ctx, x, load.Expect(x.replica.API, request))
		return found, err
	}
}
