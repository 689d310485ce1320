package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/test/cputime"
	"github.com/phoneproof/phoneproof/test/freeze"
	"github.com/phoneproof/phoneproof/test/ports"
)

// startTimeout bounds the start and the stop of the server on a loaded machine.
const startTimeout = 90 * time.Second

// ErrNotInstalled is returned if PostgreSQL is not installed on this machine.
var ErrNotInstalled = errors.New("PostgreSQL's server is not installed: run make postgres-assets as root on Debian, or install it")

// Options configure a server; the zero value suits a test suite.
type Options struct {
	// Settings are additional lines of postgresql.conf, by name.
	Settings map[string]string
	// Certificate is the server's certificate for TLS; nil for a server without TLS.
	Certificate *Certificate
	// Access has additional lines of pg_hba.conf, to admit clients from other addresses than loopback.
	Access []string
	// Output receives the server's log; nil discards it.
	Output io.Writer
}

// Server is a running PostgreSQL.
type Server struct {
	// Port is its port on 127.0.0.1.
	Port int
	// Bin is the folder of its programs, such as pgbench.
	Bin string

	dir      string
	owner    *syscall.Credential
	output   io.Writer
	server   *exec.Cmd
	reserved *ports.Reservation // of the port, which stays reserved while the server is down
}

// findBin returns the folder with the programs of the newest installed server.
func findBin() (string, error) {
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	slices.SortFunc(dirs, func(a, b string) int { return majorVersion(b) - majorVersion(a) })
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", ErrNotInstalled
	}
	return filepath.Dir(path), nil
}

// majorVersion returns VERSION of /usr/lib/postgresql/VERSION/bin.
func majorVersion(dir string) int {
	version, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	return version
}

// Start creates a server with an empty database named postgres and waits until it answers. The caller must Stop it.
func Start(ctx context.Context, o Options) (*Server, error) {
	bin, err := findBin()
	if err != nil {
		return nil, err
	}
	owner, err := ownerOfData()
	if err != nil {
		return nil, err
	}
	s := &Server{Bin: bin, owner: owner, output: o.Output}
	if err := errors.Join(s.prepareStart(), s.createData(ctx, o)); err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), s.Stop())
	}
	return s, nil
}

// prepareStart creates the server's folder and reserves its port.
func (s *Server) prepareStart() error {
	var err error
	if s.dir, err = os.MkdirTemp("", "phoneproof-postgres-"); err != nil {
		return err
	}
	if s.owner != nil {
		if err := os.Chown(s.dir, int(s.owner.Uid), int(s.owner.Gid)); err != nil {
			return err
		}
	}
	if s.reserved, err = ports.Reserve(); err != nil {
		return err
	}
	s.Port = s.reserved.Port()
	return nil
}

