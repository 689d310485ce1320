package messenger

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"
)

// wordHash is the keyed hash of some words.
type wordHash [sha256.Size]byte

// hasher makes keys that mean nothing outside of the process.
type hasher struct{ secret [sha256.Size]byte }

func newHasher() hasher {
	var h hasher
	_, _ = rand.Read(h.secret[:]) // never fails (crypto/rand)
	return h
}

// hash returns the hash of some words, none of which holds a NUL.
func (h hasher) hash(words ...string) wordHash {
	mac := hmac.New(sha256.New, h.secret[:])
	for _, word := range words {
		io.WriteString(mac, word+"\x00") //nolint:errcheck // hash.Hash never returns an error
	}
	return wordHash(mac.Sum(nil))
}

// Cooldown remembers when something happened last, for as many things as it holds; the one unused for longest goes.
type Cooldown struct {
	hasher hasher
	pause  time.Duration

	mu    sync.Mutex // over the look and the note together
	times *lru.Cache
}

// NewCooldown returns a memory of that many things, each of which may happen again after a pause.
func NewCooldown(things int, pause time.Duration) *Cooldown {
	return &Cooldown{hasher: newHasher(), pause: pause, times: lru.New(things)}
}

// TryStart reports whether what the words name did not happen within the pause before now, and if so records that it does now.
func (o *Cooldown) TryStart(now time.Time, words ...string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.hasher.hash(words...)
	if last, ok := o.times.Get(k); ok && now.Sub(last.(time.Time)) < o.pause { //nolint:forcetypeassert // only times are put in
		return false
	}
	o.times.Add(k, now)
	return true
}

// Undo undoes TryStart.
func (o *Cooldown) Undo(words ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.times.Remove(o.hasher.hash(words...))
}

const (
	// strangerPause is how long a sender whose messages mean nothing to us gets no second answer.
	strangerPause = 24 * time.Hour
	// strangersPerSecond is how many such answers there are, to all of them together.
	strangersPerSecond = 1
	// maxStrangers holds all senders that can have got one within the pause, with a margin: none is forgotten early.
	maxStrangers = 90_000
)

// StrangerDecision is whether a sender whose message means nothing to us is answered.
type StrangerDecision int

// What becomes of strangers.
const (
	AnswerStranger   StrangerDecision = iota
	StrangerAnswered                  // the sender had an answer within a day
	StrangersLimited                  // others had theirs within the second
)

// StrangerLimiter decides which messages that mean nothing to us are answered: one a day for each sender, one a second in all.
type StrangerLimiter struct {
	answered *Cooldown
	rate     *rate.Limiter
}

// NewStrangerLimiter returns a limiter that knows no sender.
func NewStrangerLimiter() *StrangerLimiter {
	return &StrangerLimiter{answered: NewCooldown(maxStrangers, strangerPause), rate: rate.NewLimiter(strangersPerSecond, 1)}
}

// Decide returns whether a sender is answered now, and remembers it if so.
func (s *StrangerLimiter) Decide(now time.Time, sender string) StrangerDecision {
	switch {
	case !s.answered.TryStart(now, sender):
		return StrangerAnswered
	case !s.rate.AllowN(now, 1):
		s.answered.Undo(sender)
		return StrangersLimited
	default:
		return AnswerStranger
	}
}

// Undo undoes Decide for an answer that could not be sent.
func (s *StrangerLimiter) Undo(sender string) { s.answered.Undo(sender) }

const (
	// MaxPerSender bounds the messages of one sender that are looked at within SenderWindow, so that guessing codes and
	// making us write costs little. A verification needs no more than a few.
	MaxPerSender = 20
	// SenderWindow is the time that messages are counted in.
	SenderWindow = time.Minute
	// maxSenders bounds the senders that are counted.
	maxSenders = 10_000
)

// SenderLimiter counts the messages of each sender within a window.
type SenderLimiter struct {
	hasher hasher

	mu     sync.Mutex
	counts map[wordHash]int
	until  time.Time
}

// NewSenderLimiter returns a limiter that has counted nothing.
func NewSenderLimiter() *SenderLimiter { return &SenderLimiter{hasher: newHasher()} }

// Exceeded reports whether a sender had all the messages that one may have.
func (s *SenderLimiter) Exceeded(now time.Time, sender string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.until) && s.counts[s.hasher.hash(sender)] >= MaxPerSender
}

// Count counts a message. A window with too many senders ends early: then one who has too many goes on a little sooner.
func (s *SenderLimiter) Count(now time.Time, sender string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !now.Before(s.until) || len(s.counts) >= maxSenders {
		s.counts, s.until = make(map[wordHash]int), now.Add(SenderWindow)
	}
	s.counts[s.hasher.hash(sender)]++
}
