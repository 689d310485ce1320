package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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
	// listed is how many requests a measured page of a list has.
	listed = 50
)

// measureManyStored measures a request, a claim of due work and a page of a list with few and with many stored requests.
func measureManyStored(ctx context.Context, b *bench) error {
	options := system.Options{Store: system.PostgreSQL, Project: withoutEvents, PostgreSQL: withoutCheckpoints}
	return b.withStoredRequests(ctx, options, few, 1, func(small *site) error {
		return b.withStoredRequests(ctx, options, b.stored, b.sharing, func(large *site) error {
			if err := b.measureMemoryOf(ctx, fmt.Sprintf("Memory/store=postgresql/stored=%d", b.stored), large); err != nil {
				return err
			}
			both := []stocked{{small, few}, {large, b.stored}}
			for _, measure := range []func(context.Context, []stocked) error{b.measureClaims, b.measureLists, b.measureRequests} {
				if err := measure(ctx, both); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// stocked is a site with so many stored requests.
type stocked struct {
	*site

	n int
}

// nameOf returns the name of a figure of this site.
func (s stocked) nameOf(of string) string { return fmt.Sprintf("Stored/of=%s/stored=%d", of, s.n) }

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

// measureClaims measures a separate worker that claims due work. The replicas are frozen, because they would claim it
// too.
func (b *bench) measureClaims(ctx context.Context, sites []stocked) error {
	sides := make([]side, len(sites))
	for i, x := range sites {
		worker, end, err := newWorker(ctx, x.site)
		if err != nil {
			return err
		}
		defer func() { _ = end() }()
		err = errors.Join(x.replica.Freeze(), storeRequests(ctx, x.system.Database, x.Name(), due, "vrdue", dueAtOnce),
			vacuumRequests(ctx, x.system.Database))
		if err != nil {
			return err
		}
		sides[i] = b.singleSide(x.nameOf("claim"), worker)
	}
	if err := b.measureByTurns(ctx, sides...); err != nil {
		return err
	}
	for _, x := range sites {
		err := executeSQL(ctx, x.system.Database, "DELETE FROM phoneproof_requests WHERE project = $1 AND work = 2", x.Name())
		if err := errors.Join(err, vacuumRequests(ctx, x.system.Database), x.replica.Thaw(), x.replica.AwaitReady(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// singleSide returns a side that measures how long one client's calls take on average.
func (b *bench) singleSide(name string, client load.Client) side {
	return side{name, func(ctx context.Context, _ int) (sample, error) {
		r, err := load.Closed(ctx, 1, b.length, client)
		return sample{"ns/op": float64(r.Latency.Mean().Nanoseconds())}, err
	}}
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

// measureRequests measures requests at the maximum rate.
func (b *bench) measureRequests(ctx context.Context, sites []stocked) error {
	var inits, statuses []side
	for _, x := range sites {
		inits = append(inits, b.maximumSide(x.nameOf("init"), x.shop, x.site, x.renderInit))
		statuses = append(statuses, b.maximumSide(x.nameOf("status"), x.shop, x.site, x.renderStatus(storedRequests("vrdone", few))))
	}
	if err := b.measureByTurns(ctx, inits...); err != nil {
		return err
	}
	return b.measureByTurns(ctx, statuses...)
}

// measureLists measures pages of lists, each of which follows the one before it, from the newest request to the oldest and again.
func (b *bench) measureLists(ctx context.Context, sites []stocked) (err error) {
	for name, filter := range map[string]verification.ListFilter{"page": {}, "verifiedpage": {Phase: verification.Verified}} {
		sides := make([]side, len(sites))
		for i, x := range sites {
			client, end, err2 := newLister(ctx, x.site, filter)
			if err2 != nil {
				return err2
			}
			defer func() { err = errors.Join(err, end()) }()
			sides[i] = b.singleSide(x.nameOf(name), client)
		}
		if err := b.measureByTurns(ctx, sides...); err != nil {
			return err
		}
	}
	return nil
}

// newLister returns a client that walks through a list, page by page.
func newLister(ctx context.Context, x *site, filter verification.ListFilter) (load.Client, func() error, error) {
	store, end, err := connectStore(ctx, x)
	if err != nil {
		return nil, nil, err
	}
	var after atomic.Pointer[verification.Position] // of the next page, also after a pause for the other side
	after.Store(&verification.Position{})
	return func(context.Context) (load.Call, func() error, error) {
		return func(ctx context.Context, _ load.Turn) error {
			page, err := store.List(ctx, verification.ListQuery{ListFilter: filter, After: *after.Load(), Limit: listed})
			if err == nil && len(page.Requests) != listed {
				err = fmt.Errorf("listed %d requests, not %d", len(page.Requests), listed)
			}
			after.Store(&page.Next)
			return err
		}, nil, nil
	}, end, nil
}
