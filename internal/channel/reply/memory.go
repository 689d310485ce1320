package reply

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

// key is the keyed hash of some words.
type key [sha256.Size]byte

// hasher makes keys that mean nothing outside of the process.
type hasher struct{ secret [sha256.Size]byte }

func newHasher() hasher {
	var h hasher
	_, _ = rand.Read(h.secret[:]) // never fails (crypto/rand)
	return h
}

// key returns the hash of some words, none of which holds a NUL.
func (h hasher) key(words ...string) key {
	mac := hmac.New(sha256.New, h.secret[:])
	for _, word := range words {
		io.WriteString(mac, word+"\x00") //nolint:errcheck // hash.Hash never returns an error
	}
	return key(mac.Sum(nil))
}

// Once remembers when something happened last, for as many things as it holds; the one unused for longest goes.
type Once struct {
	hasher hasher
	pause  time.Duration

	mu    sync.Mutex // over the look and the note together
	times *lru.Cache
}

// NewOnce returns a memory of that many things, each of which may happen again after a pause.
func NewOnce(things int, pause time.Duration) *Once {
	return &Once{hasher: newHasher(), pause: pause, times: lru.New(things)}
}

// Due tells whether what the words name did not happen within the pause before now, and if so notes that it happens now.
func (o *Once) Due(now time.Time, words ...string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.hasher.key(words...)
	if last, ok := o.times.Get(k); ok && now.Sub(last.(time.Time)) < o.pause { //nolint:forcetypeassert // only times are put in
		return false
	}
	o.times.Add(k, now)
	return true
}

// Forget undoes Due.
func (o *Once) Forget(words ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.times.Remove(o.hasher.key(words...))
}

const (
	// strangerPause is how long a sender whose messages mean nothing to us gets no second answer.
	strangerPause = 24 * time.Hour
	// strangersPerSecond is how many such answers there are, to all of them together.
	strangersPerSecond = 1
	// maxStrangers holds everybody who can have got one within the pause, with a margin: nobody is forgotten early.
	maxStrangers = 90_000
)

// Stranger is whether a sender whose message means nothing to us is answered.
type Stranger int

// What becomes of strangers.
const (
	Answer   Stranger = iota
	Repeated          // the sender had an answer within a day
	Limited           // others had theirs within the second
)

// Strangers decides which messages that mean nothing to us are answered: one a day for each sender, one a second in all.
type Strangers struct {
	told *Once
	rate *rate.Limiter
}

// NewStrangers returns a decider that knows nobody.
func NewStrangers() *Strangers {
	return &Strangers{told: NewOnce(maxStrangers, strangerPause), rate: rate.NewLimiter(strangersPerSecond, 1)}
}

// Judge says whether a sender is answered now, and remembers it if so.
func (s *Strangers) Judge(now time.Time, sender string) Stranger {
	switch {
	case !s.told.Due(now, sender):
		return Repeated
	case !s.rate.AllowN(now, 1):
		s.told.Forget(sender)
		return Limited
	default:
		return Answer
	}
}

// Forget undoes Judge for an answer that could not be sent.
func (s *Strangers) Forget(sender string) { s.told.Forget(sender) }

const (
	// MaxPerSender bounds the messages of one sender that are looked at within SenderWindow, so that guessing codes and
	// making us write costs little. Nobody who verifies a number needs more than a few.
	MaxPerSender = 20
	// SenderWindow is the time that messages are counted in.
	SenderWindow = time.Minute
	// maxSenders bounds the senders that are counted.
	maxSenders = 10_000
)

// Senders counts the messages of each sender within a window.
type Senders struct {
	hasher hasher

	mu     sync.Mutex
	counts map[key]int
	until  time.Time
}

// NewSenders returns a count of nobody.
func NewSenders() *Senders { return &Senders{hasher: newHasher()} }

// Full reports whether a sender had all the messages that one may have.
func (s *Senders) Full(now time.Time, sender string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.until) && s.counts[s.hasher.key(sender)] >= MaxPerSender
}

// Add counts a message. A window with too many senders ends early: then one who has too many goes on a little sooner.
func (s *Senders) Add(now time.Time, sender string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !now.Before(s.until) || len(s.counts) >= maxSenders {
		s.counts, s.until = make(map[key]int), now.Add(SenderWindow)
	}
	s.counts[s.hasher.key(sender)]++
}
