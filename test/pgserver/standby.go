package pgserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
)

// Pair is a server with a standby. Which of the two is the primary changes with each failover.
type Pair struct {
	synchronous bool
	replication map[*Server]*Line // how the other one reaches it

	mu               sync.Mutex
	primary, standby *Server // the standby streams from the primary
}

// Primary returns the server that takes writes.
func (p *Pair) Primary() *Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.primary
}

// StartPair starts a server and its standby. With a synchronous standby each commit is on both before it is acknowledged. The caller
// must Stop it.
func StartPair(ctx context.Context, synchronous bool, o Options) (*Pair, error) {
	settings := map[string]string{"wal_log_hints": "on", "wal_keep_size": "'1GB'"} // for pg_rewind
	maps.Copy(settings, o.Settings)
	o.Settings = settings
	primary, err := Start(ctx, o)
	if err != nil {
		return nil, err
	}
	p := &Pair{primary: primary, synchronous: synchronous, replication: map[*Server]*Line{}}
	if err := p.addStandby(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start standby: %w", err), p.Stop())
	}
	return p, nil
}

func (p *Pair) addStandby(ctx context.Context) error {
	var err error
	if p.replication[p.primary], err = p.primary.NewLine(ctx); err != nil {
		return err
	}
	p.standby = &Server{Bin: p.primary.Bin, owner: p.primary.owner, output: p.primary.output}
	if err := p.standby.prepareStart(); err != nil {
		return err
	}
	if p.replication[p.standby], err = p.standby.NewLine(ctx); err != nil {
		return err
	}
	if err := p.standby.run(ctx, "pg_basebackup", "--pgdata="+p.standby.dataDir(), "--checkpoint=fast", "--no-sync",
		"--write-recovery-conf", "--dbname="+p.replication[p.primary].URI("postgres")); err != nil {
		return err
	}
	return p.joinStandby(ctx)
}

// joinStandby starts the standby and waits until the primary can rely on it.
func (p *Pair) joinStandby(ctx context.Context) error {
	if err := p.standby.Up(ctx); err != nil {
		return err
	}
	names := "''"
	if p.synchronous {
		names = "'*'"
	}
	if err := p.setSynchronous(ctx, names); err != nil {
		return err
	}
	return p.primary.awaitTrue(ctx,
		fmt.Sprintf(`SELECT count(*) > 0 FROM pg_stat_replication WHERE state = 'streaming' AND (sync_state = 'sync') = %t`, p.synchronous))
}

// setSynchronous sets which standbys a commit waits for.
func (p *Pair) setSynchronous(ctx context.Context, names string) error {
	return errors.Join(p.primary.Exec(ctx, "postgres", "ALTER SYSTEM SET synchronous_standby_names = "+names),
		p.primary.Exec(ctx, "postgres", "SELECT pg_reload_conf()"))
}

// FreezeStandby suspends the standby, and returns a function that resumes it.
func (p *Pair) FreezeStandby() (thaw func() error, err error) { return p.standby.Freeze() }

// Isolate cuts the primary off from its standby, so that the standby can be promoted beside it.
func (p *Pair) Isolate() (repair func()) { return p.replication[p.primary].Cut() }

// Promote makes the standby the primary, as a failover does: until the other one has joined as its standby, no commit waits for a standby.
func (p *Pair) Promote(ctx context.Context) error {
	p.mu.Lock()
	p.primary, p.standby = p.standby, p.primary
	p.mu.Unlock()
	if err := p.primary.run(ctx, "pg_ctl", "promote", "--wait", "--pgdata="+p.primary.dataDir()); err != nil {
		return fmt.Errorf("promote standby: %w", err)
	}
	if err := p.setSynchronous(ctx, "''"); err != nil {
		return fmt.Errorf("promote standby: %w", err)
	}
	return nil
}

// Rejoin makes the former primary the standby of the present one: what only it had is lost. It must be down.
func (p *Pair) Rejoin(ctx context.Context) error {
	// Before its first checkpoint a promoted server's control file still has the former timeline, which misleads pg_rewind.
	if err := p.primary.Exec(ctx, "postgres", "CHECKPOINT"); err != nil {
		return fmt.Errorf("rejoin former primary: %w", err)
	}
	if err := p.standby.run(ctx, "pg_rewind", "--target-pgdata="+p.standby.dataDir(), "--no-sync", "--write-recovery-conf",
		"--source-server="+p.replication[p.primary].URI("postgres")); err != nil {
		return fmt.Errorf("rejoin former primary: %w", err)
	}
	if err := p.joinStandby(ctx); err != nil {
		return fmt.Errorf("rejoin former primary: %w", err)
	}
	return nil
}

// URI returns a URI with both servers, of which clients use the one that takes writes.
func (p *Pair) URI(database string) string {
	return fmt.Sprintf("postgresql://postgres@127.0.0.1:%d,127.0.0.1:%d/%s?target_session_attrs=read-write&sslmode=disable",
		p.primary.Port, p.standby.Port, database)
}

// Stop ends both and removes their data.
func (p *Pair) Stop() error {
	var all error
	for _, s := range []*Server{p.standby, p.primary} {
		if s == nil {
			continue
		}
		if line := p.replication[s]; line != nil {
			all = errors.Join(all, line.Close())
		}
		all = errors.Join(all, s.Stop())
	}
	return all
}
