// Package requests are the commands about the requests of a project, whichever store keeps them: they start, list, show, watch, end and
// delete verifications, and send their events again.
package requests

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

// requestSource reads the requests of a project.
type requestSource interface {
	// List returns at most limit requests, newest first.
	List(ctx context.Context, query Query, limit int) ([]Request, error)
	// Get returns one request with its hints and attempts.
	Get(ctx context.Context, id string) (Request, error)
	// Watch calls show with each request that is new or changed, until ctx ends or show returns an error.
	Watch(ctx context.Context, query Query, show func(Request) error) error
	// Follow calls show with one request now and whenever it changes, until ctx ends or show returns an error. It fails with errNotFound
	// if there is no such request, and with errDeleted once there is none any more.
	Follow(ctx context.Context, id string, show func(Request) error) error
}

// The errors of Follow.
var (
	errNotFound = errors.New("not found")
	errDeleted  = errors.New("deleted while it was watched")
)

// describeAbsence returns the error for a request that is not there, and may have been before.
func describeAbsence(id string, wasThere bool) error {
	if wasThere {
		return fmt.Errorf("request %s: %w", id, errDeleted)
	}
	return fmt.Errorf("request %s: %w", id, errNotFound)
}

// openSource returns the source of a project: objects by the reader's own rights, or else the API of a pod by an API key. A key that a
// flag names decides for the API with any storage.
func openSource(ctx context.Context, env *plugin.Env, c *plugin.Client, key *keyFlags) (requestSource, error) {
	if c.UsesObjects() && !key.Named() {
		return &objects{client: c, now: time.Now}, nil
	}
	connected, err := connectAPI(ctx, env, c, key)
	if err != nil {
		return nil, fmt.Errorf("call the API of project %s: %w", c.Project.Name, err)
	}
	return &pages{api: connected, interval: pollInterval}, nil
}
