package main

import (
	"context"
	"fmt"

	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

// inbound compares messages of WhatsApp that were acknowledged, each with its verification stored, with rows committed.
// Their replies to the users are sent; events are not, they have a figure of their own.
func inbound(ctx context.Context, b *bench) error {
	return b.with(ctx, system.Options{Store: system.PostgreSQL, Project: withoutEvents}, func(x *site) error {
		supply := int(1500 * b.length.Seconds())
		ours := func(ctx context.Context, _ int) (sample, error) {
			all, err := x.begin(ctx, supply)
			if err != nil {
				return nil, err
			}
			messages := x.messages(all)
			b.loading()
			r, err := load.Closed(ctx, clients, b.length, load.Expect(x.replica.API, messages))
			if err != nil {
				return nil, err
			}
			rate := r.PerSecond()
			supply = max(supply, int(1.3*rate*b.length.Seconds())) // enough, or it ends early
			return sample{"rate": rate}, x.proven(ctx, all[:r.Latency.Count()])
		}
		limit := func(ctx context.Context, _ int) (sample, error) {
			rate, _, err := b.pgbench(ctx, x.system.Database, 0)
			return sample{"rate": rate}, err
		}
		found, err := b.turns(ctx, ours, limit)
		if err != nil {
			return err
		}
		b.add(row{
			figure: "inbound WhatsApp message, PostgreSQL", unit: "1/s", ours: found[0].of("rate"), limit: found[1].of("rate"),
			limitIs: "pgbench commits", aim: atLeast(0.45),
		})
		return b.profile(ctx, "inbound-postgresql", x.replica, ours)
	})
}

// proven checks that what was acknowledged is stored: an answer to a message that changes nothing is 200 too.
func (x *site) proven(ctx context.Context, all []begun) error {
	for i := 0; i < len(all); i += max(len(all)/20, 1) {
		phase, err := x.Status(ctx, x.replica, all[i].ID)
		if err != nil {
			return err
		}
		if phase != "VERIFIED" {
			return fmt.Errorf("request %s was acknowledged and is %s", all[i].ID, phase)
		}
	}
	return nil
}
