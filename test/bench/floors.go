package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/phoneproof/phoneproof/test/bench/floor"
	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/pgserver"
	"github.com/phoneproof/phoneproof/test/ports"
)

// modeFloor is the argument that makes this program the floor server, in a process of its own as PhoneProof's is.
const modeFloor = "floor"

// What is compared beside each other is named by these parts.
const (
	ours   = "/by=phoneproof"
	floors = "/by=floor"
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

	server   *exec.Cmd
	database *pgserver.Server
}

// withFloor runs measure beside a floor server that takes the same calls as the site, and posts events to a receiver, if there is one.
func withFloor(ctx context.Context, x *site, receiver string, measure func(*floorSite) error) error {
	f, err := startFloor(ctx, x, receiver)
	if err != nil {
		return fmt.Errorf("start floor server: %w", err)
	}
	return errors.Join(measure(f), f.stop())
}

func startFloor(ctx context.Context, x *site, receiver string) (_ *floorSite, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	reserved, err := ports.Reserve() // released when this process ends
	if err != nil {
		return nil, err
	}
	f := &floorSite{shop: &shop{Project: x.Project, address: reserved.Address()}}
	if f.database, err = pgserver.Start(ctx, pgserver.Options{}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.stop())
		}
	}()
	options, err := json.Marshal(floor.Options{
		Address: f.address, Database: f.database.URI("postgres"), Key: x.Key, AppSecret: x.AppSecret, WebhookSecret: x.WebhookSecret,
		Graph: x.sink.graph, Receiver: receiver,
	})
	if err != nil {
		return nil, err
	}
	f.server = exec.CommandContext(context.WithoutCancel(ctx), program, modeFloor)
	f.server.Stdin, f.server.Stderr = bytes.NewReader(options), os.Stderr
	f.server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := f.server.Start(); err != nil {
		return nil, err
	}
	return f, waitFor(ctx, "the floor server", func(ctx context.Context) (bool, error) {
		conn, err := load.Dial(ctx, f.address)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return true, conn.Close()
	})
}

func (f *floorSite) stop() error {
	if f.server != nil && f.server.Process != nil {
		_ = f.server.Process.Kill() // it may have ended
		_ = f.server.Wait()         // it was killed
	}
	return f.database.Stop()
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
