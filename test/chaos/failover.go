package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/test/chaos/judge"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
	"github.com/phoneproof/phoneproof/test/faultproxy"
)

// secondPrimary is how long a former primary runs beside the new one: longer than a replica waits for a commit, and for it to find the new
// primary by itself.
const secondPrimary = 8 * time.Second

// failOver promotes the standby of a database while its primary is dead, or cut off from everyone. Then the former primary becomes the
// standby; one that was cut off is first a second primary for a while, until the database's operator fences it.
func (i *injector) failOver(ctx context.Context, f schedule.Fault, record *ledger.Fault) error {
	i.storeBusy.Lock()
	defer i.storeBusy.Unlock()
	i.outages.Add(1)
	defer i.outages.Add(1)
	pair, former := i.system.Pair, i.system.Pair.Primary()
	record.From, record.Victims = time.Now(), []string{ledger.Everyone}
	reconnect := func() {}
	if f.Kind == schedule.Isolate {
		repair := pair.Isolate()
		line := i.lines.servers[former.Port]
		line.Set(faultproxy.Weather{Hole: true})
		reconnect = func() { repair(); line.Set(faultproxy.Weather{}) }
	} else if err := former.Crash(); err != nil {
		return err
	}
	record.Down = time.Now()
	sleep(ctx, f.For)
	record.Up = time.Now()
	if err := pair.Promote(ctx); err != nil {
		return err
	}
	if f.Kind == schedule.Isolate {
		reconnect()
		sleep(ctx, secondPrimary)
		if err := former.Crash(); err != nil {
			return err
		}
	}
	err := pair.Rejoin(ctx)
	record.Until = time.Now()
	return err
}

// describeFailovers returns how long no verification began at each failover: from the loss of the primary on, and from the promotion on.
func describeFailovers(e *judge.Evidence) string {
	var text strings.Builder
	for _, kind := range []schedule.Kind{schedule.Failover, schedule.Isolate} {
		var lost, promoted []time.Duration
		for _, f := range e.Faults {
			if schedule.Kind(f.Kind) != kind {
				continue
			}
			first := time.Time{}
			for _, a := range e.Acks {
				if a.Asked.After(f.Down) && (first.IsZero() || a.At.Before(first)) {
					first = a.At
				}
			}
			if !first.IsZero() {
				lost, promoted = append(lost, first.Sub(f.From)), append(promoted, first.Sub(f.Up))
			}
		}
		if len(lost) == 0 {
			continue
		}
		fmt.Fprintf(&text, ", %d of kind %s: no verification began for %s, of which %s since the promotion began", len(lost), kind,
			describeSpread(lost), describeSpread(promoted))
	}
	return text.String()
}

// describeSpread returns the median and the maximum.
func describeSpread(all []time.Duration) string {
	slices.Sort(all)
	return fmt.Sprintf("%.1f s (at most %.1f s)", all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
}
