package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

const (
	// pagesMemory is the memory of a process that may have mostPages open, as GOMEMLIMIT.
	pagesMemory = "800MiB"
	// mostPages is how many pages may be open, whatever the memory.
	mostPages = 1792
	// manyPages is how many pages want to be open, far more than may be.
	manyPages = 10_000
	// pageTTL is how long the requests of pages last, so that none expires during a measurement.
	pageTTL = "1h"
	// settleTime is how long a process is left alone before it is measured, and holdTime how long its pages are: each stream shows
	// once that it lives.
	settleTime = 2 * time.Second
	holdTime   = 16 * time.Second
)

// The rates of the API while pages are open, well below its maximum.
const (
	initsPerSecond    = 200
	statusesPerSecond = 400
)

// The keys of a process with open pages.
const (
	keyRest    = "rest"    // MiB without pages
	keyHeld    = "held"    // MiB with pages
	keyUsed    = "used"    // of these, what a garbage collection leaves
	keyEach    = "each"    // KiB
	keyOpen    = "open"    // pages
	keyRefused = "refused" // pages a second
)

// withPages gives a project pages whose requests last.
func withPages(p *verifyv1.VerificationProject) {
	p.Spec.Page = &verifyv1.Page{}
	p.Spec.Request.TTL = pageTTL
}

// measurePages measures the memory of open pages, and then the API beside more pages than may be open.
func measurePages(ctx context.Context, b *bench) error {
	options := system.Options{Store: system.PostgreSQL, Project: withPages, Environment: []string{"GOMEMLIMIT=" + pagesMemory}}
	return b.withSite(ctx, options, func(x *site) error {
		all, err := x.startVerifications(ctx, manyPages)
		if err != nil {
			return err
		}
		if err := b.measureOpenPages(ctx, x, all[:mostPages]); err != nil {
			return err
		}
		return b.measureManyPages(ctx, x, all)
	})
}

// measureOpenPages measures what as many pages as may be open cost a process.
func (b *bench) measureOpenPages(ctx context.Context, x *site, of []started) error {
	found, err := b.measureByTurns(ctx, func(ctx context.Context, _ int) (sample, error) { return b.holdPages(ctx, x, of) })
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d open pages, ", len(of))
	for _, memory := range []struct{ key, name string }{{"", "resident memory"}, {keyUsed, "resident memory after a garbage collection"}} {
		held, rest := found[0].valuesOf(keyHeld+memory.key), found[0].valuesOf(keyRest+memory.key)
		b.addRow(row{figure: name + memory.name, unit: "MiB", ours: held, limit: rest, limitIs: "without pages"})
	}
	b.addRow(row{figure: name + "what they add", unit: "MiB", ours: found[0].valuesOf(keyHeld).minus(found[0].valuesOf(keyRest))})
	used := found[0].valuesOf(keyHeld + keyUsed).minus(found[0].valuesOf(keyRest + keyUsed))
	b.addRow(row{figure: name + "what they add after a garbage collection", unit: "MiB", ours: used, aim: atMost(64)})
	b.addRow(row{figure: name + "what each adds after one", unit: "KiB", ours: found[0].valuesOf(keyEach)})
	b.addRow(row{figure: name + "CPU a second, the server", unit: "ms", ours: found[0].valuesOf(keyServer)})
	b.addRow(row{figure: name + "CPU a second, the database", unit: "ms", ours: found[0].valuesOf(keyStore)})
	return nil
}

// holdPages starts a process and measures it at rest, and then with open pages.
func (b *bench) holdPages(ctx context.Context, x *site, of []started) (found sample, err error) {
	replica, err := x.StartReplica()
	if err != nil {
		return nil, err
	}
	defer replica.Kill()
	if err := replica.AwaitReady(ctx); err != nil {
		return nil, err
	}
	found = sample{}
	if err := sleepFor(ctx, settleTime); err != nil {
		return nil, err
	}
	if err := readMemory(ctx, replica, found, keyRest); err != nil {
		return nil, err
	}
	open, err := startBrowsers(ctx, replica.API, of)
	if err != nil {
		return nil, err
	}
	defer open.close()
	if err := open.awaitTried(ctx, len(of)); err != nil {
		return nil, err
	}
	if err := sleepFor(ctx, settleTime); err != nil {
		return nil, err
	}
	if err := measureHolding(ctx, &site{shop: &shop{Project: x.Project, replica: replica}, system: x.system}, found); err != nil {
		return nil, err
	}
	if err := readMemory(ctx, replica, found, keyHeld); err != nil {
		return nil, err
	}
	seen, err := open.lastCounts()
	if err == nil && (seen.Open != int64(len(of)) || seen.Refused+seen.Failed > 0) {
		err = fmt.Errorf("%d of %d pages are open, %d were refused, %d attempts failed", seen.Open, len(of), seen.Refused, seen.Failed)
	}
	if err != nil {
		return nil, err
	}
	found[keyEach] = (found[keyHeld+keyUsed] - found[keyRest+keyUsed]) * (1 << 10) / float64(len(of))
	return found, downloadProfile(ctx, replica, "heap", filepath.Join(b.profilesDir(), "pages-heap.pprof"))
}

