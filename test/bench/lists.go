package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/bench/load"
)

// listed is how many requests a measured page of a list has.
const listed = 50

// measureLists measures pages of lists, each of which follows the one before it, from the newest request to the oldest and again.
func (b *bench) measureLists(ctx context.Context, sites ...*site) error {
	for _, what := range []struct {
		name   string
		filter verification.ListFilter
	}{
		{"all", verification.ListFilter{}},
		{"verified", verification.ListFilter{Phase: verification.Verified}},
	} {
		sides := make([]side, len(sites))
		var ends []func() error
		for i, x := range sites {
			client, end, err := newLister(ctx, x, what.filter)
			if err != nil {
				return err
			}
			ends = append(ends, end)
			sides[i] = func(ctx context.Context, _ int) (sample, error) {
				r, err := load.Closed(ctx, 1, b.length, client)
				return sample{"page": toMilliseconds(r.Latency.Quantile(0.5))}, err
			}
		}
		found, err := b.measureByTurns(ctx, sides...)
		for _, end := range ends {
			err = errors.Join(err, end())
		}
		if err != nil {
			return err
		}
		b.addRow(row{
			figure: fmt.Sprintf("page of %d, %s, %d stored, p50", listed, what.name, b.stored), unit: "ms", ours: found[1].valuesOf("page"),
			limit: found[0].valuesOf("page"), limitIs: fmt.Sprintf("%d stored", few), aim: b.mostGrowth(),
		})
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
