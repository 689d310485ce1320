package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/phoneproof/phoneproof/test/bench/floor"
	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/pgserver"
	"github.com/phoneproof/phoneproof/test/ports"
)

// serveFloor runs the floor server with the options on stdin.
func serveFloor(ctx context.Context) error {
	var o floor.Options
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return fmt.Errorf("decode options: %w", err)
	}
	return floor.Run(ctx, o)
}

// floorSite is the floor server with a database of its own, which takes the calls of a site.
type floorSite struct {
	*shop

	server   *child
	database *pgserver.Server
}

// withFloor runs measure beside a floor server that takes the same calls as the site, and posts events to a receiver, if there is one.
func (b *bench) withFloor(ctx context.Context, x *site, receiver string, measure func(*floorSite) error) error {
	f, err := b.startFloor(ctx, x, receiver)
	if err != nil {
		return fmt.Errorf("start floor server: %w", err)
	}
	return errors.Join(measure(f), f.stop())
}

func (b *bench) startFloor(ctx context.Context, x *site, receiver string) (*floorSite, error) {
	database, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		return nil, err
	}
	f := &floorSite{database: database}
	reserved, err := ports.Reserve() // released when this process ends
	if err != nil {
		return nil, errors.Join(err, database.Stop())
	}
	options, err := json.Marshal(floor.Options{
		Address: reserved.Address(), Database: database.URI("postgres"), Key: x.Key, AppSecret: x.AppSecret,
		WebhookSecret: x.WebhookSecret, Graph: "http://" + b.bare.address, Receiver: receiver,
	})
	if err != nil {
		return nil, errors.Join(err, database.Stop())
	}
	cmd, err := newCommand(context.WithoutCancel(ctx), modeFloor)
	if err != nil {
		return nil, errors.Join(err, database.Stop())
	}
	cmd.Stdin = bytes.NewReader(options)
	if f.server, err = startListening(ctx, cmd, reserved.Address()); err != nil {
		return nil, errors.Join(err, database.Stop())
	}
	f.shop = &shop{Project: x.Project, address: f.server.address}
	return f, nil
}

func (f *floorSite) stop() error {
	f.server.kill()
	return f.database.Stop()
}

// readCost implements payer.
func (f *floorSite) readCost() (cost, error) {
	used, err := f.server.readCost()
	if err != nil {
		return cost{}, err
	}
	used.store, err = f.database.CPU()
	return used, err
}

// checkVerified checks that n messages were taken.
func (f *floorSite) checkVerified(ctx context.Context, n int) error {
	verified, err := queryCount(ctx, f.database, "SELECT count(*) FROM floor_requests WHERE verified_at IS NOT NULL")
	if err == nil && verified < n {
		err = fmt.Errorf("the floor server acknowledged %d messages and verified %d numbers", n, verified)
	}
	return err
}

// insertFloor stores verified requests whose events are due.
const insertFloor = `INSERT INTO floor_requests (id, phone, code, expires_at, verified_at, due_at)
	SELECT $1 || translate(lpad(i::text, 26 - length($1), '0'), '0123456789', 'abcdefghij'), '+4915112345678', $1 || i::text,
		now() + interval '1 hour', now(), now()
	FROM generate_series(1, $2) AS i`

// deliverEvents is that of a site.
func (f *floorSite) deliverEvents(ctx context.Context, to *sink, n int) (sample, error) {
	return measureDeliveries(ctx, f, to, n, func(prefix string) error {
		return executeSQL(ctx, f.database, insertFloor, prefix, n)
	}, func() (int, error) {
		return queryCount(ctx, f.database, "SELECT count(*) FROM floor_requests WHERE due_at IS NOT NULL")
	})
}

// measureMaximum is bench.measureMaximum for the floor server.
func (f *floorSite) measureMaximum(b *bench, render renderer) side {
	return func(ctx context.Context, _ int) (sample, error) {
		found, _, err := b.measureMaximum(ctx, f, load.Expect(f.address, render))
		return found, err
	}
}

// measureMessages measures messages until the 200 after their verifications are stored.
func (b *bench) measureMessages(ctx context.Context, s *shop, of payer, supply *int) (sample, []started, error) {
	all, err := s.startVerifications(ctx, *supply)
	if err != nil {
		return nil, nil, err
	}
	found, r, err := b.measureMaximum(ctx, of, load.Expect(s.address, s.renderMessages(all)))
	if err != nil {
		return nil, nil, err
	}
	*supply = max(*supply, int(1.3*found["rate"]*b.length.Seconds())) // otherwise the run ends early
	return found, all[:r.Latency.Count()], nil
}
