package pgserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
)

// Pair is a server with a standby. Which of the two is the primary changes with each failover.
type Pair struct {
	// Primary is where clients write, and Standby streams from it.
	Primary, Standby *Server

	synchronous bool
	replication map[*Server]*Line // how the other one reaches it
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
	p := &Pair{Primary: primary, synchronous: synchronous, replication: map[*Server]*Line{}}
	if err := p.addStandby(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start standby: %w", err), p.Stop())
	}
	return p, nil
}

func (p *Pair) addStandby(ctx context.Context) error {
	var err error
	if p.replication[p.Primary], err = p.Primary.NewLine(ctx); err != nil {
		return err
	}
	p.Standby = &Server{Bin: p.Primary.Bin, owner: p.Primary.owner, output: p.Primary.output}
	if err := p.Standby.reserve(); err != nil {
		return err
	}
	if p.replication[p.Standby], err = p.Standby.NewLine(ctx); err != nil {
		return err
	}
	if err := p.Standby.run(ctx, "pg_basebackup", "--pgdata="+p.Standby.dataDir(), "--checkpoint=fast", "--no-sync",
		"--write-recovery-conf", "--dbname="+p.replication[p.Primary].URI("postgres")); err != nil {
		return err
	}
	return p.joinStandby(ctx)
}

// joinStandby starts the standby and waits until the primary can rely on it.
func (p *Pair) joinStandby(ctx context.Context) error {
	if err := p.Standby.Up(ctx); err != nil {
		return err
	}
	names := "''"
	if p.synchronous {
		names = "'*'"
	}
	if err := p.setSynchronous(ctx, names); err != nil {
		return err
	}
	return p.Primary.awaitTrue(ctx,
		fmt.Sprintf(`SELECT count(*) > 0 FROM pg_stat_replication WHERE state = 'streaming' AND (sync_state = 'sync') = %t`, p.synchronous))
}

// setSynchronous sets which standbys a commit waits for.
func (p *Pair) setSynchronous(ctx context.Context, names string) error {
	return errors.Join(p.Primary.Exec(ctx, "postgres", "ALTER SYSTEM SET synchronous_standby_names = "+names),
		p.Primary.Exec(ctx, "postgres", "SELECT pg_reload_conf()"))
}

// Isolate cuts the primary off from its standby, so that the standby can be promoted beside it.
func (p *Pair) Isolate() (repair func()) { return p.replication[p.Primary].Cut() }

// Promote makes the standby the primary, as a failover does: until the other one has joined as its standby, commits wait for nobody.
func (p *Pair) Promote(ctx context.Context) error {
	p.Primary, p.Standby = p.Standby, p.Primary
	if err := p.Primary.run(ctx, "pg_ctl", "promote", "--wait", "--pgdata="+p.Primary.dataDir()); err != nil {
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
	if err := p.Primary.Exec(ctx, "postgres", "CHECKPOINT"); err != nil {
		return fmt.Errorf("rejoin former primary: %w", err)
	}
	if err := p.Standby.run(ctx, "pg_rewind", "--target-pgdata="+p.Standby.dataDir(), "--no-sync", "--write-recovery-conf",
		"--source-server="+p.replication[p.Primary].URI("postgres")); err != nil {
		return fmt.Errorf("rejoin former primary: %w", err)
	}
	if err := p.joinStandby(ctx); err != nil {
		return fmt.Errorf("rejoin former primary: %w", err)
	}
	return nil
}

// URI returns a URI with both servers, of which clients use the one that takes writes.
func (p *Pair) URI(database string) string {
	return strings.Replace(p.Primary.URI(database), "?", fmt.Sprintf(",127.0.0.1:%d?target_session_attrs=read-write&", p.Standby.Port), 1)
}

// Stop ends both and removes their data.
func (p *Pair) Stop() error {
	var all error
	for _, s := range []*Server{p.Standby, p.Primary} {
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
