package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/webhook"
	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

// measureDelivery compares events that are sent and recorded with the same bytes posted to the same receiver, as many
// at a time, by a client that does nothing else.
func measureDelivery(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.PostgreSQL}, func(x *site) error {
		one, err := x.verifyNumbers(ctx, 1)
		if err != nil {
			return err
		}
		if _, err := x.sink.awaitEvents(ctx, one); err != nil {
			return err
		}
		return b.withFloor(ctx, x, x.sink.url, func(f *floorSite) error { return b.compareDelivery(ctx, x, f, x.sink.lastEvent()) })
	})
}

func (b *bench) compareDelivery(ctx context.Context, x *site, f *floorSite, example posting) error {
	n, nOfFloor := int(500*b.length.Seconds()), int(500*b.length.Seconds())
	ours := func(ctx context.Context, _ int) (sample, error) {
		b.startProfile()
		found, err := x.deliverEvents(ctx, n)
		if err == nil {
			n = max(n, int(found["rate"]*b.length.Seconds()))
		}
		return found, err
	}
	limit := func(ctx context.Context, _ int) (sample, error) {
		found, err := runPost(ctx, example, webhook.MaxInFlight, b.length)
		return sample{"rate": float64(found.Done) / found.Seconds, keyServer: found.CPU / float64(found.Done) * 1e6}, err
	}
	floor := func(ctx context.Context, _ int) (sample, error) {
		found, err := f.deliverEvents(ctx, x.sink, nOfFloor)
		if err == nil {
			nOfFloor = max(nOfFloor, int(found["rate"]*b.length.Seconds()))
		}
		return found, err
	}
	found, err := b.measureByTurns(ctx, ours, limit, floor)
	if err != nil {
		return err
	}
	const figure = "delivery, recorded, PostgreSQL"
	b.addRow(row{
		figure: figure, unit: "1/s", ours: found[0].valuesOf("rate"), limit: found[1].valuesOf("rate"), limitIs: "bare client", aim: atLeast(0.3),
	})
	b.addRow(row{
		figure: figure + ", CPU for each, beside posting alone", unit: "µs", ours: found[0].valuesOf(keyServer),
		limit: found[1].valuesOf(keyServer), limitIs: "bare client",
	})
	b.addFloorRows(figure, found[0], found[2], atMost(1.6))
	return b.takeProfile(ctx, "delivery-postgresql", x.replica, ours)
}

// deliverEvents stores events that are due and waits until each has arrived and is recorded.
func (x *site) deliverEvents(ctx context.Context, n int) (sample, error) {
	return measureDeliveries(ctx, x, x.sink, n, func(prefix string) error {
		return storeRequests(ctx, x.system.Database, x.Name(), due, prefix, n)
	}, func() (int, error) {
		return queryCount(ctx, x.system.Database, "SELECT count(*) FROM phoneproof_requests WHERE project = $1 AND work = 2", x.Name())
	})
}

// measureDeliveries has n events with ids of a prefix stored, and waits until each has arrived and none is left to record.
func measureDeliveries(
	ctx context.Context, of payer, to *sink, n int, storeDue func(prefix string) error, left func() (int, error),
) (sample, error) {
	to.reset()
	before, err := of.readCost()
	if err != nil {
		return nil, err
	}
	prefix := "vrdue" + strings.ToLower(rand.Text())[:8]
	if err := storeDue(prefix); err != nil {
		return nil, err
	}
	arrived, err := to.awaitEvents(ctx, storedRequests(prefix, n))
	if err != nil {
		return nil, err
	}
	err = waitFor(ctx, "the attempts to be recorded", func(context.Context) (bool, error) {
		n, err := left()
		return n == 0, err
	})
	if err != nil {
		return nil, err
	}
	after, err := of.readCost()
	if err != nil {
		return nil, err
	}
	server, store := after.perItemSince(before, int64(n))
	took := slices.MaxFunc(arrived, time.Time.Compare).Sub(slices.MinFunc(arrived, time.Time.Compare))
	return sample{"rate": float64(n-1) / took.Seconds(), keyServer: server, keyStore: store, keyBoth: server + store}, nil
}

// measureLatency measures the time from when a message was due until its event arrived, at rates that both stores
// sustain easily.
func measureLatency(ctx context.Context, b *bench) error {
	for _, of := range []struct {
		store     system.Store
		name      string
		perSecond float64
	}{{system.Kubernetes, "Kubernetes", 20}, {system.PostgreSQL, "PostgreSQL", 100}} {
		err := b.withSite(ctx, system.Options{Store: of.store}, func(x *site) error {
			found, err := b.measureByTurns(ctx, func(ctx context.Context, round int) (sample, error) {
				return b.measureMessageToWebhook(ctx, x, round, of.perSecond)
			})
			if err != nil {
				return err
			}
			for _, key := range []string{"p50", "p99"} {
				b.addRow(row{
					figure: fmt.Sprintf("message in to webhook out, %s, %v/s, %s", of.name, of.perSecond, key), unit: "ms", ours: found[0].valuesOf(key),
				})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) measureMessageToWebhook(ctx context.Context, x *site, round int, perSecond float64) (sample, error) {
	all, err := x.startVerifications(ctx, supplyFor(perSecond, b.length))
	if err != nil {
		return nil, err
	}
	x.sink.reset()
	messages, sent := x.renderMessages(all), make([]time.Time, len(all))
	r, err := load.Open(ctx, openClients, perSecond, b.length, uint64(round), load.Expect(x.replica.API, func(turn load.Turn) ([]byte, error) {
		if turn.N < int64(len(sent)) {
			sent[turn.N] = turn.Due
		}
		return messages(turn)
	}))
	if err != nil {
		return nil, err
	}
	arrived, err := x.sink.awaitEvents(ctx, all[:r.Latency.Count()])
	if err != nil {
		return nil, err
	}
	took := &load.Histogram{}
	for i, at := range arrived {
		took.Record(at.Sub(sent[i]))
	}
	return sample{"p50": toMilliseconds(took.Quantile(0.5)), "p99": toMilliseconds(took.Quantile(0.99))}, nil
}

// supplyFor returns more requests than a random schedule of this rate and length ever needs.
func supplyFor(perSecond float64, length time.Duration) int {
	return int(1.5*perSecond*length.Seconds()) + 30
}
