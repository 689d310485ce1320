package page

import (
	"slices"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/tokenbucket"
)

// All limits of the page. A page costs a read of the store, and one that follows its request a connection.
const (
	// maxFollowersPerTicket bounds the pages of one ticket that follow their request at once, the tabs of one person; a further one
	// takes the slot of the oldest, whose browser may be gone without a word.
	maxFollowersPerTicket = 4
	// followTime is how long a page follows in one call. It ends before the idle timeout of common proxies.
	followTime = 50 * time.Second
	// heartbeat is how often a stream without news shows that it lives, so that a connection that broke is noticed and freed.
	heartbeat = 15 * time.Second
	// writeTime limits one write to a stream whose client does not read.
	writeTime = 10 * time.Second
	// pollTime is how long a long poll lasts.
	pollTime = 25 * time.Second
	// storeTime limits each read and write of the store.
	storeTime = 1500 * time.Millisecond
	// maxBuckets bounds the requests whose calls are counted.
	maxBuckets = 20_000
	// maxMarks bounds the cookies that say which pages of this site were opened.
	maxMarks = 8
	// markLife is how long such a cookie is kept, in seconds: longer than a request lasts.
	markLife = 3600
	// maxForm limits the body of a form, in bytes.
	maxForm = 1 << 10
	// codeTime is how long after its creation a request with a code offers a message in its place.
	codeTime = 20 * time.Second
	// directQR is the most that a QR code of the messenger link holds, in bytes, so that a phone reads it from a screen. A longer
	// link is reached by the page itself.
	directQR = 500
)

// callRate is how often one request may be asked for.
var callRate = tokenbucket.Rate{PerSecond: 2, Burst: 40}

// followLimiter limits the pages that follow their request.
type followLimiter struct {
	holds *boundedhttp.HoldLimiter

	mu   sync.Mutex
	byID map[string][]*boundedhttp.Hold // the oldest first
}

// beginFollowing takes a slot that counts as that many connections; it returns nil if none is free.
func (l *followLimiter) beginFollowing(id string, connections int) *boundedhttp.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.byID[id]; len(own) >= maxFollowersPerTicket {
		own[0].Revoke()
		l.removeFollower(id, own[0])
	}
	slot := l.holds.Acquire(connections, true)
	if slot == nil {
		return nil
	}
	if l.byID == nil {
		l.byID = make(map[string][]*boundedhttp.Hold)
	}
	l.byID[id] = append(l.byID[id], slot)
	return slot
}

// endFollowing frees a slot, unless another call has taken it.
func (l *followLimiter) endFollowing(id string, slot *boundedhttp.Hold) {
	slot.Release()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeFollower(id, slot)
}

func (l *followLimiter) removeFollower(id string, slot *boundedhttp.Hold) {
	own := l.byID[id]
	i := slices.Index(own, slot)
	if i < 0 {
		return
	}
	if l.byID[id] = slices.Delete(own, i, i+1); len(l.byID[id]) == 0 {
		delete(l.byID, id)
	}
}
