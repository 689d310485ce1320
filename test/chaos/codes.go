package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/apiproxy"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/load"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
	"github.com/phoneproof/phoneproof/test/faultproxy"
	"github.com/phoneproof/phoneproof/test/pgproxy"
	"github.com/phoneproof/phoneproof/test/system"
)

const (
	// An API server stores half of maxStored at most as codes, of which a sixth may be sent in an hour.
	codesInCluster = maxStored / 2
	codesPerDay    = 1_000_000
	// pointTimeout bounds the wait for a marked request to reach its point, and marks is how many are marked one after the other: one whose
	// replica did not learn in time that it is stored has no code.
	pointTimeout = 8 * time.Second
	marks        = 5
	// codesInFlight is how many codes must be in flight at a kill. Before it begins, flightSpare more are, whose answers may come until then.
	codesInFlight = 50
	flightSpare   = 10
	flightTimeout = 30 * time.Second
	// heldTimeout bounds the wait for codes in flight while the marked request is held at its point.
	heldTimeout = 3 * time.Second
)

// addCodes lets the project send codes for its first API key.
func addCodes(p *verifyv1.VerificationProject, store system.Store) {
	perDay := map[system.Store]int32{system.Kubernetes: codesInCluster, system.PostgreSQL: codesPerDay}[store]
	system.SendCodes(p, perDay/2)
	system.SendGatewayCodes(p, perDay/2)
	p.Spec.APIKeys[0].Scopes = []verifyv1.Scope{verifyv1.ScopeInit, verifyv1.ScopeStatus, verifyv1.ScopeDeliver}
}

// routePlatform leads the replicas to the platform over a line that knows them, and creates the platform's ledger.
func (t *trial) routePlatform(ctx context.Context) error {
	line, err := faultproxy.Listen(ctx, t.platform.Address, t.lines.nameOwner)
	if err != nil {
		return err
	}
	t.closers = append(t.closers, line.Close)
	t.platform.Address = line.Address
	t.platform.Desk.Caller = line.Caller
	t.platform.Desk.Codes, err = t.createLedger(ledger.CodeFile)
	return err
}

// addCodeOptions completes the options of the load.
func (t *trial) addCodeOptions(o *load.Options) error {
	t.platform.Desk.Stored = t.witness.Stored
	var err error
	o.Tries, err = t.createLedger(ledger.TryFile)
	return err
}

// killOnTheWay asks for codes and kills replicas at the named points on their way, one at a time and without other faults.
func (t *trial) killOnTheWay(ctx context.Context) error {
	kills := schedule.CodeKills(t.codeKills, t.store == system.Kubernetes)
	if len(kills) == 0 {
		return nil
	}
	began := time.Now()
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- t.load.RunCodes(ctx, stop) }() // ends after stop
	killed := map[bool]int{}                            // by whether it was a code through Telegram
	var err error
	for _, kill := range kills {
		for range marks {
			if err = t.awaitFlight(ctx, codesInFlight+flightSpare, flightTimeout); err != nil {
				break
			}
			if err = t.killAt(ctx, kill); !errors.Is(err, errNotReached) {
				break
			}
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", kill.Kind, err)
			break
		}
		killed[kill.Telegram]++
	}
	close(stop)
	err = errors.Join(err, <-ended)
	t.settleCodes(ctx)
	t.logf("%s: %d kills on the way of codes in %s, %d of them through Telegram, each with %d in flight or more; %d codes checked at the Gateway",
		t.store, killed[false]+killed[true], time.Since(began).Round(time.Second), killed[true], codesInFlight, t.platform.Desk.CountChecks())
	return errors.Join(err, t.lines.checkNames(), t.roster.awaitReady(ctx))
}

// settleTime is how long the results of answered codes take to be stored, on a busy machine.
const settleTime = 2 * time.Second