// readMemory adds the resident memory of a process, before and after a garbage collection.
func readMemory(ctx context.Context, r *system.Replica, found sample, key string) error {
	held, err := r.RSS()
	if err != nil {
		return err
	}
	if err := r.CollectGarbage(ctx); err != nil {
		return err
	}
	used, err := r.RSS()
	found[key], found[key+keyUsed] = float64(held)/(1<<20), float64(used)/(1<<20)
	return err
}

// measureHolding adds what the pages of a process cost in a second.
func measureHolding(ctx context.Context, x *site, found sample) error {
	before, err := x.readCost()
	if err != nil {
		return err
	}
	if err := sleepFor(ctx, holdTime); err != nil {
		return err
	}
	after, err := x.readCost()
	if err != nil {
		return err
	}
	found[keyServer] = toMilliseconds(after.server-before.server) / holdTime.Seconds()
	found[keyStore] = toMilliseconds(after.store-before.store) / holdTime.Seconds()
	return nil
}

// measureManyPages measures the API by turns with more pages than may be open, and without any.
func (b *bench) measureManyPages(ctx context.Context, x *site, all []started) error {
	known := all[:statusRequests]
	without := func(ctx context.Context, round int) (sample, error) { return b.measureAPI(ctx, x, round, known) }
	if _, err := without(ctx, b.rounds); err != nil { // to warm connections and caches
		return err
	}
	with := func(ctx context.Context, round int) (sample, error) {
		return b.measureBesidePages(ctx, x, round, known, all)
	}
	found, err := b.measureByTurns(ctx, with, without)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d pages want to be open, ", len(all))
	b.addRow(row{figure: name + "are open", ours: found[0].valuesOf(keyOpen), aim: atMost(mostPages)})
	b.addRow(row{figure: name + "streams refused", unit: "1/s", ours: found[0].valuesOf(keyRefused)})
	for _, key := range []string{keyInit, keyStatus} {
		b.addRow(row{
			figure: name + key + ", p99", unit: "ms", ours: found[0].valuesOf(key), limit: found[1].valuesOf(key), limitIs: "without",
			aim: atMost(1.2),
		})
	}
	return b.takeProfile(ctx, "pages", x.replica, with)
}

// measureAPI measures init and status at a rate.
func (b *bench) measureAPI(ctx context.Context, x *site, round int, known []started) (sample, error) {
	b.startProfile()
	results, err := b.runStreams(ctx, round, []stream{
		{keyInit, initsPerSecond, load.Expect(x.replica.API, x.renderInit)},
		{keyStatus, statusesPerSecond, load.Expect(x.replica.API, x.renderStatus(known))},
	})
	if err != nil {
		return nil, err
	}
	found := sample{}
	for key, result := range results {
		found[key] = toMilliseconds(result.Latency.Quantile(0.99))
	}
	return found, nil
}

// measureBesidePages measures the API while pages are open and others are refused. Each page has been refused or opened before.
func (b *bench) measureBesidePages(ctx context.Context, x *site, round int, known, all []started) (sample, error) {
	open, err := startBrowsers(ctx, x.replica.API, all)
	if err != nil {
		return nil, err
	}
	defer open.close()
	if err := open.awaitTried(ctx, len(all)); err != nil {
		return nil, err
	}
	// The load begins when pages that were refused come back.
	err = waitFor(ctx, "refused pages to come back", func(context.Context) (bool, error) {
		seen, err := open.lastCounts()
		return seen.Refused > int64(len(all)), err
	})
	if err != nil {
		return nil, err
	}
	before, err := open.lastCounts()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	found, err := b.measureAPI(ctx, x, round, known)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	after, err := open.lastCounts()
	if err != nil {
		return nil, err
	}
	if after.Refused == before.Refused || after.Open == 0 {
		return nil, fmt.Errorf("%d pages are open, and %d were refused meanwhile", after.Open, after.Refused-before.Refused)
	}
	found[keyOpen] = float64(after.Open)
	found[keyRefused] = float64(after.Refused-before.Refused) / took.Seconds()
	open.close()
	return found, awaitNoPages(ctx, x.replica)
}

// awaitNoPages waits until a process has seen that all pages are closed.
func awaitNoPages(ctx context.Context, r *system.Replica) error {
	return waitFor(ctx, "pages to be closed", func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Health+"/metrics", nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err
		}
		content, err := io.ReadAll(response.Body)
		return strings.Contains(string(content), "\nphoneproof_pages_following 0\n"), errors.Join(err, response.Body.Close())
	})
}

// pagePath returns the path of the page of a request.
func (s started) pagePath() (string, error) {
	at, err := url.Parse(s.PageURL)
	if err == nil && at.Path == "" {
		err = errors.New("init answered no pageURL")
	}
	if err != nil {
		return "", fmt.Errorf("find page of %s: %w", s.ID, err)
	}
	return at.Path, nil
}

// sleepFor waits, unless ctx ends before.
func sleepFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
