package reply

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

var begin = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func TestOnce(t *testing.T) {
	g := NewWithT(t)
	o := NewOnce(100, time.Hour)
	g.Expect(o.Due(begin, "a", "b")).To(BeTrue())
	g.Expect(o.Due(begin.Add(time.Hour-1), "a", "b")).To(BeFalse())
	g.Expect(o.Due(begin, "ab")).To(BeTrue(), "words do not run together")
	g.Expect(o.Due(begin.Add(time.Hour), "a", "b")).To(BeTrue())
	o.Forget("a", "b")
	g.Expect(o.Due(begin.Add(time.Hour), "a", "b")).To(BeTrue())
	for i := range 1000 {
		o.Due(begin, strconv.Itoa(i))
	}
	g.Expect(o.times.Len()).To(Equal(100), "it is bounded")
	g.Expect(o.hasher.key("a")).NotTo(Equal(NewOnce(1, 0).hasher.key("a")), "no other process can make the key")
}

func TestStrangers(t *testing.T) {
	g := NewWithT(t)
	s := NewStrangers()
	g.Expect(s.Judge(begin, "one")).To(Equal(Answer))
	g.Expect(s.Judge(begin, "one")).To(Equal(Repeated))
	g.Expect(s.Judge(begin, "two")).To(Equal(Limited), "one a second in all")
	g.Expect(s.Judge(begin.Add(time.Second), "two")).To(Equal(Answer), "the sender that was passed over gets an answer later")
	g.Expect(s.Judge(begin.Add(24*time.Hour-1), "one")).To(Equal(Repeated))
	g.Expect(s.Judge(begin.Add(24*time.Hour), "one")).To(Equal(Answer))
	s.Forget("one")
	g.Expect(s.Judge(begin.Add(25*time.Hour), "one")).To(Equal(Answer))
}

func TestSenders(t *testing.T) {
	g := NewWithT(t)
	s := NewSenders()
	for range MaxPerSender {
		g.Expect(s.Full(begin, "one")).To(BeFalse())
		s.Add(begin, "one")
	}
	g.Expect(s.Full(begin, "one")).To(BeTrue())
	g.Expect(s.Full(begin, "two")).To(BeFalse())
	g.Expect(s.Full(begin.Add(SenderWindow), "one")).To(BeFalse(), "a minute later the sender may again")
	for i := range 5 * maxSenders {
		s.Add(begin, strconv.Itoa(i))
	}
	g.Expect(len(s.counts)).To(BeNumerically("<=", maxSenders))
}

func TestQueue_sendsWhatWaitsAtTheEnd(t *testing.T) {
	g := NewWithT(t)
	q := NewQueue()
	var sent atomic.Int64
	for range Size {
		g.Expect(q.Add(func(context.Context) { sent.Add(1) })).To(BeTrue())
	}
	g.Expect(q.Len()).To(Equal(Size))
	g.Expect(q.Add(func(context.Context) {})).To(BeFalse(), "there is no room")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(q.Start(ctx)).To(Succeed())
	g.Expect(sent.Load()).To(BeEquivalentTo(Size))
}

// TestQueue_ends in time though nobody answers, and leaves nothing running.
func TestQueue_ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		q := NewQueue()
		for range Size {
			q.Add(func(ctx context.Context) { <-ctx.Done() })
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- q.Start(ctx) }()
		synctest.Wait()
		began := time.Now()
		cancel()
		g.Expect(<-ended).To(Succeed())
		g.Expect(time.Since(began)).To(BeNumerically("<=", drain+timeout))
		g.Expect(q.Len()).To(BeZero())
	})
}
