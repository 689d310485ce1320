package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

// measureDelivery measures events that are sent and recorded.
func measureDelivery(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.PostgreSQL}, func(x *site) error {
		return withFloor(ctx, x, x.sink.url, func(f *floorSite) error {
			return b.measureByTurns(ctx, b.deliverySide("Delivery/store=postgresql"+ours, x.deliverEvents),
				b.deliverySide("Delivery/store=postgresql"+floors, func(ctx context.Context, n int) (sample, error) {
					return f.deliverEvents(ctx, x.sink, n)
				}))
		})
	})
}

// deliverySide returns a side that delivers about as many events as can be in a round.
func (b *bench) deliverySide(name string, deliver func(ctx context.Context, n int) (sample, error)) side {
	n := int(500 * b.length.Seconds())
	return side{name, func(ctx context.Context, _ int) (sample, error) {
		found, err := deliver(ctx, n)
		if err == nil {
			n = max(n, int(found[unitEvents]*b.length.Seconds()))
		}
		return found, err
	}}
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
	took := slices.MaxFunc(arrived, time.Time.Compare).Sub(slices.MinFunc(arrived, time.Time.Compare))
	found := sample{unitEvents: float64(n-1) / took.Seconds()}
	after.addTo(found, before, int64(n))
	return found, nil
}

// measureLatency measures the time from when a message was due until its event arrived, at rates that both stores
// sustain easily.
func measureLatency(ctx context.Context, b *bench) error {
	for store, perSecond := range map[system.Store]float64{system.Kubernetes: 20, system.PostgreSQL: 100} {
		err := b.withSite(ctx, system.Options{Store: store}, func(x *site) error {
			return b.measureByTurns(ctx, side{
				fmt.Sprintf("MessageToWebhook/store=%s/rate=%v", store, perSecond), func(ctx context.Context, round int) (sample, error) {
					return b.measureMessageToWebhook(ctx, x, round, perSecond)
				},
			})
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
	r, err := load.Open(ctx, openClients, perSecond, b.length, uint64(round), load.Expect(x.address, func(turn load.Turn) ([]byte, error) {
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
	return sample{"p50-ns": float64(took.Quantile(0.5).Nanoseconds()), "p99-ns": float64(took.Quantile(0.99).Nanoseconds())}, nil
}

// supplyFor returns more requests than a random schedule of this rate and length ever needs.
func supplyFor(perSecond float64, length time.Duration) int {
	return int(1.5*perSecond*length.Seconds()) + 30
}
