package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/store/postgres"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

const (
	// few is the number of stored requests in the small database.
	few = 1000
	// dueAtOnce is how many requests are due while claims are measured, and claimedOnce how many one call claims.
	dueAtOnce   = 1000
	claimedOnce = 100
)

// measureManyStored compares the cost of a request, and of claiming due work, with few and with many stored requests.
func measureManyStored(ctx context.Context, b *bench) error {
	options := system.Options{Store: system.PostgreSQL, Project: withoutEvents, PostgreSQL: withoutCheckpoints}
	if b.upkeep {
		options.PostgreSQL = withUpkeep
	}
	return b.withStoredRequests(ctx, options, few, 1, func(small *site) error {
		return b.withStoredRequests(ctx, options, b.stored, b.sharing, func(large *site) error {
			defer b.startUpkeep(ctx, small, large)()
			if err := b.measureRSS(ctx, fmt.Sprintf("memory, PostgreSQL, %d stored", b.stored), large); err != nil {
				return err
			}
			if err := b.measureClaims(ctx, small, large); err != nil {
				return err
			}
			if err := b.measureLists(ctx, small, large); err != nil {
				return err
			}
			return b.measureRequests(ctx, small, large)
		})
	})
}

// withStoredRequests runs measure on a site that has n requests stored, an equal part of them for each of so many projects.
func (b *bench) withStoredRequests(ctx context.Context, o system.Options, n, projects int, measure func(*site) error) error {
	return b.withSite(ctx, o, func(x *site) error {
		for i := range projects {
			project := x.Name() // the one that is served
			if i > 0 {
				project = fmt.Sprintf("bench/sharing-%d", i)
			}
			if err := storeRequests(ctx, x.system.Database, project, finished, "vrdone", n/projects); err != nil {
				return err
			}
		}
		if err := vacuumRequests(ctx, x.system.Database); err != nil {
			return err
		}
		return measure(x)
	})
}

// startUpkeep vacuums databases every few seconds until the function that it returns is called, if that is wanted.
func (b *bench) startUpkeep(ctx context.Context, sites ...*site) (end func()) {
	if !b.upkeep {
		return func() {}
	}
	const pause = 5 * time.Second
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, x := range sites {
		running.Go(func() {
			for ctx.Err() == nil {
				if err := vacuumRequests(ctx, x.system.Database); err != nil && ctx.Err() == nil {
					b.logf("  %v", err)
				}
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
			}
		})
	}
	return func() {
		stop()
		running.Wait()
	}
}

// mostGrowth is the aim for what many stored requests may cost, as a ratio to few.
func (b *bench) mostGrowth() *aim {
	if b.upkeep {
		return atMost(1.2)
	}
	return atMost(1.1)
}

// measureClaims measures a separate worker that claims due work. The replicas are frozen, because they would claim it
// too.
func (b *bench) measureClaims(ctx context.Context, sites ...*site) error {
	sides := make([]side, len(sites))
	for i, x := range sites {
		worker, end, err := newWorker(ctx, x)
		if err != nil {
			return err
		}
		defer func() { _ = end() }()
		err = errors.Join(x.replica.Freeze(), storeRequests(ctx, x.system.Database, x.Name(), due, "vrdue", dueAtOnce),
			vacuumRequests(ctx, x.system.Database))
		if err != nil {
			return err
		}
		sides[i] = func(ctx context.Context, _ int) (sample, error) {
			r, err := load.Closed(ctx, 1, b.length, worker)
			return sample{"claim": toMilliseconds(r.Latency.Mean())}, err
		}
	}
	found, err := b.measureByTurns(ctx, sides...)
	if err != nil {
		return err
	}
	b.addRow(row{
		figure: fmt.Sprintf("claim of %d due, %d stored", claimedOnce, b.stored), unit: "ms", ours: found[1].valuesOf("claim"),
		limit: found[0].valuesOf("claim"), limitIs: fmt.Sprintf("%d stored", few), aim: b.mostGrowth(),
	})
	for _, x := range sites {
		err := executeSQL(ctx, x.system.Database, "DELETE FROM phoneproof_requests WHERE project = $1 AND work = 2", x.Name())
		if err := errors.Join(err, vacuumRequests(ctx, x.system.Database), x.replica.Thaw(), x.replica.AwaitReady(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// newWorker returns a client that claims as a replica does, with a claim that ends at once.
func newWorker(ctx context.Context, x *site) (load.Client, func() error, error) {
	worker, end, err := connectStore(ctx, x)
	if err != nil {
		return nil, nil, err
	}
	policy := verification.Policy{Retention: 24 * time.Hour, Events: verification.EventsOn}
	return func(context.Context) (load.Call, func() error, error) {
		return func(ctx context.Context, _ load.Turn) error {
			claimed, err := worker.Claim(ctx, policy, claimedOnce, time.Nanosecond)
			if err == nil && len(claimed) != claimedOnce {
				err = fmt.Errorf("claimed %d requests, not %d", len(claimed), claimedOnce)
			}
			return err
		}, nil, nil
	}, end, nil
}

// connectStore returns a store of the site's project that is connected, as one of a replica is.
func connectStore(ctx context.Context, x *site) (*postgres.Store, func() error, error) {
	address := postgres.Address{URI: redact.New([]byte(x.system.Database.URI("postgres")))}
	worker, err := postgres.New(postgres.Options{
		Project: x.Name(), Address: func() postgres.Address { return address }, Log: logr.Discard(),
	})
	if err != nil {
		return nil, nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- worker.Start(running) }() // ends with end
	end := func() error {
		stop()
		return <-ended
	}
	err = waitFor(ctx, "the database", func(ctx context.Context) (bool, error) { return worker.Ready(ctx) == nil, nil })
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return worker, end, nil
}

// measureRequests measures the cost of a request at the maximum rate: wall time and CPU time per request.
func (b *bench) measureRequests(ctx context.Context, small, large *site) error {
	for _, what := range []struct {
		name   string
		render func(x *site) renderer
	}{
		{"init", func(x *site) renderer { return x.renderInit }},
		{"status of one that is stored", func(x *site) renderer { return x.renderStatus(storedRequests("vrdone", few)) }},
	} {
		var sides []side
		for _, x := range []*site{small, large} {
			render := what.render(x)
			sides = append(sides, func(ctx context.Context, _ int) (sample, error) {
				found, _, err := b.measureMaximum(ctx, x, load.Expect(x.replica.API, render))
				if err != nil {
					return nil, err
				}
				return sample{"time": 1e6 / found["rate"], "cpu": found[keyServer] + found[keyStore]}, nil
			})
		}
		found, err := b.measureByTurns(ctx, sides...)
		if err != nil {
			return err
		}
		for _, key := range []string{"time", "cpu"} {
			b.addRow(row{
				figure: fmt.Sprintf("%s, %d stored, %s for each", what.name, b.stored, key), unit: "µs", ours: found[1].valuesOf(key),
				limit: found[0].valuesOf(key), limitIs: fmt.Sprintf("%d stored", few), aim: b.mostGrowth(),
			})
		}
	}
	return nil
}
