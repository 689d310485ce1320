package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
	"github.com/phoneproof/phoneproof/test/faultproxy"
	"github.com/phoneproof/phoneproof/test/system"
)

// injector injects faults, as many at once as are due, but never two of one store or line.
type injector struct {
	*trial

	storeBusy sync.Mutex
	storeLine sync.Mutex
	sinkLine  sync.Mutex
	secrets   sync.Mutex
	rolling   sync.Mutex
	watches   sync.Mutex

	// outages counts the beginnings and the ends of the store's outages, so it is odd from when the store is crashed or frozen
	// until it answers again.
	outages atomic.Int64

	mu   sync.Mutex
	err  error
	done map[schedule.Kind]int
	hits map[schedule.Kind]map[string]int
	// missing are the operations that a kind of fault must still hit in the run.
	missing map[schedule.Kind][]string
}

// injectAll injects a schedule along the load and returns when the last fault has ended. A fault that fails ends the
// run, because it would prove nothing.
func (i *injector) injectAll(ctx context.Context, faults []schedule.Fault) error {
	var running sync.WaitGroup
	defer running.Wait()
	for _, f := range faults {
		if !i.awaitProgress(ctx, f.At) {
			break
		}
		running.Go(func() {
			if err := i.injectFault(ctx, f); err != nil && ctx.Err() == nil {
				i.mu.Lock()
				i.err = errors.Join(i.err, fmt.Errorf("%s: %w", f.Kind, err))
				i.mu.Unlock()
			}
		})
	}
	running.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.err
}

// awaitProgress returns true when the load has reached the share, or false when it has ended.
func (i *injector) awaitProgress(ctx context.Context, share float64) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		switch now := i.loadProgress(); {
		case ctx.Err() != nil, now >= 1:
			return false
		case now >= share:
			return true
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// injectFault injects a fault and records it.
func (i *injector) injectFault(ctx context.Context, f schedule.Fault) error {
	record := ledger.Fault{Kind: string(f.Kind)}
	var hits map[hit]int
	var err error
	switch f.Kind {
	case schedule.Kill:
		err = i.killReplica(i.roster.places[f.Victim%len(i.roster.places)], &record)
	case schedule.KillLeader:
		err = i.killReplica(i.roster.findLeader(f.Victim), &record)
	case schedule.KillAll:
		err = i.killAll(&record)
	case schedule.Freeze:
		err = i.freezeReplica(ctx, i.roster.places[f.Victim%len(i.roster.places)], f.For, &record)
	case schedule.FreezeLeader:
		err = i.freezeReplica(ctx, i.roster.findLeader(f.Victim), f.For, &record)
	case schedule.Roll:
		err = i.rollReplicas(ctx, &record)
	case schedule.CrashStore, schedule.FreezeStore:
		err = i.stopStore(ctx, f, &record)
	case schedule.Failover, schedule.Isolate:
		err = i.failOver(ctx, f, &record)
	case schedule.RotateHook:
		err = i.rotateHook(&record)
	case schedule.RotateKey:
		err = i.rotateKey(ctx, &record)
	case schedule.CutStore, schedule.CutSink, schedule.RefuseCommit, schedule.SerializeCommit, schedule.CutCommit, schedule.LagWatch,
		schedule.RepeatWatch:
		hits, err = i.injectPartial(ctx, f, &record)
	default:
		i.disturbNetwork(ctx, f, &record)
	}
	if err != nil {
		return err
	}
	i.mu.Lock()
	i.done[f.Kind]++
	i.mu.Unlock()
	for _, part := range splitByVictim(record, hits) {
		if err := i.faults.Append(part); err != nil {
			return err
		}
	}
	return nil
}

func (i *injector) killReplica(p *place, record *ledger.Fault) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	record.From, record.Victims = time.Now(), []string{p.current().Name}
	err := i.roster.killReplica(p)
	record.Until = time.Now()
	return err
}

func (i *injector) killAll(record *ledger.Fault) error {
	i.rolling.Lock()
	defer i.rolling.Unlock()
	for _, p := range i.roster.places {
		p.busy.Lock()
		defer p.busy.Unlock()
	}
	record.From = time.Now()
	for _, p := range i.roster.places {
		record.Victims = append(record.Victims, p.current().Name)
		p.current().Kill()
	}
	var all error
	for _, p := range i.roster.places {
		all = errors.Join(all, i.roster.startReplica(p))
	}
	record.Until = time.Now()
	return all
}

func (i *injector) freezeReplica(ctx context.Context, p *place, length time.Duration, record *ledger.Fault) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	r := p.current()
	record.From, record.Victims = time.Now(), []string{r.Name}
	if err := r.Freeze(); err != nil {
		return err
	}
	sleep(ctx, length)
	err := r.Thaw()
	record.Until = time.Now()
	return err
}

