package main

import (
	"context"
	"errors"

	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

// asked is how many requests are asked for in turn.
const asked = 200

// status compares answers about final and pending requests, of both stores, with answers that are constant.
func status(ctx context.Context, b *bench) error {
	return b.with(ctx, system.Options{Store: system.Kubernetes}, func(objects *site) error {
		return b.with(ctx, system.Options{Store: system.PostgreSQL}, func(database *site) error {
			return b.statusOf(ctx, objects, database)
		})
	})
}

// question is one kind of request that is asked for.
type question struct {
	figure, profile string
	site            *site
	ask             side
	aim             *aim
}

func (b *bench) statusOf(ctx context.Context, objects, database *site) error {
	var all []question
	for _, of := range []struct {
		name string
		site *site
	}{{"Kubernetes", objects}, {"PostgreSQL", database}} {
		final, err := of.site.verified(ctx, asked)
		pending, err2 := of.site.begin(ctx, asked)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if _, err := of.site.sink.all(ctx, final); err != nil {
			return err
		}
		all = append(all,
			question{"status, final, " + of.name, "status-final-", of.site, b.ask(of.site, final), atLeast(0.7)},
			question{"status, pending, " + of.name, "status-pending-", of.site, b.ask(of.site, pending), nil})
	}
	constant := load.Request("GET", "/api/verify/status?id="+bareAnswer[14:40], nil, nil)
	sides := []side{func(ctx context.Context, _ int) (sample, error) {
		rate, err := b.most(ctx, b.bare.address, func(load.Turn) ([]byte, error) { return constant, nil })
		return sample{"rate": rate}, err
	}}
	for _, q := range all {
		sides = append(sides, q.ask)
	}
	found, err := b.turns(ctx, sides...)
	if err != nil {
		return err
	}
	for i, q := range all {
		b.add(row{
			figure: q.figure, unit: "1/s", ours: found[i+1].of("rate"), limit: found[0].of("rate"), limitIs: "bare handler", aim: q.aim,
		})
	}
	for _, q := range all {
		store := "kubernetes"
		if q.site == database {
			store = "postgresql"
		}
		if err := b.profile(ctx, q.profile+store, q.site.replica, q.ask); err != nil {
			return err
		}
	}
	return nil
}

// ask asks for requests as often as can be.
func (b *bench) ask(x *site, of []begun) side {
	request := x.status(of)
	return func(ctx context.Context, _ int) (sample, error) {
		rate, err := b.most(ctx, x.replica.API, request)
		return sample{"rate": rate}, err
	}
}
