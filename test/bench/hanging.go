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

// backlog is the number of events that are due at a receiver that hangs before the measurement: more than may be in
// flight.
const backlog = 2 * webhook.MaxInFlight

// rates are requests and expiries per second while the receiver hangs.
type rates struct{ init, status, inbound, lapses float64 }

// The keys of the operations that are measured.
const (
	keyInit    = "init"
	keyStatus  = "status"
	keyInbound = "inbound"
	keyExpiry  = "expiry"
)

func measureHangingKubernetes(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.Kubernetes, Project: allowLongAttempts}, func(x *site) error {
		lapses, err := b.watchExpiries(ctx, x)
		if err != nil {
			return err
		}
		defer lapses.stop()
		return b.measureHanging(ctx, x, "Kubernetes", rates{20, 40, 10, 10}, lapses)
	})
}

func measureHangingPostgreSQL(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.PostgreSQL, Project: allowLongAttempts}, func(x *site) error {
		lapses, err := b.recordExpiries(ctx, x)
		if err != nil {
			return err
		}
		return b.measureHanging(ctx, x, "PostgreSQL", rates{100, 200, 50, 50}, lapses)
	})
}

// expiries are requests that expire during a measurement.
type expiries interface {
	// storeExpiring stores n requests that expire at even intervals while the load lasts.
	storeExpiring(ctx context.Context, n int) error
	// measureDelays returns how long after its time each was stored as expired.
	measureDelays(ctx context.Context) (*load.Histogram, error)
}

// measureHanging measures the same process by turns with a receiver that answers and with one that hangs.
func (b *bench) measureHanging(ctx context.Context, x *site, name string, r rates, lapses expiries) error {
	known, err := x.startVerifications(ctx, statusRequests)
	if err != nil {
		return err
	}
	usual := func(ctx context.Context, round int) (sample, error) {
		x.sink.reset()
		found, proven, err := b.measureUsual(ctx, x, round, r, known, lapses)
		if err != nil {
			return nil, err
		}
		_, err = x.sink.awaitEvents(ctx, proven)
		return found, err
	}
	if _, err := usual(ctx, b.rounds); err != nil { // to warm connections and caches
		return err
	}
	hung := func(ctx context.Context, round int) (sample, error) {
		defer x.sink.releaseAnswers()
		held, err := x.makeReceiverHang(ctx)
		if err != nil {
			return nil, err
		}
		found, proven, err := b.measureUsual(ctx, x, round, r, known, lapses)
		if err := errors.Join(err, x.sink.checkHanging()); err != nil {
			return nil, err
		}
		x.sink.releaseAnswers()
		_, err = x.sink.awaitEvents(ctx, append(held, proven...))
		return found, err
	}
	found, err := b.measureByTurns(ctx, hung, usual)
	if err != nil {
		return err
	}
	for _, key := range []string{keyInit, keyStatus, keyInbound, keyExpiry} {
		b.addRow(row{
			figure: fmt.Sprintf("with a receiver that hangs, %s, %s, p99", name, key), unit: "ms",
			ours: found[0].valuesOf(key), limit: found[1].valuesOf(key), limitIs: "without", aim: atMost(1.1),
		})
	}
	return nil
}

// makeReceiverHang makes the receiver hang and waits until it holds as many events as are sent to it at first.
func (x *site) makeReceiverHang(ctx context.Context) ([]started, error) {
	x.sink.reset()
	x.sink.holdAnswers()
	all, err := x.verifyNumbers(ctx, backlog)
	if err != nil {
		return nil, err
	}
	return all, waitFor(ctx, "the receiver to hang", func(context.Context) (bool, error) {
		return x.sink.heldCount() >= webhook.SlowStart, nil
	})
}

// measureUsual puts the load of clients and users on a process and returns how long each operation took, and the
// verified requests.
func (b *bench) measureUsual(
	ctx context.Context, x *site, round int, r rates, known []started, lapses expiries,
) (found sample, proven []started, err error) {
	all, err := x.startVerifications(ctx, supplyFor(r.inbound, b.length))
	if err != nil {
		return nil, nil, err
	}
	if err := lapses.storeExpiring(ctx, max(int(r.lapses*b.length.Seconds()), 1)); err != nil {
		return nil, nil, err
	}
	results, err := b.runStreams(ctx, round, []stream{
		{keyInit, r.init, load.Expect(x.replica.API, x.renderInit)},
		{keyStatus, r.status, load.Expect(x.replica.API, x.renderStatus(known))},
		{keyInbound, r.inbound, load.Expect(x.replica.API, x.renderMessages(all))},
	})
	if err != nil {
		return nil, nil, err
	}
	found = sample{}
	for key, result := range results {
		found[key] = toMilliseconds(result.Latency.Quantile(0.99))
	}
	late, err := lapses.measureDelays(ctx)
	if err != nil {
		return nil, nil, err
	}
	found[keyExpiry] = toMilliseconds(late.Quantile(0.99))
	return found, all[:results[keyInbound].Latency.Count()], nil
}

// stream is one kind of request at a rate.
type stream struct {
	key       string
	perSecond float64
	client    load.Client
}

// clientCount returns how many clients send the stream by turns: few enough that no connection waits for its first
// request longer than the server's limit of 5 s.
func (s stream) clientCount(b *bench) int {
	const busyEvery = 2 // seconds
	return max(1, min(max(openClients, 2*b.projects), int(busyEvery*s.perSecond)))
}

// runStreams runs several streams at the same time.
func (b *bench) runStreams(ctx context.Context, round int, streams []stream) (map[string]load.Result, error) {
	results := make([]load.Result, len(streams))
	group, ctx := errgroup.WithContext(ctx)
	for i, s := range streams {
		group.Go(func() error {
			var err error
			results[i], err = load.Open(ctx, s.clientCount(b), s.perSecond, b.length, uint64(round*len(streams)+i), s.client)
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
