package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/controlplane"
	"github.com/phoneproof/phoneproof/test/pgserver"
	"github.com/phoneproof/phoneproof/test/ports"
)

// Store is where the projects of a system keep their requests.
type Store string

// The stores, as the command line names them.
const (
	Memory     Store = "memory"
	Kubernetes Store = "kubernetes"
	PostgreSQL Store = "postgresql"
)

// Options say what to start. Store is required.
type Options struct {
	Store Store
	// Program is what Build made; empty builds it here. Who starts several systems builds once.
	Program string
	// Race builds the program with the race detector, if it is built here.
	Race bool
	// Project edits every project, before anything sees it.
	Project func(*verifyv1.VerificationProject)
	// WebhookURL receives the projects' events; empty is a URL that refuses them.
	WebhookURL string
	// Flags are further ones for every replica.
	Flags []string
	// Telegram is the base URL of a Bot API. Without one the projects have no bot.
	Telegram string
	// Graph is the base URL of a Graph API, which gets the replies to WhatsApp's users; empty is one that refuses them.
	Graph string
	// DatabaseURI says by which URI the replicas reach the database, such as through a line that can be cut.
	DatabaseURI func(uri string) string
	// APIServer changes how the replicas reach the API server: they come with tokens, and trust its authority.
	APIServer func(config *rest.Config) error
	// PostgreSQL are settings of the database server, by name.
	PostgreSQL map[string]string
	// Dir gets the logs and the secrets, and stays. Empty is a temporary one, which Stop removes.
	Dir string
}

// System is a store that runs, with its projects and their replicas. Its own Project is the first.
type System struct {
	*Project

	// Plane is the API server; nil unless that is the store.
	Plane *controlplane.ControlPlane
	// Admin may do anything on it.
	Admin client.Client
	// Database is the database server; nil unless that is the store.
	Database *pgserver.Server
	// Dir has the logs.
	Dir string

	options   Options
	temporary bool
	closers   []io.Closer

	mu       sync.Mutex
	projects []*Project
}

// Start returns when the store answers and the first project is there. It has no replica yet. The caller must Stop it.
func Start(ctx context.Context, o Options) (*System, error) {
	s := &System{options: o, Dir: o.Dir}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a system with the store %s: %w", o.Store, err), s.Stop())
	}
	return s, nil
}

func (s *System) start(ctx context.Context) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	if s.options.Program == "" {
		var err error
		if s.options.Program, err = Build(ctx, s.Dir, s.options.Race); err != nil {
			return err
		}
	}
	if err := s.startStore(ctx); err != nil {
		return err
	}
	var err error
	s.Project, err = s.NewProject(ctx, "first")
	return err
}

func (s *System) makeDir() error {
	if s.Dir != "" {
		return os.MkdirAll(s.Dir, 0o700)
	}
	var err error
	s.Dir, err = os.MkdirTemp("", "phoneproof-system-")
	s.temporary = err == nil
	return err
}

func (s *System) startStore(ctx context.Context) error {
	switch s.options.Store {
	case Memory:
		return nil
	case Kubernetes:
		return s.startPlane(ctx)
	case PostgreSQL:
		log, err := s.log("postgresql")
		if err != nil {
			return err
		}
		s.Database, err = pgserver.Start(ctx, pgserver.Options{Settings: s.options.PostgreSQL, Output: log})
		return err
	default:
		return errors.New("there is no such store")
	}
}

// log makes the file of somebody's log, which Stop closes.
func (s *System) log(name string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(s.Dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, file)
	return file, nil
}

// reserve returns an address that is the system's until Stop: a client of a replica that was killed reaches no other one.
func (s *System) reserve() (string, error) {
	reserved, err := ports.Reserve()
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, reserved)
	return reserved.Address(), nil
}

// Replicas are those of every project that run.
func (s *System) Replicas() []*Replica {
	s.mu.Lock()
	projects := append([]*Project(nil), s.projects...)
	s.mu.Unlock()
	var running []*Replica
	for _, p := range projects {
		running = append(running, p.Replicas()...)
	}
	return running
}

// Stop ends the replicas and then the store.
func (s *System) Stop() error {
	var all error
	for _, r := range s.Replicas() {
		r.Kill()
	}
	if s.Database != nil {
		all = errors.Join(all, s.Database.Stop())
	}
	if s.Plane != nil {
		all = errors.Join(all, s.Plane.Stop())
	}
	for _, c := range s.closers {
		all = errors.Join(all, c.Close())
	}
	if s.temporary {
		all = errors.Join(all, os.RemoveAll(s.Dir))
	}
	return all
}
