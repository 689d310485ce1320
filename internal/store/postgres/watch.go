package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// pollEvery is how soon a subscriber learns of what another replica changed; of its own changes a replica tells at once.
// One query serves all subscribers. LISTEN would be faster, and would have all commits of the database wait in one line.
const pollEvery = 300 * time.Millisecond

// watch tells subscribers of changes.
type watch struct {
	verification.Notifier

	mu      sync.Mutex
	watched map[string]*watched
}

// watched is a request that somebody subscribed to.
type watched struct {
	subscribers int
	// version is that of the state which was seen last; -1 before any was, 0 where there is none.
	version int64
}

// versioned is an id with the version of its state.
type versioned struct {
	id      string
	version int64
}

func scanVersion(row pgx.CollectableRow) (v versioned, err error) {
	err = row.Scan(&v.id, &v.version)
	return v, err
}

func (w *watch) subscribe(id string) (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched == nil {
		w.watched = make(map[string]*watched)
	}
	entry := w.watched[id]
	if entry == nil {
		entry = &watched{version: -1}
		w.watched[id] = entry
	}
	entry.subscribers++
	changes, cancel := w.Subscribe(id)
	return changes, sync.OnceFunc(func() {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		if entry.subscribers--; entry.subscribers == 0 {
			delete(w.watched, id)
		}
	})
}

// ids are the requests that somebody subscribed to.
func (w *watch) ids() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]string, 0, len(w.watched))
	for id := range w.watched {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// see notes the current versions of the ids that were asked for. What is seen for the first time is told of too: it may
// have changed between the subscriber's own look and this one.
func (w *watch) see(asked []string, current []versioned) {
	versions := make(map[string]int64, len(current))
	for _, v := range current {
		versions[v.id] = v.version
	}
	var changed []string
	w.mu.Lock()
	for _, id := range asked {
		if entry := w.watched[id]; entry != nil && entry.version != versions[id] {
			entry.version = versions[id]
			changed = append(changed, id)
		}
	}
	w.mu.Unlock()
	for _, id := range changed {
		w.Notify(id)
	}
}

// pollUntilDone looks for changes by other replicas while anybody waits for one.
func (s *Store) pollUntilDone(ctx context.Context) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asked := s.watch.ids()
		if len(asked) == 0 {
			continue
		}
		err := s.once(ctx, func(c *pgx.Conn) error {
			rows, err := c.Query(ctx, sqlVersions, s.options.Project, asked)
			if err != nil {
				return err
			}
			current, err := pgx.CollectRows(rows, scanVersion)
			if err == nil {
				s.watch.see(asked, current)
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			s.options.Log.V(1).Info("could not look for changes", "reason", err.Error())
		}
	}
}
