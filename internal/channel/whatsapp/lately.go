package whatsapp

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"
)

// sentLately is what this process remembers of the messages it sent, so that it does not repeat itself. It is bounded and
// knows senders by hashes only, under a key that nobody outside the process has.
type sentLately struct {
	secret       [sha256.Size]byte
	prompted     *recent
	replied      *recent
	strangers    *recent
	strangerRate *rate.Limiter
}

func newSentLately() *sentLately {
	m := &sentLately{
		prompted: newRecent(maxPrompted), replied: newRecent(maxReplied), strangers: newRecent(maxStrangers),
		strangerRate: rate.NewLimiter(strangerRate, 1),
	}
	_, _ = rand.Read(m.secret[:]) // never fails (crypto/rand)
	return m
}

// memoryKey is a keyed hash.
type memoryKey [sha256.Size]byte

// key returns the hash of some words, none of which holds a NUL.
func (m *sentLately) key(words ...string) memoryKey {
	return memoryKey(keyed(m.secret[:], []byte(strings.Join(words, "\x00"))))
}

// recent remembers when something happened last, for as many things as it holds; the one unused for longest goes.
type recent struct {
	mu    sync.Mutex // over the look and the note together
	times *lru.Cache
}

func newRecent(size int) *recent { return &recent{times: lru.New(size)} }

// due tells whether key did not happen within pause before now, and if so notes that it happens now.
func (r *recent) due(key memoryKey, now time.Time, pause time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.times.Get(key); ok && now.Sub(last.(time.Time)) < pause { //nolint:forcetypeassert // only times are put in
		return false
	}
	r.times.Add(key, now)
	return true
}

// forget undoes due.
func (r *recent) forget(key memoryKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times.Remove(key)
}
