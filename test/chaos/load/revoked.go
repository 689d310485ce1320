package load

import (
	"context"
	"fmt"
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
	// answerTime bounds how long all running replicas may take to answer the revoked key once no fault is injected.
	answerTime = time.Minute
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
			l.tryKey(ctx, replica, false)
		}
		sleep(ctx, rand.N(revokedPause))
	}
}

// UseRevokedKeyAgain uses the revoked key at every running replica until it answers, after Run, also if that was too short for it.
func (l *Load) UseRevokedKeyAgain(ctx context.Context) error {
	sleep(ctx, time.Until(l.refusedSince))
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for _, replica := range l.Project.Replicas() {
		for !l.tryKey(ctx, replica.API, true) {
			if ctx.Err() != nil {
				return fmt.Errorf("use the revoked key at %s, which never answered: %w", replica.Name, ctx.Err())
			}
			sleep(ctx, revokedPause)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// tryKey uses the revoked key once, records the answer and reports whether one came.
func (l *Load) tryKey(ctx context.Context, replica string, last bool) bool {
	asked := time.Now()
	status, body := l.sendRequest(ctx, http.MethodGet, replica+"/api/verify/status?id="+l.recent.pickRandom(),
		http.Header{"Authorization": {"Bearer " + l.revoked}}, "")
	l.recordError(l.KeyTries.Note(ledger.KeyTry{
		Asked: asked, At: time.Now(), Replica: replica, Last: last, Answer: status, Error: readErrorCode(body),
	}))
	return status != 0
}
