package load

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// recent are the requests that were begun last.
type recent struct {
	mu  sync.Mutex
	ids []string
	at  int
}

const maxRecent = 4096

func (r *recent) add(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) < maxRecent {
		r.ids = append(r.ids, id)
		return
	}
	r.ids[r.at] = id
	r.at = (r.at + 1) % maxRecent
}

func (r *recent) any() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) == 0 {
		return ""
	}
	return r.ids[rand.N(len(r.ids))]
}

// poll asks for requests by chance, at replicas by chance, and sometimes waits for a change.
func (l *Load) poll(ctx context.Context, seed uint64) {
	random := rand.New(rand.NewPCG(l.Seed, ^seed))
	for ctx.Err() == nil {
		pause(ctx, time.Duration(20+random.IntN(40))*time.Millisecond)
		replica, ok := l.any()
		id := l.recent.any()
		if !ok || id == "" {
			continue
		}
		wait := ""
		if random.IntN(10) == 0 {
			wait = "1s"
		}
		l.ask(ctx, replica, id, wait)
	}
}
