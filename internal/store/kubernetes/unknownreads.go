package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/tokenbucket"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// unknownReads bounds the reads of ids, codes and bindings that the informer does not know. Another replica may have stored such
// a request a moment ago, so each has to be looked up, but strangers can make up more of them than the API server can bear.
// Only misses count.
type unknownReads struct {
	clock   clock.PassiveClock
	refused *prometheus.CounterVec
	clients readLimiter
	senders readLimiter
}

func newUnknownReads(clock clock.PassiveClock, l readLimits) *unknownReads {
	return &unknownReads{
		clock: clock,
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_unknown_reads_refused_total",
			Help: "Look-ups of unknown ids, codes and senders that were refused, by the kind of caller (client, sender) and of bound (caller, process).",
		}, []string{"by", "bound"}),
		clients: newReadLimiter(l.client, l.clients),
		senders: newReadLimiter(l.sender, l.senders),
	}
}

// limitRead calls read, for something that the informer does not know, if the caller may have one more.
func (u *unknownReads) limitRead(ctx context.Context, read func() error) error {
	end, err := u.beginRead(verification.CallerOf(ctx))
	if err != nil {
		return err
	}
	err = read()
	end(errors.Is(err, verification.ErrNotFound))
	return err
}

// readUnderLimit is limitRead for a read with a result.
func readUnderLimit[T any](ctx context.Context, u *unknownReads, read func() (T, error)) (found T, err error) {
	err = u.limitRead(ctx, func() error {
		found, err = read()
		return err
	})
	return found, err
}

// beginRead counts a read of its caller until the read has ended, and for good if it missed.
func (u *unknownReads) beginRead(caller verification.Caller) (end func(missed bool), err error) {
	by, of := "client", &u.clients
	switch {
	case caller.IsSender():
		by, of = "sender", &u.senders
	case !caller.IsClient():
		return func(bool) {}, nil
	}
	switch of.beginRead(caller.Name(), u.clock.Now()) {
	case boundOfCaller:
		u.refused.WithLabelValues(by, "caller").Inc()
		return nil, verification.TooManyUnknown(verification.ErrTooManyUnknown)
	case boundWhileBusy:
		u.refused.WithLabelValues(by, "caller").Inc()
		return nil, verification.TooManyUnknown(errors.New("the caller's other look-ups have not ended"))
	case boundOfProcess:
		u.refused.WithLabelValues(by, "process").Inc()
		return nil, verification.TooManyUnknown(errors.New("all callers together look up too much that is unknown"))
	default:
		return func(missed bool) { of.endRead(caller.Name(), missed) }, nil
	}
}

// registerMetrics registers the metrics; nil is for none.
func (u *unknownReads) registerMetrics(registerer prometheus.Registerer) error {
	if registerer == nil {
		return nil
	}
	if err := registerer.Register(u.refused); err != nil {
		return fmt.Errorf("register metrics of the store: %w", err)
	}
	return nil
}

// exceededBound is the bound that a read exceeds.
type exceededBound int

const (
	boundOfNone exceededBound = iota
	boundOfCaller
	// boundWhileBusy is the caller's, unless reads in progress turn out not to count. The same message may be delivered many times
	// at once, and must not be dropped because its copies are being looked up.
	boundWhileBusy
	boundOfProcess
)

// readLimiter limits the reads of the callers of one kind, for each and for all together.
type readLimiter struct {
	ofCaller, ofAll tokenbucket.Rate
	seed            maphash.Seed

	mu    sync.Mutex // over the limit and open together
	limit *tokenbucket.Limiter[uint64]
	// open counts the reads in progress, which may be returned, by the hash of the caller's name.
	open map[uint64]int
}

func newReadLimiter(ofCaller, ofAll tokenbucket.Rate) readLimiter {
	return readLimiter{
		ofCaller: ofCaller, ofAll: ofAll, seed: maphash.MakeSeed(),
		limit: tokenbucket.NewLimiter[uint64](maxCallers), open: make(map[uint64]int),
	}
}

// beginRead takes a read from the caller's bucket and from the shared one, or from neither.
func (b *readLimiter) beginRead(name string, now time.Time) exceededBound {
	b.mu.Lock()
	defer b.mu.Unlock()
	caller := maphash.String(b.seed, name)
	switch b.limit.TakeBoth(caller, b.ofCaller, b.ofAll, now) {
	case tokenbucket.BoundOfAll:
		return boundOfProcess
	case tokenbucket.BoundOfKey:
		if b.limit.Tokens(caller, b.ofCaller, now)+float64(b.open[caller]) < 1 {
			return boundOfCaller
		}
		return boundWhileBusy
	default:
		b.open[caller]++
		return boundOfNone
	}
}

// endRead returns a read to the buckets, unless it missed.
func (b *readLimiter) endRead(name string, missed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	caller := maphash.String(b.seed, name)
	if b.open[caller]--; b.open[caller] == 0 {
		delete(b.open, caller)
	}
	if !missed {
		b.limit.ReturnBoth(caller, b.ofCaller, b.ofAll)
	}
}
