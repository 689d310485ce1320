package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/phoneproof/phoneproof/test/system"
)

// roster is the replicas by place: one that dies is replaced in its place by the next.
type roster struct {
	project *system.Project
	places  []*place
}

// place is where one replica after the other serves. Who holds busy may end and start it.
type place struct {
	busy sync.Mutex

	mu      sync.Mutex
	replica *system.Replica
}

func (p *place) now() *system.Replica {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.replica
}

func (p *place) put(r *system.Replica) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replica = r
}

// fill starts so many replicas and returns when they are ready.
func (r *roster) fill(ctx context.Context, project *system.Project, count int) error {
	r.project = project
	for range count {
		replica, err := project.StartReplica()
		if err != nil {
			return err
		}
		r.places = append(r.places, &place{replica: replica})
	}
	return r.ready(ctx)
}

// ready returns when every replica is.
func (r *roster) ready(ctx context.Context) error {
	for _, p := range r.places {
		if err := p.now().AwaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// addresses are those of the API, dead or alive.
func (r *roster) addresses() []string {
	all := make([]string, len(r.places))
	for i, p := range r.places {
		all[i] = p.now().API
	}
	return all
}

// kill ends the replica of a place at once and starts the next.
func (r *roster) kill(p *place) error {
	p.now().Kill()
	return r.start(p)
}

func (r *roster) start(p *place) error {
	replica, err := r.project.StartReplica()
	if err != nil {
		return fmt.Errorf("replace a replica: %w", err)
	}
	p.put(replica)
	return nil
}

// leader returns the place of the replica that says it holds the lease; another one if none does at the moment.
func (r *roster) leader(otherwise int) *place {
	for _, p := range r.places {
		log, err := os.ReadFile(p.now().LogFile)
		if err == nil && bytes.Count(log, []byte(`"msg":"leading"`)) > bytes.Count(log, []byte(`"msg":"no longer leading"`)) {
			return p
		}
	}
	return r.places[otherwise%len(r.places)]
}
