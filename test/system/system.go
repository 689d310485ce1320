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

// Store is the kind of store in which the projects of a system keep their requests.
type Store string

// The stores, as the command line names them.
const (
	Memory     Store = "memory"
	Kubernetes Store = "kubernetes"
	PostgreSQL Store = "postgresql"
)

// Standby is the kind of standby of a database.
type Standby string

// The standbys, as the command line names them.
const (
	NoStandby    Standby = ""
	Synchronous  Standby = "synchronous"
	Asynchronous Standby = "asynchronous"
)

// PrimaryDatabase returns the database server that takes writes; nil with another store.
func (s *System) PrimaryDatabase() *pgserver.Server {
	if s.Pair != nil {
		return s.Pair.Primary()
	}
	return s.Database
}

// Options configure a system. Store is required.
type Options struct {
	Store Store
	// Program is the path that Build returned; if it is empty, Start builds it. Build once to start several systems.
	Program string
	// Project edits every project before it is created.
	Project func(*verifyv1.VerificationProject)
	// WebhookURL receives the projects' events; if it is empty, a URL that refuses connections is used.
	WebhookURL string
	// Flags are additional flags for every replica.
	Flags []string
	// Environment has additional environment variables of every replica, as NAME=VALUE.
	Environment []string
	// Telegram is the base URL of a Bot API. If it is empty, the projects have no bot.
	Telegram string
	// Gateway is the base URL of Telegram's Gateway; empty for none.
	Gateway string
	// Graph is the base URL of a Graph API, which receives the replies to WhatsApp users; if it is empty, a URL that refuses
	// connections is used.
	Graph string
	// DatabaseURI maps the URI of the database to the one that the replicas use, such as that of a proxy.
	DatabaseURI func(uri string) string
	// APIServer edits how the replicas reach the API server. They authenticate with tokens, and trust its CA.
	APIServer func(config *rest.Config) error
	// Standby gives the database a standby.
	Standby Standby
	// PostgreSQL has settings of the database server, by name.
	PostgreSQL map[string]string
	// Dir receives the logs and the secrets, and is kept. If it is empty, a temporary one is used, which Stop removes.
	Dir string
}

// System is a running store with its projects and their replicas. The embedded Project is the first.
type System struct {
	*Project

	// Plane is the API server; nil with another store.
	Plane *controlplane.ControlPlane
	// Admin is a client with all rights on it.
	Admin client.Client
	// Database is the database server; nil with another store, and with a standby.
	Database *pgserver.Server
	// Pair is a database server with its standby; nil without one.
	Pair *pgserver.Pair
	// Dir contains the logs.
	Dir string

	options   Options
	temporary bool
	closers   []io.Closer

	mu       sync.Mutex
	projects []*Project
}

// Start returns when the store answers and the first project exists, without a replica yet. The caller must Stop it.
func Start(ctx context.Context, o Options) (*System, error) {
	s := &System{options: o, Dir: o.Dir}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start system with store %s: %w", o.Store, err), s.Stop())
	}
	return s, nil
}

func (s *System) start(ctx context.Context) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	if s.options.Program == "" {
		var err error
		if s.options.Program, err = Build(ctx, s.Dir); err != nil {
			return err
		}
	}
	if err := s.startStore(ctx); err != nil {
		return err
	}
	var err error
	s.Project, err = s.newProject(ctx, "first")
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
		log, err := s.openLog("postgresql")
		if err != nil {
			return err
		}
		o := pgserver.Options{Settings: s.options.PostgreSQL, Output: log}
		if s.options.Standby == NoStandby {
			s.Database, err = pgserver.Start(ctx, o)
		} else {
			s.Pair, err = pgserver.StartPair(ctx, s.options.Standby == Synchronous, o)
		}
		return err
	default:
		return errors.New("unknown store")
	}
}

// openLog opens a log file, which Stop closes.
func (s *System) openLog(name string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(s.Dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, file)
	return file, nil
}

// reserveAddress returns an address that stays reserved until Stop: a client of a killed replica never reaches another one.
func (s *System) reserveAddress() (string, error) {
	reserved, err := ports.Reserve()
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, reserved)
	return reserved.Address(), nil
}

// Replicas returns the running replicas of every project.
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

// Stop ends the replicas, and then the store.
func (s *System) Stop() error {
	var all error
	for _, r := range s.Replicas() {
		r.Kill()
	}
	if s.Database != nil {
		all = errors.Join(all, s.Database.Stop())
	}
	if s.Pair != nil {
		all = errors.Join(all, s.Pair.Stop())
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
