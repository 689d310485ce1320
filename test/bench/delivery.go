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
		example := x.sink.lastEvent()
		n := int(500 * b.length.Seconds())
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
			return sample{"rate": float64(found.Done) / found.Seconds, "cpu": found.CPU / float64(found.Done) * 1000}, err
		}
		found, err := b.measureByTurns(ctx, ours, limit)
		if err != nil {
			return err
		}
		b.addRow(row{
			figure: "delivery, recorded, PostgreSQL", unit: "1/s", ours: found[0].valuesOf("rate"), limit: found[1].valuesOf("rate"),
			limitIs: "bare client", aim: atLeast(0.3),
		})
		b.addRow(row{
			figure: "delivery, CPU for 1,000, the process", unit: "s", ours: found[0].valuesOf("cpu"), limit: found[1].valuesOf("cpu"),
			limitIs: "bare client",
		})
		b.addRow(row{figure: "delivery, CPU for 1,000, the database", unit: "s", ours: found[0].valuesOf("database")})
		return b.takeProfile(ctx, "delivery-postgresql", x.replica, ours)
	})
}

// deliverEvents stores events that are due and waits until each has arrived and is recorded.
func (x *site) deliverEvents(ctx context.Context, n int) (sample, error) {
	x.sink.reset()
	before, err := x.readCost()
	if err != nil {
		return nil, err
	}
	prefix := "vrdue" + strings.ToLower(rand.Text())[:8]
	if err := storeRequests(ctx, x.system.Database, x.Name(), due, prefix, n); err != nil {
		return nil, err
	}
	arrived, err := x.sink.awaitEvents(ctx, storedRequests(prefix, n))
	if err != nil {
		return nil, err
	}
	err = waitFor(ctx, "the attempts to be recorded", func(ctx context.Context) (bool, error) {
		left, err := queryCount(ctx, x.system.Database, "SELECT count(*) FROM phoneproof_requests WHERE project = $1 AND work = 2", x.Name())
		return left == 0, err
	})
	if err != nil {
		return nil, err
	}
	after, err := x.readCost()
	if err != nil {
		return nil, err
	}
	replica, database := after.perItemSince(before, int64(n))
	took := slices.MaxFunc(arrived, time.Time.Compare).Sub(slices.MinFunc(arrived, time.Time.Compare))
	return sample{"rate": float64(n-1) / took.Seconds(), "cpu": replica / 1e3, "database": database / 1e3}, nil
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