// settleCodes returns when the results of all codes are stored: later faults explain nothing about them.
func (t *trial) settleCodes(ctx context.Context) {
	t.platform.Desk.Calm()
	for ctx.Err() == nil && t.platform.Desk.InFlight() > 0 {
		sleep(ctx, 20*time.Millisecond)
	}
	sleep(ctx, settleTime)
}

// awaitFlight returns when enough codes are in flight; an error if they are not in time.
func (t *trial) awaitFlight(ctx context.Context, enough int, timeout time.Duration) error {
	for end := time.Now().Add(timeout); t.platform.Desk.InFlight() < enough; sleep(ctx, 20*time.Millisecond) {
		if n := t.platform.Desk.InFlight(); ctx.Err() != nil || time.Now().After(end) {
			return errors.Join(ctx.Err(), fmt.Errorf("%d codes are in flight, want %d for a kill", n, enough))
		}
	}
	return nil
}

// errNotReached is returned if a marked request did not reach its point.
var errNotReached = errors.New("no request reached the point")

// killAt plays one marked user, and kills the replica that has the user's code at the point. It replaces the replica.
func (t *trial) killAt(ctx context.Context, on schedule.CodeKill) error {
	killed := make(chan error, 1)
	var u *load.CodeUser
	kill := func(client string) {
		p := t.roster.findNamed(client)
		if p == nil {
			killed <- fmt.Errorf("it was reached by %q, which is no replica", client)
			return
		}
		if err := t.awaitFlight(ctx, codesInFlight, heldTimeout); err != nil {
			killed <- err
			return
		}
		r := p.current()
		f := ledger.Fault{Kind: string(on.Kind), From: time.Now(), Victims: []string{r.Name}, Replica: r.API}
		r.Kill()
		f.Until = time.Now()
		killed <- errors.Join(t.faults.Append(f), t.roster.startReplica(p))
	}
	switch on.Kind {
	case schedule.KillAfterSend:
		u = t.load.NewMarked(on.Telegram, true, func(_, sender string) { kill(sender) })
	case schedule.KillBeforeResult:
		u = t.load.NewMarked(on.Telegram, false, func(request, _ string) { t.lines.stopResult(request, kill) })
	default:
		u = t.load.NewMarked(on.Telegram, false, nil)
		t.lines.stopCreation(u.Number, on.Kind == schedule.KillAfterCommit, kill)
	}
	defer close(u.Gate)
	defer t.lines.stopNothing()
	t.load.PlayMarked(ctx, u)
	timeout := time.NewTimer(pointTimeout)
	defer timeout.Stop()
	select {
	case err := <-killed:
		return err
	case <-timeout.C:
		return errNotReached
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stopCreation has kill called when the creation of the request for a number is about to be committed, or after it was.
func (l *lines) stopCreation(number string, after bool, kill func(client string)) {
	if l.transactions != nil {
		l.transactions.StopCommit(&pgproxy.Stop{Operation: opInsert, Mark: []byte(number), After: after, Do: kill})
		return
	}
	l.calls.StopWrite(&apiproxy.Stop{Method: http.MethodPost, Marks: [][]byte{[]byte(number)}, After: after, Do: kill})
}

// stopResult has kill called when the result of the code of a request is about to be committed.
func (l *lines) stopResult(request string, kill func(client string)) {
	if l.transactions != nil {
		l.transactions.StopCommit(&pgproxy.Stop{Operation: opUpdate, Mark: []byte(request), Do: kill})
		return
	}
	marks := [][]byte{[]byte(request + "/status"), []byte(`"codeDelivery":{`)}
	l.calls.StopWrite(&apiproxy.Stop{Method: http.MethodPut, Marks: marks, Do: kill})
}

func (l *lines) stopNothing() {
	if l.transactions != nil {
		l.transactions.StopCommit(nil)
		return
	}
	l.calls.StopWrite(nil)
}

// findNamed returns the place of the replica with a name; nil if none has it.
func (r *roster) findNamed(name string) *place {
	for _, p := range r.places {
		if p.current().Name == name {
			return p
		}
	}
	return nil
}
