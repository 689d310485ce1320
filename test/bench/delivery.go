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

// delivery compares events that are sent, each with its attempt recorded, with the same bytes posted to the same receiver,
// as many at a time, by a client that does nothing else.
func delivery(ctx context.Context, b *bench) error {
	return b.with(ctx, system.Options{Store: system.PostgreSQL}, func(x *site) error {
		one, err := x.verified(ctx, 1)
		if err != nil {
			return err
		}
		if _, err := x.sink.all(ctx, one); err != nil {
			return err
		}
		example := x.sink.example()
		n := int(500 * b.length.Seconds())
		ours := func(ctx context.Context, _ int) (sample, error) {
			b.loading()
			found, err := x.deliver(ctx, n)
			if err == nil {
				n = max(n, int(found["rate"]*b.length.Seconds()))
			}
			return found, err
		}
		limit := func(ctx context.Context, _ int) (sample, error) {
			found, err := runPost(ctx, example, webhook.MaxInFlight, b.length)
			return sample{"rate": float64(found.Done) / found.Seconds, "cpu": found.CPU / float64(found.Done) * 1000}, err
		}
		found, err := b.turns(ctx, ours, limit)
		if err != nil {
			return err
		}
		b.add(row{
			figure: "delivery, recorded, PostgreSQL", unit: "1/s", ours: found[0].of("rate"), limit: found[1].of("rate"),
			limitIs: "bare client", aim: atLeast(0.3),
		})
		b.add(row{
			figure: "delivery, CPU for 1,000, the process", unit: "s", ours: found[0].of("cpu"), limit: found[1].of("cpu"), limitIs: "bare client",
		})
		b.add(row{figure: "delivery, CPU for 1,000, the database", unit: "s", ours: found[0].of("database")})
		return b.profile(ctx, "delivery-postgresql", x.replica, ours)
	})
}

// deliver stores events that are due and waits until each came and is recorded.
func (x *site) deliver(ctx context.Context, n int) (sample, error) {
	x.sink.forget()
	before, err := x.cost()
	if err != nil {
		return nil, err
	}
	prefix := "vrdue" + strings.ToLower(rand.Text())[:8]
	if err := store(ctx, x.system.Database, x.Name(), due, prefix, n); err != nil {
		return nil, err
	}
	arrived, err := x.sink.all(ctx, stored(prefix, n))
	if err != nil {
		return nil, err
	}
	err = await(ctx, "the attempts to be recorded", func(ctx context.Context) (bool, error) {
		left, err := count(ctx, x.system.Database, "SELECT count(*) FROM phoneproof_requests WHERE project = $1 AND work = 2", x.Name())
		return left == 0, err
	})
	if err != nil {
		return nil, err
	}
	after, err := x.cost()
	if err != nil {
		return nil, err
	}
	replica, database := after.since(before, int64(n))
	took := slices.MaxFunc(arrived, time.Time.Compare).Sub(slices.MinFunc(arrived, time.Time.Compare))
	return sample{"rate": float64(n-1) / took.Seconds(), "cpu": replica / 1e3, "database": database / 1e3}, nil
}

// latency is the time from when a message was due to when the event came, at rates that both stores take with ease.
func latency(ctx context.Context, b *bench) error {
	for _, of := range []struct {
		store     system.Store
		name      string
		perSecond float64
	}{{system.Kubernetes, "Kubernetes", 20}, {system.PostgreSQL, "PostgreSQL", 100}} {
		err := b.with(ctx, system.Options{Store: of.store}, func(x *site) error {
			found, err := b.turns(ctx, func(ctx context.Context, round int) (sample, error) {
				return b.messageToWebhook(ctx, x, round, of.perSecond)
			})
			if err != nil {
				return err
			}
			for _, key := range []string{"p50", "p99"} {
				b.add(row{
					figure: fmt.Sprintf("message in to webhook out, %s, %v/s, %s", of.name, of.perSecond, key), unit: "ms", ours: found[0].of(key),
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

func (b *bench) messageToWebhook(ctx context.Context, x *site, round int, perSecond float64) (sample, error) {
	all, err := x.begin(ctx, enough(perSecond, b.length))
	if err != nil {
		return nil, err
	}
	x.sink.forget()
	messages, sent := x.messages(all), make([]time.Time, len(all))
	r, err := load.Open(ctx, openClients, perSecond, b.length, uint64(round), load.Expect(x.replica.API, func(turn load.Turn) ([]byte, error) {
		if turn.N < int64(len(sent)) {
			sent[turn.N] = turn.Due
		}
		return messages(turn)
	}))
	if err != nil {
		return nil, err
	}
	arrived, err := x.sink.all(ctx, all[:r.Latency.Count()])
	if err != nil {
		return nil, err
	}
	took := &load.Histogram{}
	for i, at := range arrived {
		took.Record(at.Sub(sent[i]))
	}
	return sample{"p50": ms(took.Quantile(0.5)), "p99": ms(took.Quantile(0.99))}, nil
}

// enough is more than chance ever makes of a rate.
func enough(perSecond float64, length time.Duration) int {
	return int(1.5*perSecond*length.Seconds()) + 30
}
