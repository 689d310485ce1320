package system

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/phoneproof/phoneproof/test/freeze"
	"github.com/phoneproof/phoneproof/test/pgserver"
	"github.com/phoneproof/phoneproof/test/program"
)

const (
	// readyTimeout bounds the start of a replica on a loaded machine, with its tables to be made.
	readyTimeout = 2 * time.Minute
	// endTimeout bounds its orderly end.
	endTimeout = 90 * time.Second
	probeEvery = 25 * time.Millisecond
	probeWait  = 10 * time.Second
)

// Replica is a serve process of a project.
type Replica struct {
	// Name tells it from every other one of the system, also from those before it. Its log has that name.
	Name string
	// API, Health and Profiles are its addresses, as host:port. Profiles has those of net/http/pprof.
	API      string
	Health   string
	Profiles string
	PID      int
	LogFile  string

	cmd    *exec.Cmd
	exited chan struct{}
}

// StartReplica starts a replica and does not wait for it; see AwaitReady. Later flags win over earlier ones.
func (p *Project) StartReplica(flags ...string) (*Replica, error) {
	var addresses [3]string
	for i := range addresses {
		var err error
		if addresses[i], err = p.system.reserve(); err != nil {
			return nil, fmt.Errorf("start a replica of %s: %w", p.Name(), err)
		}
	}
	p.mu.Lock()
	p.started++
	name := fmt.Sprintf("%s-%d", p.Namespace, p.started)
	log, err := p.system.log(name)
	p.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("start a replica of %s: %w", p.Name(), err)
	}
	r := &Replica{
		Name: name, API: addresses[0], Health: addresses[1], Profiles: addresses[2], LogFile: log.Name(), exited: make(chan struct{}),
	}
	r.cmd = exec.Command(p.system.options.Program, slices.Concat([]string{ //nolint:noctx // it ends with the system
		"serve", "--bind-address", r.API, "--health-bind-address", r.Health, "--drain-delay=200ms", "--secrets-dir", p.SecretsDir,
	}, p.flags(), p.system.options.Flags, flags)...)
	r.cmd.Env = append(os.Environ(), program.ProfileAddress+"="+r.Profiles)
	r.cmd.Stdout, r.cmd.Stderr = log, log
	// It must not outlive who started it, however that ends, and a terminal's interrupt is not for it.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a replica of %s: %w", p.Name(), err)
	}
	r.PID = r.cmd.Process.Pid
	go func() { // ends with the process
		_ = r.cmd.Wait() // how it ended is in its log
		close(r.exited)
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replicas = append(p.replicas, r)
	return r, nil
}

// flags say what a replica serves, and where the messengers are.
func (p *Project) flags() []string {
	o := p.system.options
	flags := []string{"--whatsapp-url=" + orNowhere(o.Graph), "--telegram-url=" + orNowhere(o.Telegram)}
	if p.system.Plane != nil {
		return append(flags, "--project="+p.Name(), "--kubeconfig="+p.kubeconfig)
	}
	return append(flags, "--project-file="+p.file, "--store="+string(o.Store))
}

func orNowhere(url string) string {
	if url == "" {
		return nowhere
	}
	return url
}

// Replicas are those of the project that run, the oldest first.
func (p *Project) Replicas() []*Replica {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replicas = slices.DeleteFunc(p.replicas, func(r *Replica) bool { return !r.Running() })
	return slices.Clone(p.replicas)
}

// AwaitReady returns when the replica is ready to serve.
func (r *Replica) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for !r.Ready(ctx) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the replica of %s to be ready: %w", r.LogFile, ctx.Err())
		case <-r.exited:
			return fmt.Errorf("wait for the replica of %s to be ready: it ended", r.LogFile)
		case <-tick.C:
		}
	}
	return nil
}

// Ready tells whether the replica says that it can serve.
func (r *Replica) Ready(ctx context.Context) bool { return r.Probe(ctx, "/readyz") == http.StatusOK }

// Probe returns the status that a path of the port for probes answers; 0 if none came.
func (r *Replica) Probe(ctx context.Context, path string) int {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Health+path, nil)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close() // its status is all that is asked
	return response.StatusCode
}

// Running tells whether the process is there.
func (r *Replica) Running() bool {
	select {
	case <-r.exited:
		return false
	default:
		return true
	}
}

// Kill ends the process at once, as the kernel does when memory is short, and returns when it is gone.
func (r *Replica) Kill() {
	_ = r.cmd.Process.Kill() // it may be gone
	<-r.exited
}

// Terminate asks the process to end in order, as a kubelet does, and returns when it is gone.
func (r *Replica) Terminate() error {
	if err := r.signal(syscall.SIGTERM); err != nil {
		return err
	}
	late := time.NewTimer(endTimeout)
	defer late.Stop()
	select {
	case <-r.exited:
		return nil
	case <-late.C:
		r.Kill()
		return fmt.Errorf("terminate the replica of %s: it did not end within %s", r.LogFile, endTimeout)
	}
}

// Freeze stops the process where it is, until Thaw.
func (r *Replica) Freeze() error { return freeze.Processes(r.PID) }

// Thaw lets the process go on.
func (r *Replica) Thaw() error { return freeze.Thaw(r.PID) }

func (r *Replica) signal(s syscall.Signal) error {
	if err := r.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal the replica of %s: %w", r.LogFile, err)
	}
	return nil
}

// CPU is the processor time that the process has used so far.
func (r *Replica) CPU() (time.Duration, error) { return pgserver.CPUOf(r.PID, false) }

// RSS is the memory that the process holds, in bytes.
func (r *Replica) RSS() (int64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.PID))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("the memory of process %d is not known", r.PID)
}
