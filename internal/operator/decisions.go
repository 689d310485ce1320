package operator

import (
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// tokenKey is what a token is remembered by.
type tokenKey [sha256.Size]byte

// decision is the status that a token gets for a while.
type decision struct {
	status int
	until  time.Time
	// known is until when the token is known; zero for one that was not allowed.
	known time.Time
}

// decisions are those of late, bounded in number.
type decisions struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	byToken map[tokenKey]decision
}

func newDecisions(c clock.PassiveClock) *decisions {
	return &decisions{clock: c, byToken: make(map[tokenKey]decision)}
}

// find returns the status for a token, zero if it must be reviewed, and whether the token was allowed within the last hour.
func (d *decisions) find(key tokenKey) (status int, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.byToken[key]
	now := d.clock.Now()
	if now.Before(found.until) {
		status = found.status
	}
	return status, now.Before(found.known)
}

// store keeps a decision. If memory is full, refusals go first: strangers must not push out an admitted client.
func (d *decisions) store(key tokenKey, status int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	delete(d.byToken, key)
	if len(d.byToken) >= maxDecisions {
		for old, decided := range d.byToken {
			if !now.Before(decided.known) {
				delete(d.byToken, old)
			}
		}
	}
	if len(d.byToken) >= maxDecisions {
		return
	}
	if status == http.StatusOK {
		d.byToken[key] = decision{status: status, until: now.Add(allowedFor), known: now.Add(knownFor)}
	} else {
		d.byToken[key] = decision{status: status, until: now.Add(refusedFor)}
	}
}
