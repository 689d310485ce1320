package messenger

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"time"

	"github.com/phoneproof/phoneproof/internal/tokenbucket"
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
	each   tokenbucket.Rate
	things *tokenbucket.Limiter[wordHash]
}

// NewCooldown returns a memory of that many things, each of which may happen again after a pause.
func NewCooldown(things int, pause time.Duration) *Cooldown {
	return &Cooldown{
		hasher: newHasher(), each: tokenbucket.Rate{PerSecond: 1 / pause.Seconds(), Burst: 1},
		things: tokenbucket.NewLimiter[wordHash](things),
	}
}

// TryStart reports whether what the words name did not happen within the pause before now, and if so records that it does now.
func (o *Cooldown) TryStart(now time.Time, words ...string) bool {
	return o.things.Take(o.hasher.hash(words...), o.each, now)
}

// Undo undoes TryStart.
func (o *Cooldown) Undo(words ...string) { o.things.Return(o.hasher.hash(words...), o.each) }

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
type StrangerLimiter struct{ *Cooldown }

// NewStrangerLimiter returns a limiter that knows no sender.
func NewStrangerLimiter() *StrangerLimiter {
	return &StrangerLimiter{NewCooldown(maxStrangers, strangerPause)}
}

// Decide returns whether a sender is answered now, and remembers it if so.
func (s *StrangerLimiter) Decide(now time.Time, sender string) StrangerDecision {
	all := tokenbucket.Rate{PerSecond: strangersPerSecond, Burst: 1}
	switch s.things.TakeBoth(s.hasher.hash(sender), s.each, all, now) {
	case tokenbucket.BoundOfKey:
		return StrangerAnswered
	case tokenbucket.BoundOfAll:
		return StrangersLimited
	default:
		return AnswerStranger
	}
}

const (
	// MaxPerSender bounds the messages of one sender that are looked at within SenderWindow, so that guessing codes and
	// making us write costs little. A verification needs no more than a few.
	MaxPerSender = 20
	// SenderWindow is the time that messages are counted in.
	SenderWindow = time.Minute
	// maxSenders bounds the senders that are counted.
	maxSenders = 10_000
)

// SenderLimiter counts the messages of each sender.
type SenderLimiter struct {
	hasher   hasher
	messages *tokenbucket.Limiter[wordHash]
}

// senderRate lets a sender have a window's messages at once, and as many in each window after that.
var senderRate = tokenbucket.Rate{PerSecond: MaxPerSender / SenderWindow.Seconds(), Burst: MaxPerSender}

// NewSenderLimiter returns a limiter that has counted nothing.
func NewSenderLimiter() *SenderLimiter {
	return &SenderLimiter{hasher: newHasher(), messages: tokenbucket.NewLimiter[wordHash](maxSenders)}
}

// Exceeded reports whether a sender had all the messages that one may have.
func (s *SenderLimiter) Exceeded(now time.Time, sender string) bool {
	return !s.messages.Has(s.hasher.hash(sender), senderRate, now)
}

// Count counts a message.
func (s *SenderLimiter) Count(now time.Time, sender string) {
	s.messages.Charge(s.hasher.hash(sender), senderRate, now)
}
