package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/test/ports"
)

// ErrNoBouncer is returned if PgBouncer is not installed on this machine.
var ErrNoBouncer = errors.New("PgBouncer is not installed: run make postgres-assets as root on Debian, or install it")

// NewBouncer runs a PgBouncer in transaction mode in front of the server until stop, and returns its port. All its clients share
// that many connections, which log in as the role.
func (s *Server) NewBouncer(ctx context.Context, role string, connections int) (port int, stop func() error, err error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		return 0, nil, ErrNoBouncer
	}
	reserved, err := ports.Reserve()
	if err != nil {
		return 0, nil, fmt.Errorf("start PgBouncer: %w", err)
	}
	defer func() {
		if err != nil {
			_ = reserved.Close() // the first error matters
		}
	}()
	port = reserved.Port()
	config := filepath.Join(s.dir, fmt.Sprintf("pgbouncer-%d.ini", port))
	lines := []string{
		"[databases]", fmt.Sprintf("* = host=127.0.0.1 port=%d user=%s", s.Port, role), "[pgbouncer]",
		"listen_addr = 127.0.0.1", fmt.Sprintf("listen_port = %d", port), "unix_socket_dir =", "auth_type = any",
		"pool_mode = transaction", fmt.Sprintf("default_pool_size = %d", connections), "max_client_conn = 500", "",
	}
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		return 0, nil, fmt.Errorf("start PgBouncer: %w", err)
	}
	bouncer := s.newCommand(context.WithoutCancel(ctx), program, config)
	bouncer.Stdout, bouncer.Stderr = s.output, s.output
	bouncer.SysProcAttr.Setpgid, bouncer.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	if err := bouncer.Start(); err != nil {
		return 0, nil, fmt.Errorf("start PgBouncer: %w", err)
	}
	stop = func() error {
		err := bouncer.Process.Kill()
		_ = bouncer.Wait() // it was killed
		return errors.Join(err, reserved.Close())
	}
	uri := fmt.Sprintf("postgresql://postgres@127.0.0.1:%d/postgres?sslmode=disable&default_query_exec_mode=exec", port)
	if err := s.awaitAnswer(ctx, uri); err != nil {
		return 0, nil, errors.Join(fmt.Errorf("wait for PgBouncer: %w", err), stop())
	}
	return port, stop, nil
}

// awaitTrue waits until a query returns true.
func (s *Server) awaitTrue(ctx context.Context, query string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URI("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }() // only read from
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		is := false
		if err := conn.QueryRow(ctx, query).Scan(&is); is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// awaitAnswer waits until a URI answers.
func (s *Server) awaitAnswer(ctx context.Context, uri string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		conn, err := pgx.Connect(ctx, uri)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}
