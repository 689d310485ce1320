package messenger

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

var begin = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func TestCooldown(t *testing.T) {
	g := NewWithT(t)
	o := NewCooldown(100, time.Hour)
	g.Expect(o.TryStart(begin, "a", "b")).To(BeTrue())
	g.Expect(o.TryStart(begin.Add(time.Hour-time.Second), "a", "b")).To(BeFalse())
	g.Expect(o.TryStart(begin, "ab")).To(BeTrue(), "words do not run together")
	g.Expect(o.TryStart(begin.Add(time.Hour), "a", "b")).To(BeTrue())
	o.Undo("a", "b")
	g.Expect(o.TryStart(begin.Add(time.Hour), "a", "b")).To(BeTrue())
	g.Expect(o.hasher.hash("a")).NotTo(Equal(NewCooldown(1, time.Hour).hasher.hash("a")), "no other process can make the key")
}

func TestStrangerLimiter(t *testing.T) {
	g := NewWithT(t)
	s := NewStrangerLimiter()
	g.Expect(s.Decide(begin, "one")).To(Equal(AnswerStranger))
	g.Expect(s.Decide(begin, "one")).To(Equal(StrangerAnswered))
	g.Expect(s.Decide(begin, "two")).To(Equal(StrangersLimited), "one a second in all")
	g.Expect(s.Decide(begin.Add(time.Second), "two")).To(Equal(AnswerStranger), "the sender that was passed over gets an answer later")
	g.Expect(s.Decide(begin.Add(24*time.Hour-time.Second), "one")).To(Equal(StrangerAnswered))
	g.Expect(s.Decide(begin.Add(24*time.Hour), "one")).To(Equal(AnswerStranger))
	s.Undo("one")
	g.Expect(s.Decide(begin.Add(25*time.Hour), "one")).To(Equal(AnswerStranger))
}

func TestSenderLimiter(t *testing.T) {
	g := NewWithT(t)
	s := NewSenderLimiter()
	for range MaxPerSender {
		g.Expect(s.Exceeded(begin, "one")).To(BeFalse())
		s.Count(begin, "one")
	}
	g.Expect(s.Exceeded(begin, "one")).To(BeTrue())
	g.Expect(s.Exceeded(begin, "two")).To(BeFalse())
	for range MaxPerSender {
		g.Expect(s.Exceeded(begin.Add(SenderWindow), "one")).To(BeFalse(), "a minute later the sender may again")
		s.Count(begin.Add(SenderWindow), "one")
	}
	g.Expect(s.Exceeded(begin.Add(SenderWindow), "one")).To(BeTrue())
}

func TestReplyQueue_sendsWhatWaitsAtTheEnd(t *testing.T) {
	g := NewWithT(t)
	q := NewReplyQueue(func(ctx context.Context, reply SendFunc) { _ = reply(ctx) })
	var sent atomic.Int64
	for range ReplyQueueSize {
		g.Expect(q.Add(func(context.Context) error { sent.Add(1); return nil })).To(BeTrue())
	}
	g.Expect(q.Len()).To(Equal(ReplyQueueSize))
	g.Expect(q.Add(func(context.Context) error { return nil })).To(BeFalse(), "there is no room")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(q.Start(ctx)).To(Succeed())
	g.Expect(sent.Load()).To(BeEquivalentTo(ReplyQueueSize))
}

// TestReplyQueue_ends in time without an answer, and leaves nothing running.
func TestReplyQueue_ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		q := NewReplyQueue(func(ctx context.Context, reply SendFunc) { _ = reply(ctx) })
		for range ReplyQueueSize {
			q.Add(func(ctx context.Context) error { <-ctx.Done(); return nil })
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- q.Start(ctx) }()
		synctest.Wait()
		began := time.Now()
		cancel()
		g.Expect(<-ended).To(Succeed())
		g.Expect(time.Since(began)).To(BeNumerically("<=", replyDrain+replyTimeout))
		g.Expect(q.Len()).To(BeZero())
	})
}
