package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/phoneproof/phoneproof/internal/webhook"
	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

// backlog is how many events are due at a receiver that hangs before anything is measured: more than it may hold.
const backlog = 2 * webhook.MaxInFlight

// rates are what clients ask of a process while its receiver hangs, and how much lapses, in a second.
type rates struct{ init, status, inbound, lapses float64 }

// keys are what they wait for.
const (
	keyInit    = "init"
	keyStatus  = "status"
	keyInbound = "inbound"
	keyExpiry  = "expiry"
)

func hangingKubernetes(ctx context.Context, b *bench) error {
	return b.with(ctx, system.Options{Store: system.Kubernetes, Project: patient}, func(x *site) error {
		lapses, err := b.watchLapses(ctx, x)
		if err != nil {
			return err
		}
		defer lapses.end()
		return b.hanging(ctx, x, "Kubernetes", rates{20, 40, 10, 10}, lapses)
	})
}

func hangingPostgreSQL(ctx context.Context, b *bench) error {
	return b.with(ctx, system.Options{Store: system.PostgreSQL, Project: patient}, func(x *site) error {
		lapses, err := b.noteLapses(ctx, x)
		if err != nil {
			return err
		}
		return b.hanging(ctx, x, "PostgreSQL", rates{100, 200, 50, 50}, lapses)
	})
}

// lapses are requests whose time is over during a measurement.
type lapses interface {
	// prepare stores so many, whose time is over at even intervals while the load lasts.
	prepare(ctx context.Context, n int) error
	// late is how long after its time each was stored as expired.
	late(ctx context.Context) (*load.Histogram, error)
}

// hanging measures the same process by turns with a receiver that answers and with one that does not.
func (b *bench) hanging(ctx context.Context, x *site, name string, r rates, lapses lapses) error {
	known, err := x.begin(ctx, asked)
	if err != nil {
		return err
	}
	usual := func(ctx context.Context, round int) (sample, error) {
		x.sink.forget()
		found, proven, err := b.usual(ctx, x, round, r, known, lapses)
		if err != nil {
			return nil, err
		}
		_, err = x.sink.all(ctx, proven)
		return found, err
	}
	if _, err := usual(ctx, b.rounds); err != nil { // connections and caches
		return err
	}
	hung := func(ctx context.Context, round int) (sample, error) {
		defer x.sink.release()
		held, err := x.hang(ctx)
		if err != nil {
			return nil, err
		}
		found, proven, err := b.usual(ctx, x, round, r, known, lapses)
		if err := errors.Join(err, x.sink.stillHangs()); err != nil {
			return nil, err
		}
		x.sink.release()
		_, err = x.sink.all(ctx, append(held, proven...))
		return found, err
	}
	found, err := b.turns(ctx, hung, usual)
	if err != nil {
		return err
	}
	for _, key := range []string{keyInit, keyStatus, keyInbound, keyExpiry} {
		b.add(row{
			figure: fmt.Sprintf("with a receiver that hangs, %s, %s, p99", name, key), unit: "ms",
			ours: found[0].of(key), limit: found[1].of(key), limitIs: "without", aim: atMost(1.1),
		})
	}
	return nil
}

// hang makes a receiver that hangs, and has as many events as it may be sent at first.
func (x *site) hang(ctx context.Context) ([]begun, error) {
	x.sink.forget()
	x.sink.hold()
	all, err := x.verified(ctx, backlog)
	if err != nil {
		return nil, err
	}
	return all, await(ctx, "the receiver to hang", func(context.Context) (bool, error) { return x.sink.waiting() >= webhook.SlowStart, nil })
}

// usual is what clients and users do to a process, and how long each waits; proven are the numbers that were proven.
func (b *bench) usual(
	ctx context.Context, x *site, round int, r rates, known []begun, lapses lapses,
) (found sample, proven []begun, err error) {
	all, err := x.begin(ctx, enough(r.inbound, b.length))
	if err != nil {
		return nil, nil, err
	}
	if err := lapses.prepare(ctx, max(int(r.lapses*b.length.Seconds()), 1)); err != nil {
		return nil, nil, err
	}
	results, err := b.together(ctx, round, []stream{
		{keyInit, r.init, load.Expect(x.replica.API, x.init)},
		{keyStatus, r.status, load.Expect(x.replica.API, x.status(known))},
		{keyInbound, r.inbound, load.Expect(x.replica.API, x.messages(all))},
	})
	if err != nil {
		return nil, nil, err
	}
	found = sample{}
	for key, result := range results {
		found[key] = ms(result.Latency.Quantile(0.99))
	}
	late, err := lapses.late(ctx)
	if err != nil {
		return nil, nil, err
	}
	found[keyExpiry] = ms(late.Quantile(0.99))
	return found, all[:results[keyInbound].Latency.Count()], nil
}

// stream is one kind of request, at a rate.
type stream struct {
	key       string
	perSecond float64
	client    load.Client
}

// clients is how many send it by turns: not so many that a connection waits for its first request for longer than a server
// bears, which is 5 s.
func (s stream) clients(b *bench) int {
	const busyEvery = 2 // seconds
	return max(1, min(max(openClients, 2*b.projects), int(busyEvery*s.perSecond)))
}

// together runs several streams at the same time.
func (b *bench) together(ctx context.Context, round int, streams []stream) (map[string]load.Result, error) {
	results := make([]load.Result, len(streams))
	group, ctx := errgroup.WithContext(ctx)
	for i, s := range streams {
		group.Go(func() error {
			var err error
			results[i], err = load.Open(ctx, s.clients(b), s.perSecond, b.length, uint64(round*len(streams)+i), s.client)
			if err != nil {
				return fmt.Errorf("%s: %w", s.key, err)
			}
			return nil
		})
	}
	err := group.Wait()
	found := make(map[string]load.Result, len(streams))
	for i, s := range streams {
		found[s.key] = results[i]
	}
	return found, err
}
