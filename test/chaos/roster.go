package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/phoneproof/phoneproof/test/system"
)

// roster is the replicas by place: a replica that ends is replaced in its place.
type roster struct {
	project *system.Project
	places  []*place
}

// place is where one replica after the other serves. The holder of busy may stop and start it.
type place struct {
	busy sync.Mutex

	mu      sync.Mutex
	replica *system.Replica
}

func (p *place) current() *system.Replica {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.replica
}

func (p *place) setReplica(r *system.Replica) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replica = r
}

// startReplicas starts count replicas and returns when they are ready.
func (r *roster) startReplicas(ctx context.Context, project *system.Project, count int) error {
	r.project = project
	for range count {
		replica, err := project.StartReplica()
		if err != nil {
			return err
		}
		r.places = append(r.places, &place{replica: replica})
	}
	return r.awaitReady(ctx)
}

// awaitReady returns when every replica is ready.
func (r *roster) awaitReady(ctx context.Context) error {
	for _, p := range r.places {
		if err := p.current().AwaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// apiAddresses returns the addresses of the API, dead or alive.
func (r *roster) apiAddresses() []string {
	all := make([]string, len(r.places))
	for i, p := range r.places {
		all[i] = p.current().API
	}
	return all
}

// killReplica kills the replica of a place and starts the next.
func (r *roster) killReplica(p *place) error {
	p.current().Kill()
	return r.startReplica(p)
}

func (r *roster) startReplica(p *place) error {
	replica, err := r.project.StartReplica()
	if err != nil {
		return fmt.Errorf("replace replica: %w", err)
	}
	p.setReplica(replica)
	return nil
}

// findLeader returns the place of the replica that holds the lease by its log; if none does, the place with the number
// otherwise.
func (r *roster) findLeader(otherwise int) *place {
	for _, p := range r.places {
		log, err := os.ReadFile(p.current().LogFile)
		if err == nil && bytes.Count(log, []byte(`"msg":"leading"`)) > bytes.Count(log, []byte(`"msg":"no longer leading"`)) {
			return p
		}
	}
	return r.places[otherwise%len(r.places)]
}