// ownerOfData returns the user that runs the server; nil for the current one. PostgreSQL refuses to run as root.
func ownerOfData() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(account.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(account.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}

func (s *Server) createData(ctx context.Context, o Options) error {
	if err := s.run(ctx, "initdb", "--pgdata="+s.dataDir(), "--username=postgres", "--auth=trust", "--encoding=UTF8",
		"--locale=C", "--no-sync"); err != nil {
		return err
	}
	settings := map[string]string{
		"listen_addresses": "'127.0.0.1'", "max_connections": "300", "shared_buffers": "'256MB'", "log_min_messages": "warning",
	}
	if o.Certificate != nil {
		if err := s.writeCertificate(o.Certificate); err != nil {
			return err
		}
		settings["ssl"], settings["ssl_cert_file"], settings["ssl_key_file"] = "on", "'"+certificateFile+"'", "'"+keyFile+"'"
	}
	maps.Copy(settings, o.Settings)
	var lines strings.Builder
	for name, value := range settings {
		fmt.Fprintf(&lines, "%s = %s\n", name, value)
	}
	if err := s.appendLines("postgresql.conf", lines.String()); err != nil {
		return err
	}
	if err := s.appendLines("pg_hba.conf", strings.Join(append(o.Access, ""), "\n")); err != nil {
		return err
	}
	return s.Up(ctx)
}

// The files of the server's certificate, in its data.
const (
	certificateFile = "server.crt"
	keyFile         = "server.key"
)

// writeCertificate writes the files of a certificate. PostgreSQL requires that it owns the key, and that no other user can read it.
func (s *Server) writeCertificate(c *Certificate) error {
	for name, content := range map[string][]byte{certificateFile: c.Chain, keyFile: c.Key} {
		file := filepath.Join(s.dataDir(), name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return err
		}
		if s.owner == nil {
			continue
		}
		if err := os.Chown(file, int(s.owner.Uid), int(s.owner.Gid)); err != nil {
			return err
		}
	}
	return nil
}

// appendLines appends lines to a file in the data folder.
func (s *Server) appendLines(name, lines string) error {
	file, err := os.OpenFile(filepath.Join(s.dataDir(), name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(lines)
	return errors.Join(err, file.Close())
}

func (s *Server) dataDir() string { return filepath.Join(s.dir, "data") }

// newCommand returns a command that runs as the owner of the data. A name without a path is a program of PostgreSQL.
func (s *Server) newCommand(ctx context.Context, name string, args ...string) *exec.Cmd {
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.Bin, name)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+s.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
	return cmd
}

func (s *Server) run(ctx context.Context, name string, args ...string) error {
	output, err := s.newCommand(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, output)
	}
	return nil
}

// Up starts the server after Crash and waits until it answers.
func (s *Server) Up(ctx context.Context) error {
	// A standby's data has the settings of its primary, so what differs is not among them.
	s.server = s.newCommand(context.WithoutCancel(ctx), "postgres", "-D", s.dataDir(), "-p", strconv.Itoa(s.Port), "-k", s.dir)
	s.server.Stdout, s.server.Stderr = s.output, s.output
	// In a process group of its own, so that a terminal's interrupt reaches only the test. It ends with the test, even if
	// that dies without a Stop.
	s.server.SysProcAttr.Setpgid, s.server.SysProcAttr.Pdeathsig = true, syscall.SIGQUIT
	if err := s.server.Start(); err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	if err := s.awaitAnswer(ctx, s.URI("postgres")); err != nil {
		return fmt.Errorf("wait for PostgreSQL: %w", err)
	}
	return nil
}

// URI returns the URI of one of its databases, over TCP.
func (s *Server) URI(database string) string {
	return fmt.Sprintf("postgresql://postgres@127.0.0.1:%d/%s?sslmode=disable", s.Port, database)
}

// Exec runs a statement in a database.
func (s *Server) Exec(ctx context.Context, database, statement string) error {
	conn, err := pgx.Connect(ctx, s.URI(database))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

// Crash ends the server at once and without a checkpoint, like pg_ctl stop -m immediate. Up recovers it.
func (s *Server) Crash() error { return s.endWith(syscall.SIGQUIT) }

// Down shuts the server down gracefully, without waiting for its clients.
func (s *Server) Down() error { return s.endWith(syscall.SIGINT) }

func (s *Server) endWith(with syscall.Signal) error {
	if s.server == nil || s.server.Process == nil {
		return nil
	}
	if err := s.server.Process.Signal(with); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	late := time.AfterFunc(startTimeout, func() { _ = s.server.Process.Kill() })
	defer late.Stop()
	_ = s.server.Wait() // how it exits depends on the signal
	s.server = nil
	return nil
}

// Freeze suspends every process of the server, and returns a function that resumes them.
func (s *Server) Freeze() (thaw func() error, err error) { return freeze.Family(s.server.Process.Pid) }

// CPU returns the processor time that the server has used so far, including the processes of its clients.
func (s *Server) CPU() (time.Duration, error) { return cputime.OfFamily(s.server.Process.Pid) }

// Stop ends the server and removes its data.
func (s *Server) Stop() error {
	err := s.endWith(syscall.SIGQUIT)
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	if s.reserved != nil {
		err = errors.Join(err, s.reserved.Close())
	}
	return err
}
