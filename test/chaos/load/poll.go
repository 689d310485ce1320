package load

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// recentIDs are the ids of the last requests that began.
type recentIDs struct {
	mu  sync.Mutex
	ids []string
	at  int
}

const maxRecent = 4096

func (r *recentIDs) add(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) < maxRecent {
		r.ids = append(r.ids, id)
		return
	}
	r.ids[r.at] = id
	r.at = (r.at + 1) % maxRecent
}

func (r *recentIDs) pickRandom() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) == 0 {
		return ""
	}
	return r.ids[rand.N(len(r.ids))]
}

// pollStatuses queries random requests at random replicas, and sometimes waits for a change.
func (l *Load) pollStatuses(ctx context.Context, seed uint64) {
	random := rand.New(rand.NewPCG(l.Seed, ^seed))
	for ctx.Err() == nil {
		sleep(ctx, time.Duration(20+random.IntN(40))*time.Millisecond)
		replica, ok := l.pickReplica()
		id := l.recent.pickRandom()
		if !ok || id == "" {
			continue
		}
		wait := ""
		if random.IntN(10) == 0 {
			wait = "1s"
		}
		l.queryStatus(ctx, replica, id, wait)
	}
}
