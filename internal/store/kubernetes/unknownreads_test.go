package kubernetes

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/tokenbucket"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// smallLimits are two reads for a caller and three for all callers of a kind, one of which comes back in a second.
func smallLimits() readLimits {
	own, all := tokenbucket.Rate{PerSecond: 1, Burst: 2}, tokenbucket.Rate{PerSecond: 1, Burst: 3}
	return readLimits{client: own, clients: all, sender: own, senders: all}
}

func TestUnknownReads(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakePassiveClock(noon)
	u := newUnknownReads(clock, smallLimits())
	reads := 0
	ask := func(c verification.Caller, found error) error {
		return u.limitRead(verification.WithCaller(t.Context(), c), func() error {
			reads++
			return found
		})
	}
	limited := MatchError(verification.ErrTooManyUnknown)
	absent := MatchError(verification.ErrNotFound)
	one, other, third := verification.Client("one"), verification.Client("other"), verification.Client("third")

	for range 100 {
		g.Expect(ask(one, nil)).To(Succeed(), "what is found counts for nothing")
		g.Expect(ask(one, errors.ErrUnsupported)).To(MatchError(errors.ErrUnsupported), "nor does a failure")
	}
	g.Expect(ask(one, verification.ErrNotFound)).To(absent)
	g.Expect(ask(one, verification.ErrNotFound)).To(absent)
	reads = 0
	g.Expect(ask(one, verification.ErrNotFound)).To(limited)
	g.Expect(ask(other, verification.ErrNotFound)).To(absent, "others go on")
	err := ask(other, verification.ErrNotFound)
	g.Expect(err).To(MatchError(verification.TooManyUnknown(nil)))
	g.Expect(err).NotTo(limited, "all together ask for too much, not this one")
	g.Expect(ask(verification.Sender("one"), verification.ErrNotFound)).To(absent, "senders have bounds of their own")
	g.Expect(u.limitRead(t.Context(), func() error { return verification.ErrNotFound })).To(absent, "this process is not bounded")
	g.Expect(reads).To(Equal(2))

	clock.SetTime(noon.Add(time.Second))
	g.Expect(ask(other, verification.ErrNotFound)).To(absent, "its own bucket was not emptied by the bound of all")
	g.Expect(ask(third, verification.ErrNotFound)).NotTo(Or(Succeed(), absent))
	clock.SetTime(noon.Add(-time.Hour))
	g.Expect(ask(one, verification.ErrNotFound)).NotTo(Or(Succeed(), absent), "a clock that is set back gives nothing")
}

// TestUnknownReads_ofCopiesAtOnce has copies of one message looked up at the same time: none of them is dropped for the
// others, which may fail and be all that there is of the message.
func TestUnknownReads_ofCopiesAtOnce(t *testing.T) {
	g := NewWithT(t)
	u := newUnknownReads(clocktesting.NewFakePassiveClock(noon), smallLimits())
	ctx := verification.WithCaller(t.Context(), verification.Sender("one"))
	var deepest error
	err := u.limitRead(ctx, func() error {
		return u.limitRead(ctx, func() error {
			deepest = u.limitRead(ctx, func() error { return nil })
			return errors.ErrUnsupported
		})
	})
	g.Expect(err).To(MatchError(errors.ErrUnsupported))
	g.Expect(deepest).To(MatchError(verification.TooManyUnknown(nil)))
	g.Expect(deepest).NotTo(MatchError(verification.ErrTooManyUnknown), "it is to be delivered again")
	for range 2 {
		g.Expect(u.limitRead(ctx, func() error { return verification.ErrNotFound })).To(MatchError(verification.ErrNotFound))
	}
	g.Expect(u.limitRead(ctx, func() error { return nil })).To(MatchError(verification.ErrTooManyUnknown), "now it is known to have missed")
}

func TestUnknownReads_metricsNameNoCaller(t *testing.T) {
	g := NewWithT(t)
	u := newUnknownReads(clocktesting.NewFakePassiveClock(noon), smallLimits())
	registry := prometheus.NewRegistry()
	g.Expect(u.registerMetrics(registry)).To(Succeed())
	ctx := verification.WithCaller(t.Context(), verification.Sender("+15550100199"))
	var refusal error
	for range 4 {
		refusal = u.limitRead(ctx, func() error { return verification.ErrNotFound })
	}
	g.Expect(fmt.Sprint(ctx, refusal)).NotTo(ContainSubstring("0100199"))
	g.Expect(testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP phoneproof_unknown_reads_refused_total Look-ups of unknown ids, codes and senders that were refused, by the kind of caller (client, sender) and of bound (caller, process).
# TYPE phoneproof_unknown_reads_refused_total counter
phoneproof_unknown_reads_refused_total{bound="caller",by="sender"} 2
`))).To(Succeed())
}

func TestLimits_fitTogether(t *testing.T) {
	g := NewWithT(t)
	l := defaultReadLimits()
	for _, pair := range [][2]tokenbucket.Rate{{l.client, l.clients}, {l.sender, l.senders}} {
		g.Expect(pair[0].PerSecond).To(BeNumerically("<=", pair[1].PerSecond/2), "one caller leaves room for others")
		g.Expect(pair[0].Burst).To(BeNumerically("<=", pair[1].Burst/2))
	}
}
