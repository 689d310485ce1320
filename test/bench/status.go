package main

import (
	"context"
	"errors"

	"github.com/phoneproof/phoneproof/test/system"
)

// statusRequests is the number of requests whose status is queried in turn.
const statusRequests = 200

// measureStatus measures the status operation for final and pending requests in both stores.
func measureStatus(ctx context.Context, b *bench) error {
	err := b.withSite(ctx, system.Options{Store: system.Kubernetes}, func(x *site) error {
		sides, err := b.statusSides(ctx, "/store=kubernetes", x.shop, x, x.sink)
		if err != nil {
			return err
		}
		return b.measureByTurns(ctx, sides...)
	})
	if err != nil {
		return err
	}
	return b.withSite(ctx, system.Options{Store: system.PostgreSQL}, func(x *site) error {
		return withFloor(ctx, x, "", func(f *floorSite) error {
			sides, err := b.statusSides(ctx, "/store=postgresql"+ours, x.shop, x, x.sink)
			beside, err2 := b.statusSides(ctx, "/store=postgresql"+floors, f.shop, f, nil)
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			return b.measureByTurns(ctx, append(sides, beside...)...)
		})
	})
}

// statusSides prepares requests of a server, whose events go to a receiver if there is one.
func (b *bench) statusSides(ctx context.Context, name string, s *shop, of payer, to *sink) ([]side, error) {
	final, err := s.verifyNumbers(ctx, statusRequests)
	pending, err2 := s.startVerifications(ctx, statusRequests)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	if to != nil { // so that their delivery costs nothing meanwhile
		if _, err := to.awaitEvents(ctx, final); err != nil {
			return nil, err
		}
	}
	return []side{
		b.maximumSide("Status/of=final"+name, s, of, s.renderStatus(final)),
		b.maximumSide("Status/of=pending"+name, s, of, s.renderStatus(pending)),
	}, nil
}
