package main

import (
	"context"
	"fmt"

	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

// measureInbound measures acknowledged WhatsApp messages, whose verifications are stored. Replies to users are sent;
// events are not, they have a figure of their own.
func measureInbound(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.PostgreSQL, Project: withoutEvents}, func(x *site) error {
		return withFloor(ctx, x, "", func(f *floorSite) error {
			verified := 0
			return b.measureByTurns(ctx,
				b.messageSide("Inbound/store=postgresql"+ours, x.shop, x, func(sent []started) error { return x.checkVerified(ctx, sent) }),
				b.messageSide("Inbound/store=postgresql"+floors, f.shop, f, func(sent []started) error {
					verified += len(sent)
					return f.checkVerified(ctx, verified)
				}))
		})
	})
}

// messageSide returns a side that measures messages until the 200 after their verifications are stored, and then checks them.
func (b *bench) messageSide(name string, s *shop, of payer, check func(sent []started) error) side {
	supply := int(1500 * b.length.Seconds())
	return side{name, func(ctx context.Context, _ int) (sample, error) {
		all, err := s.startVerifications(ctx, supply)
		if err != nil {
			return nil, err
		}
		found, r, err := b.measureMaximum(ctx, of, load.Expect(s.address, s.renderMessages(all)))
		if err != nil {
			return nil, err
		}
		supply = max(supply, int(1.3*found[unitRate]*b.length.Seconds())) // otherwise the run ends early
		return found, check(all[:r.Latency.Count()])
	}}
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
