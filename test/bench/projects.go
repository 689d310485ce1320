package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

const (
	// startedAtOnce is the number of processes that start at the same time.
	startedAtOnce = 4
	// connections is the number of connections that a process may have to the database, with some to spare.
	connections = 10
	keyEvent    = "message in to webhook out"
)

// measureManyProjects measures all but one project of a database, by turns with and without that one's receiver
// hanging. Each project has its own process.
func measureManyProjects(ctx context.Context, b *bench) error {
	options := system.Options{
		Store: system.PostgreSQL, Project: allowLongAttempts,
		PostgreSQL: map[string]string{"max_connections": strconv.Itoa(connections*b.projects + 50)},
	}
	return b.withSite(ctx, options, func(x *site) error {
		others, received, err := b.startNeighbours(ctx, x)
		if err != nil {
			return err
		}
		defer func() { _ = received.close() }()
		usual := func(ctx context.Context, round int) (sample, error) {
			return b.loadOthers(ctx, others, received, round)
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
			found, err := usual(ctx, round)
			if err := errors.Join(err, x.sink.checkHanging()); err != nil {
				return nil, err
			}
			x.sink.releaseAnswers()
			_, err = x.sink.awaitEvents(ctx, held)
			return found, err
		}
		found, err := b.measureByTurns(ctx, hung, usual)
		if err != nil {
			return err
		}
		for _, key := range []string{keyInit, keyStatus, keyInbound, keyEvent} {
			b.addRow(row{
				figure: fmt.Sprintf("%d projects, one receiver hangs, the others' %s, p99", b.projects, key), unit: "ms",
				ours: found[0].valuesOf(key), limit: found[1].valuesOf(key), limitIs: "none hangs", aim: atMost(1.1),
			})
		}
		return nil
	})
}

// startNeighbours starts the other projects, with one receiver for all of them.
func (b *bench) startNeighbours(ctx context.Context, x *site) ([]*shop, *sink, error) {
	received, err := startSink(ctx)
	if err != nil {
		return nil, nil, err
	}
	others := make([]*shop, b.projects-1)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(startedAtOnce)
	for i := range others {
		group.Go(func() error {
			project, err := x.system.NewProject(ctx, fmt.Sprintf("neighbour-%d", i), func(p *verifyv1.VerificationProject) {
				p.Spec.Webhook.URL = received.url
			})
			if err != nil {
				return err
			}
			others[i], err = openShop(ctx, project)
			return err
		})
	}
	return others, received, group.Wait()
}

// loadOthers puts an even load on the other projects.
func (b *bench) loadOthers(ctx context.Context, others []*shop, received *sink, round int) (sample, error) {
	r := rates{init: 50, status: 100, inbound: 25}
	known, all, sent := make([][]started, len(others)), make([][]started, len(others)), make([][]time.Time, len(others))
	for i, other := range others {
		var err error
		if known[i], err = other.startVerifications(ctx, 1); err != nil {
			return nil, err
		}
		if all[i], err = other.startVerifications(ctx, supplyFor(r.inbound/float64(len(others)), b.length)); err != nil {
			return nil, err
		}
		sent[i] = make([]time.Time, len(all[i]))
	}
	received.reset()
	results, err := b.runStreams(ctx, round, []stream{
		{keyInit, r.init, spreadEvenly(others, func(i int) renderer { return others[i].renderInit })},
		{keyStatus, r.status, spreadEvenly(others, func(i int) renderer { return others[i].renderStatus(known[i]) })},
		{keyInbound, r.inbound, spreadEvenly(others, func(i int) renderer {
			messages := others[i].renderMessages(all[i])
			return func(turn load.Turn) ([]byte, error) {
				if turn.N < int64(len(sent[i])) {
					sent[i][turn.N] = turn.Due
				}
				return messages(turn)
			}
		})},
	})
	if err != nil {
		return nil, err
	}
	took := &load.Histogram{}
	for i := range all {
		n := slices.IndexFunc(sent[i], time.Time.IsZero) // enough were prepared, so there is one
		arrived, err := received.awaitEvents(ctx, all[i][:n])
		if err != nil {
			return nil, err
		}
		for k, at := range arrived {
			took.Record(at.Sub(sent[i][k]))
		}
	}
	found := sample{keyEvent: toMilliseconds(took.Quantile(0.99))}
	for key, result := range results {
		found[key] = toMilliseconds(result.Latency.Quantile(0.99))
	}
	return found, nil
}

// renderer renders the next request.
type renderer = func(load.Turn) ([]byte, error)

// spreadEvenly returns clients that send to all shops in turn; each shop counts its own turns.
func spreadEvenly(shops []*shop, of func(i int) renderer) load.Client {
	render, counts := make([]renderer, len(shops)), make([]atomic.Int64, len(shops))
	for i := range shops {
		render[i] = of(i)
	}
	var next atomic.Int64
	return func(ctx context.Context) (load.Call, func() error, error) {
		i := int(next.Add(1)-1) % len(shops)
		return load.Expect(shops[i].replica.API, func(turn load.Turn) ([]byte, error) {
			return render[i](load.Turn{N: counts[i].Add(1) - 1, Due: turn.Due})
		})(ctx)
	}
}
