package main

import (
	"context"
	"fmt"

	"github.com/phoneproof/phoneproof/test/system"
)

// measureInbound compares acknowledged WhatsApp messages, whose verifications are stored, with committed rows. Replies
// to users are sent; events are not, they have a figure of their own.
func measureInbound(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.PostgreSQL, Project: withoutEvents}, func(x *site) error {
		return b.withFloor(ctx, x, "", func(f *floorSite) error { return b.compareInbound(ctx, x, f) })
	})
}

func (b *bench) compareInbound(ctx context.Context, x *site, f *floorSite) error {
	supply := int(1500 * b.length.Seconds())
	ours := func(ctx context.Context, _ int) (sample, error) {
		found, sent, err := b.measureMessages(ctx, x.shop, x, &supply)
		if err != nil {
			return nil, err
		}
		return found, x.checkVerified(ctx, sent)
	}
	limit := func(ctx context.Context, _ int) (sample, error) {
		rate, _, err := b.runPgbench(ctx, x.system.Database, 0)
		return sample{"rate": rate}, err
	}
	verified, supplyOfFloor := 0, supply
	floor := func(ctx context.Context, _ int) (sample, error) {
		found, sent, err := b.measureMessages(ctx, f.shop, f, &supplyOfFloor)
		if err != nil {
			return nil, err
		}
		verified += len(sent)
		return found, f.checkVerified(ctx, verified)
	}
	found, err := b.measureByTurns(ctx, ours, limit, floor)
	if err != nil {
		return err
	}
	const figure = "inbound WhatsApp message, PostgreSQL"
	b.addRow(row{
		figure: figure, unit: "1/s", ours: found[0].valuesOf("rate"), limit: found[1].valuesOf("rate"),
		limitIs: "pgbench commits", aim: atLeast(0.45),
	})
	b.addFloorRows(figure, found[0], found[2], atMost(1.6))
	return b.takeProfile(ctx, "inbound-postgresql", x.replica, ours)
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
