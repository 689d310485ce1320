package load

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

const (
	// revokeAfter is the time before the key is revoked, and revocationTime how long every replica may take to learn of
	// it: longer than any freeze.
	revokeAfter    = 2 * time.Second
	revocationTime = 20 * time.Second
	// revokedPause is the longest pause between two uses of the revoked key.
	revokedPause = 500 * time.Millisecond
)

// useRevokedKey revokes an API key that was valid so far, and uses it at any replica from when each must refuse it, whatever fails
// meanwhile.
func (l *Load) useRevokedKey(ctx context.Context) {
	sleep(ctx, revokeAfter)
	key, err := l.Revoke()
	l.recordError(err)
	l.revoked, l.refusedSince = key, time.Now().Add(revocationTime)
	sleep(ctx, revocationTime)
	for ctx.Err() == nil {
		if replica, ok := l.pickReplica(); ok {
			l.tryKey(ctx, replica)
		}
		sleep(ctx, rand.N(revokedPause))
	}
}

// UseRevokedKeyAgain uses the revoked key at every replica, after Run, also if that was too short for it.
func (l *Load) UseRevokedKeyAgain(ctx context.Context) error {
	sleep(ctx, time.Until(l.refusedSince))
	for _, replica := range l.Replicas() {
		l.tryKey(ctx, replica)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// tryKey uses the revoked key once and records the answer.
func (l *Load) tryKey(ctx context.Context, replica string) {
	asked := time.Now()
	status, body := l.sendRequest(ctx, http.MethodGet, replica+"/api/verify/status?id="+l.recent.pickRandom(),
		http.Header{"Authorization": {"Bearer " + l.revoked}}, "")
	l.recordError(l.KeyTries.Note(ledger.KeyTry{Asked: asked, At: time.Now(), Answer: status, Error: readErrorCode(body)}))
}
