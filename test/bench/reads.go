package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

// writesBeside is how many objects a second are written beside some of the reads.
const writesBeside = 100

// measureReads compares the ways to learn from an API server what is true now of pending requests that several clients ask for at the
// same time: a read for each, or a list that they share. Lists come from the API server's cache, once that is as new as the question.
func measureReads(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.Kubernetes, Project: withoutEvents}, func(x *site) error {
		pending, err := x.startVerifications(ctx, b.pending)
		if err != nil {
			return err
		}
		list := b.listShared(x, pending)
		found, err := b.measureByTurns(ctx, b.readEach(x, pending), list, b.besideWrites(x, pending[0], list))
		if err != nil {
			return err
		}
		for i, name := range []string{"a read for each", "a shared list", fmt.Sprintf("a shared list, %d writes a second", writesBeside)} {
			figure := fmt.Sprintf("%d asked for at once, %d stored, %s", clients, len(pending), name)
			b.addRow(row{figure: figure, unit: "1/s", ours: found[i].valuesOf("rate"), limit: found[0].valuesOf("rate"), limitIs: "a read for each"})
			b.addRow(row{figure: figure + ", p50", unit: "ms", ours: found[i].valuesOf("p50")})
			b.addRow(row{figure: figure + ", CPU for each, the API server", unit: "µs", ours: found[i].valuesOf(keyStore)})
		}
		return nil
	})
}

// readEach returns a side in which each client reads one object after another.
func (b *bench) readEach(x *site, pending []started) side {
	return b.readSide(x, clients, 1, func(ctx context.Context, turn load.Turn) error {
		key := client.ObjectKey{Namespace: x.Namespace, Name: pending[turn.N%int64(len(pending))].ID}
		return x.system.Admin.Get(ctx, key, &verifyv1.VerificationRequest{})
	})
}

// listShared returns a side in which one list after another brings as many objects as there are clients.
func (b *bench) listShared(x *site, pending []started) side {
	return b.readSide(x, 1, clients, func(ctx context.Context, turn load.Turn) error {
		var ids []string
		for i := range int64(clients) {
			ids = append(ids, pending[(turn.N*clients+i)%int64(len(pending))].ID)
		}
		asked, err := labels.NewRequirement(verifyv1.CodeIDLabel, selection.In, ids)
		if err != nil {
			return err
		}
		var list verifyv1.VerificationRequestList
		these := client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*asked)}
		return x.system.Admin.List(ctx, &list, client.InNamespace(x.Namespace), these)
	})
}

// readSide returns a side that measures how many questions a second are answered, when each call answers some, how long that takes, and
// what it costs the API server.
func (b *bench) readSide(x *site, clients int, answered float64, call load.Call) side {
	return func(ctx context.Context, _ int) (sample, error) {
		before, err := x.readCost()
		if err != nil {
			return nil, err
		}
		r, err := load.Closed(ctx, clients, b.length, func(context.Context) (load.Call, func() error, error) { return call, nil, nil })
		if err != nil {
			return nil, err
		}
		after, err := x.readCost()
		_, store := after.perItemSince(before, r.Latency.Count())
		p50 := float64(r.Latency.Quantile(0.5).Microseconds()) / 1000
		return sample{"rate": answered * r.PerSecond(), "p50": p50, keyStore: store / answered}, err
	}
}

// besideWrites returns a side that is measured while an object of the same kind is written again and again.
func (b *bench) besideWrites(x *site, one started, measure side) side {
	return func(ctx context.Context, round int) (sample, error) {
		ctx, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			_, err := load.Open(ctx, clients, writesBeside, time.Hour, uint64(round), func(context.Context) (load.Call, func() error, error) {
				return func(ctx context.Context, turn load.Turn) error {
					object := &verifyv1.VerificationRequest{}
					object.Namespace, object.Name = x.Namespace, one.ID
					patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"bench": "%d"}}}`, turn.N)
					return x.system.Admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
				}, nil, nil
			})
			ended <- err
		}()
		found, err := measure(ctx, round)
		stop()
		if failure := <-ended; !errors.Is(failure, context.Canceled) {
			err = errors.Join(err, failure)
		}
		return found, err
	}
}
