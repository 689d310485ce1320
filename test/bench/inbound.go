package main

import (
	"context"
	"fmt"

	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

// measureInbound compares acknowledged WhatsApp messages, whose verifications are stored, with committed rows. Replies
// to users are sent; events are not, they have a figure of their own.
func measureInbound(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.PostgreSQL, Project: withoutEvents}, func(x *site) error {
		supply := int(1500 * b.length.Seconds())
		ours := func(ctx context.Context, _ int) (sample, error) {
			all, err := x.startVerifications(ctx, supply)
			if err != nil {
				return nil, err
			}
			messages := x.renderMessages(all)
			found, r, err := b.measureMaximum(ctx, x, load.Expect(x.replica.API, messages))
			if err != nil {
				return nil, err
			}
			supply = max(supply, int(1.3*found["rate"]*b.length.Seconds())) // otherwise the run ends early
			return found, x.checkVerified(ctx, all[:r.Latency.Count()])
		}
		limit := func(ctx context.Context, _ int) (sample, error) {
			rate, _, err := b.runPgbench(ctx, x.system.Database, 0)
			return sample{"rate": rate}, err
		}
		found, err := b.measureByTurns(ctx, ours, limit)
		if err != nil {
			return err
		}
		b.addRow(row{
			figure: "inbound WhatsApp message, PostgreSQL", unit: "1/s", ours: found[0].valuesOf("rate"), limit: found[1].valuesOf("rate"),
			limitIs: "pgbench commits", aim: atLeast(0.45),
		})
		b.addCostRows("inbound WhatsApp message, PostgreSQL", found[0], nil, "")
		return b.takeProfile(ctx, "inbound-postgresql", x.replica, ours)
	})
}

// checkVerified checks that acknowledged verifications are stored: a message that changes nothing is answered 200 too.
func (x *site) checkVerified(ctx context.Context, all []started) error {
	for i := 0; i < len(all); i += max(len(all)/20, 1) {
		phase, err := x.Status(ctx, x.replica, all[i].ID)
		if err != nil {
			return err
		}
		if phase != "VERIFIED" {
			return fmt.Errorf("request %s was acknowledged but is %s", all[i].ID, phase)
		}
	}
	return nil
}