// rollReplicas replaces the replicas one after the other, each when the next is ready, as a Deployment does. The end of
// each is a fault of its own in the ledger; the roll itself has no victims.
func (i *injector) rollReplicas(ctx context.Context, record *ledger.Fault) error {
	i.rolling.Lock()
	defer i.rolling.Unlock()
	record.From = time.Now()
	for _, p := range i.roster.places {
		if err := i.replaceReplica(ctx, p); err != nil {
			return err
		}
	}
	record.Until = time.Now()
	return nil
}

func (i *injector) replaceReplica(ctx context.Context, p *place) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	old := p.current()
	if err := i.roster.startReplica(p); err != nil {
		return err
	}
	if err := i.awaitReady(func() error { return p.current().AwaitReady(ctx) }); err != nil {
		return err
	}
	end := ledger.Fault{Kind: string(schedule.Roll), From: time.Now(), Victims: []string{old.Name}}
	if err := old.Terminate(); err != nil {
		return err
	}
	end.Until = time.Now()
	return i.faults.Append(end)
}

// awaitReady awaits a replica once more if it was late and the store was away meanwhile: without a store none gets ready, and outages that
// follow each other may take longer than a replica has.
func (i *injector) awaitReady(await func() error) error {
	for {
		outages := i.outages.Load()
		err := await()
		if !errors.Is(err, context.DeadlineExceeded) || !i.storeStopped() && i.outages.Load() == outages {
			return err
		}
	}
}

// storeStopped reports whether the store is crashed or frozen, or does not answer again yet.
func (i *injector) storeStopped() bool { return i.outages.Load()%2 == 1 }

// stopStore kills the store and starts it again, or freezes and continues it.
func (i *injector) stopStore(ctx context.Context, f schedule.Fault, record *ledger.Fault) error {
	i.storeBusy.Lock()
	defer i.storeBusy.Unlock()
	i.outages.Add(1)
	defer i.outages.Add(1)
	record.From, record.Victims = time.Now(), []string{ledger.Everyone}
	again, err := i.takeStoreDown(ctx, f.Kind == schedule.FreezeStore)
	if err != nil {
		return err
	}
	record.Down = time.Now()
	sleep(ctx, f.For)
	record.Up = time.Now()
	err = again()
	record.Until = time.Now()
	return err
}

func (i *injector) takeStoreDown(ctx context.Context, frozen bool) (again func() error, err error) {
	database, plane := i.system.Database, i.system.Plane
	switch {
	case i.store == system.PostgreSQL && frozen:
		return database.Freeze()
	case i.store == system.PostgreSQL:
		return func() error { return database.Up(ctx) }, database.Crash()
	case frozen:
		return plane.FreezeAPIServer()
	default:
		return plane.StartAPIServer, plane.KillAPIServer()
	}
}

// disturbNetwork applies a fault to the network.
func (i *injector) disturbNetwork(ctx context.Context, f schedule.Fault, record *ledger.Fault) {
	line, busy := i.lines.store, &i.storeLine
	if f.Kind == schedule.DelaySink || f.Kind == schedule.HoleSink {
		line, busy = i.lines.sink, &i.sinkLine
	}
	busy.Lock()
	defer busy.Unlock()
	record.From, record.Victims = time.Now(), []string{ledger.Everyone}
	switch f.Kind {
	case schedule.DelayStore, schedule.DelaySink:
		line.Set(faultproxy.Weather{Delay: delay})
		sleep(ctx, f.For)
	case schedule.SlowStore:
		line.Set(faultproxy.Weather{BytesPerSecond: slowLine})
		sleep(ctx, f.For)
	default:
		line.Set(faultproxy.Weather{Hole: true})
		sleep(ctx, f.For)
	}
	line.Set(faultproxy.Weather{})
	record.Until = time.Now()
}

const (
	// delay applies in each direction.
	delay = 150 * time.Millisecond
	// slowLine is in bytes per second, for each connection.
	slowLine = 20_000
	// spread is how long a new key takes to be known to every running replica.
	spread = 3 * time.Second
)

// rotateHook replaces the secret that events are signed with. The receiver gets it first, as the documentation
// requires.
func (i *injector) rotateHook(record *ledger.Fault) error {
	i.secrets.Lock()
	defer i.secrets.Unlock()
	secret := "webhook " + rand.Text()
	i.sink.Trust(secret)
	record.From = time.Now()
	err := i.system.WriteSecret(hookKey, secret)
	record.Until = time.Now()
	return err
}

// rotateKey replaces the API key that is not in use, and switches clients to it once every replica knows it.
func (i *injector) rotateKey(ctx context.Context, record *ledger.Fault) error {
	i.secrets.Lock()
	defer i.secrets.Unlock()
	key, err := settings.NewAPIKey(rand.Reader)
	if err != nil {
		return err
	}
	i.trial.mu.Lock()
	next := 1 - i.current
	i.trial.mu.Unlock()
	record.From = time.Now()
	if err := i.system.WriteSecret([]string{firstKey, secondKey}[next], key); err != nil {
		return err
	}
	sleep(ctx, spread)
	i.trial.mu.Lock()
	i.keys[next], i.current = key, next
	i.trial.mu.Unlock()
	record.Until = time.Now()
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
