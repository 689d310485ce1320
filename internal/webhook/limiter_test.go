package webhook

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// fillSlots acquires every free slot and returns how many there were.
func fillSlots(l *limiter, key string, now time.Time) int {
	for n := 0; ; n++ {
		if l.tryAcquire(key, now) != nil {
			return n
		}
	}
}

func TestLimiter_opensSlowlyAndCloses(t *testing.T) {
	g := NewWithT(t)
	l, now := newLimiter(), time.Now()
	g.Expect(l.freeSlots("a:443")).To(Equal(SlowStart))
	g.Expect(fillSlots(l, "a:443", now)).To(Equal(SlowStart), "after a restart")
	g.Expect(l.freeSlots("a:443")).To(BeZero())

	// Each delivery releases its own slot and adds one.
	l.release("a:443", true, time.Millisecond)
	g.Expect(fillSlots(l, "a:443", now)).To(Equal(2))
	for range 3 * MaxInFlight {
		l.release("a:443", true, time.Millisecond)
		_ = l.tryAcquire("a:443", now)
	}
	fillSlots(l, "a:443", now)
	g.Expect(l.receivers["a:443"].inFlight).To(Equal(MaxInFlight))

	for range MaxInFlight {
		l.release("a:443", false, time.Millisecond)
	}
	g.Expect(fillSlots(l, "a:443", now)).To(Equal(SlowStart), "failures close it again, but no further")
}

func TestLimiter_keepsReceiversApart(t *testing.T) {
	g := NewWithT(t)
	l, now := newLimiter(), time.Now()
	fillSlots(l, "dead:443", now)
	g.Expect(l.tryAcquire("well:443", now)).To(Succeed())
	g.Expect(l.tryAcquire("dead:443", now)).NotTo(Succeed())
	l.releaseUnused("dead:443")
	g.Expect(l.tryAcquire("dead:443", now)).To(Succeed(), "an unused slot is free again")
}

func TestLimiter_spreadsRejectedCallers(t *testing.T) {
	g := NewWithT(t)
	l, now := newLimiter(), time.Now()
	fillSlots(l, "a:443", now)
	var waits []time.Duration
	for range 4000 {
		var busy *BusyError
		g.Expect(errors.As(l.tryAcquire("a:443", now), &busy)).To(BeTrue())
		waits = append(waits, busy.After)
	}
	g.Expect(waits[0]).To(BeNumerically("<=", 300*time.Millisecond))
	for i := range waits[1:] {
		g.Expect(waits[i+1]).To(BeNumerically(">=", waits[i]))
	}
	g.Expect(waits[50]).To(BeNumerically(">", 40*firstGuess/SlowStart), "an attempt's share of the slots each")
	g.Expect(waits[3999]).To(Equal(maxBusy))

	var later *BusyError
	g.Expect(errors.As(l.tryAcquire("a:443", now.Add(time.Hour)), &later)).To(BeTrue())
	g.Expect(later.After).To(Equal(maxBusy/SlowStart), "an old queue is forgotten, but a hanging attempt may last a full timeout more")
	g.Expect(later.Error()).To(ContainSubstring("in flight"))
}

func TestLimiter_makesCallersWaitLongerForAHangingReceiver(t *testing.T) {
	g := NewWithT(t)
	l, now := newLimiter(), time.Now()
	g.Expect(l.checkBusy("a:443", now)).To(Succeed(), "unknown receiver")
	fillSlots(l, "a:443", now)
	now = now.Add(10 * time.Second)
	busy, ok := errors.AsType[*BusyError](l.checkBusy("a:443", now))
	g.Expect(ok).To(BeTrue())
	g.Expect(busy.After).To(BeNumerically("~", time.Second, 100*time.Millisecond), "ten seconds for ten slots")
	l.release("a:443", true, 10*time.Second)
	g.Expect(l.checkBusy("a:443", now)).To(Succeed(), "checkBusy acquires no slot")
	g.Expect(l.tryAcquire("a:443", now)).To(Succeed())
}

func TestLimiter_forgetsIdleReceivers(t *testing.T) {
	g := NewWithT(t)
	l, now := newLimiter(), time.Now()
	g.Expect(l.tryAcquire("kept:443", now)).To(Succeed())
	for i := range 3 * maxReceivers {
		key := strconv.Itoa(i)
		g.Expect(l.tryAcquire(key, now)).To(Succeed())
		l.release(key, true, time.Millisecond)
	}
	g.Expect(len(l.receivers)).To(BeNumerically("<=", maxReceivers))
	g.Expect(l.receivers).To(HaveKey("kept:443"))
}

func TestLimiter_neverExceedsItsBound(t *testing.T) {
	l := newLimiter()
	var mu sync.Mutex
	var running, most int
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			for range 200 {
				if l.tryAcquire("a:443", time.Now()) != nil {
					continue
				}
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				mu.Lock()
				running--
				mu.Unlock()
				l.release("a:443", true, time.Microsecond)
			}
		})
	}
	group.Wait()
	NewWithT(t).Expect(most).To(BeNumerically("<=", MaxInFlight))
	NewWithT(t).Expect(l.receivers["a:443"].inFlight).To(BeZero())
}
