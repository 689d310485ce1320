package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/test/cputime"
	"github.com/phoneproof/phoneproof/test/freeze"
)

// EtcdURL returns where etcd listens, without TLS, for tests that watch everything that the API server has committed.
func (c *ControlPlane) EtcdURL() string { return c.env.ControlPlane.Etcd.URL.String() }

// KillAPIServer ends the API server at once, like the kernel's OOM killer, and leaves etcd running. StartAPIServer starts it
// again.
func (c *ControlPlane) KillAPIServer() error {
	process, err := c.apiServer()
	if err != nil {
		return err
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill API server: %w", err)
	}
	return c.StopAPIServer() // which waits for its end
}

// FreezeAPIServer suspends the API server, and returns a function that resumes it.
func (c *ControlPlane) FreezeAPIServer() (thaw func() error, err error) {
	process, err := c.apiServer()
	if err != nil {
		return nil, err
	}
	return func() error { return freeze.Thaw(process.Pid) }, freeze.Processes(process.Pid)
}

// CPU returns the processor time that the API server and etcd have used so far.
func (c *ControlPlane) CPU() (time.Duration, error) {
	server, err := c.apiServer()
	if err != nil {
		return 0, err
	}
	etcd, err := processWith("--data-dir=" + c.env.ControlPlane.Etcd.DataDir)
	if err != nil {
		return 0, err
	}
	ofServer, err := cputime.OfProcess(server.Pid)
	if err != nil {
		return 0, err
	}
	ofEtcd, err := cputime.OfProcess(etcd)
	return ofServer + ofEtcd, err
}

// apiServer finds our own API server among our children, because envtest does not expose its process.
func (c *ControlPlane) apiServer() (*os.Process, error) {
	threads, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil, fmt.Errorf("find API server: %w", err)
	}
	for _, file := range threads {
		children, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(children)) {
			command, err := os.ReadFile(filepath.Join("/proc", field, "cmdline"))
			if err != nil || !bytes.Contains(command, []byte("--etcd-servers="+c.EtcdURL())) {
				continue
			}
			pid, err := strconv.Atoi(field)
			if err != nil {
				return nil, fmt.Errorf("find API server: %w", err)
			}
			return os.FindProcess(pid)
		}
	}
	return nil, errors.New("find API server: not running")
}
