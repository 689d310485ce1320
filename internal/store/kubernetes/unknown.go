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
	"k8s.io/utils/lru"

	"github.com/phoneproof/phoneproof/internal/tokenbucket"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// unknownReads bounds the live reads for ids, codes and bindings that the informer does not know. Another replica may have
// stored such a request a moment ago, so each has to be looked up, and anybody can make up more of them than the API server
// can bear. Only misses count: what is found costs its caller nothing.
type unknownReads struct {
	clock   clock.PassiveClock
	refused *prometheus.CounterVec
	clients bounds
	senders bounds
}

func newUnknownReads(clock clock.PassiveClock, l limits) *unknownReads {
	return &unknownReads{
		clock: clock,
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_unknown_reads_refused_total",
			Help: "Look-ups of something unknown that were refused, by who asked (client, sender) and by whose bound (caller, process).",
		}, []string{"by", "bound"}),
		clients: newBounds(l.client, l.clients),
		senders: newBounds(l.sender, l.senders),
	}
}

// read makes a read for something that the informer does not know, if its caller may have one more.
func (u *unknownReads) read(ctx context.Context, read func() error) error {
	end, err := u.begin(verification.CallerOf(ctx))
	if err != nil {
		return err
	}
	err = read()
	end(errors.Is(err, verification.ErrNotFound))
	return err
}

// begin takes a read from its caller until it has ended, and for good if it missed.
func (u *unknownReads) begin(caller verification.Caller) (end func(missed bool), err error) {
	by, of := "client", &u.clients
	switch {
	case caller.IsSender():
		by, of = "sender", &u.senders
	case !caller.IsClient():
		return func(bool) {}, nil
	}
	switch of.begin(caller.Name(), u.clock.Now()) {
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
		return func(missed bool) { of.end(caller.Name(), missed) }, nil
	}
}

// register registers the metrics; nil is for none.
func (u *unknownReads) register(registerer prometheus.Registerer) error {
	if registerer == nil {
		return nil
	}
	if err := registerer.Register(u.refused); err != nil {
		return fmt.Errorf("register metrics of the store: %w", err)
	}
	return nil
}

// exceeded says whose bound a read exceeds.
type exceeded int

const (
	boundOfNone exceeded = iota
	boundOfCaller
	// boundWhileBusy is that of the caller, unless reads under way are given back. The same message may
	// be delivered many times at once, and must not be dropped because its copies are looked up.
	boundWhileBusy
	boundOfProcess
)

// callerBucket holds what is left for a caller.
type callerBucket struct {
	tokenbucket.Bucket

	// open are reads that were taken and have not ended. They may be given back.
	open float64
}

// bounds are the buckets of callers of one kind, and the one that all share.
type bounds struct {
	ofCaller, ofAll tokenbucket.Rate
	seed            maphash.Seed

	mu      sync.Mutex
	all     tokenbucket.Bucket
	callers *lru.Cache // of *callerBucket, by the hash of the caller's name
}

func newBounds(ofCaller, ofAll tokenbucket.Rate) bounds {
	return bounds{ofCaller: ofCaller, ofAll: ofAll, seed: maphash.MakeSeed(), callers: lru.New(maxCallers)}
}

// begin takes a read from the caller's bucket and from that of all, or from neither.
func (b *bounds) begin(name string, now time.Time) exceeded {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.bucketOf(name)
	if own == nil {
		own = &callerBucket{}
		b.callers.Add(maphash.String(b.seed, name), own)
	}
	left := own.Tokens(b.ofCaller, now)
	switch {
	case left+own.open < 1:
		return boundOfCaller
	case left < 1:
		return boundWhileBusy
	case !b.all.Take(b.ofAll, now):
		return boundOfProcess
	}
	own.Take(b.ofCaller, now)
	own.open++
	return boundOfNone
}

// end gives a read back unless it missed.
func (b *bounds) end(name string, missed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.bucketOf(name)
	if own != nil {
		own.open = max(0, own.open-1)
	}
	if missed {
		return
	}
	b.all.Return(b.ofAll)
	if own != nil {
		own.Return(b.ofCaller)
	}
}

// bucketOf returns the bucket of a caller; nil if there is none.
func (b *bounds) bucketOf(name string) *callerBucket {
	own, ok := b.callers.Get(maphash.String(b.seed, name))
	if !ok {
		return nil
	}
	return own.(*callerBucket) //nolint:forcetypeassert // begin adds nothing else
}
