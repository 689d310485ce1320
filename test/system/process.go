package system

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/phoneproof/phoneproof/test/cputime"
	"github.com/phoneproof/phoneproof/test/freeze"
)

// endTimeout bounds a graceful shutdown.
const endTimeout = 90 * time.Second

// Process is a running program, such as a replica. Any number of goroutines may use it.
type Process struct {
	PID int

	cmd    *exec.Cmd
	exited chan struct{}
}

// StartProcess starts a program whose log goes to a writer, with variables besides those of this process. It ends with the process that
// started it, however that ends, and ignores a terminal's interrupt.
func StartProcess(log io.Writer, variables []string, program string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.Command(program, args...), exited: make(chan struct{})} //nolint:noctx // it outlives the call
	p.cmd.Env = slices.Concat(os.Environ(), variables)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start process: %w", err)
	}
	p.PID = p.cmd.Process.Pid
	go func() { // ends with the process
		_ = p.cmd.Wait() // how it ended is in its log
		close(p.exited)
	}()
	return p, nil
}

// Running reports whether the process is running.
func (p *Process) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Kill ends the process at once, like the kernel's OOM killer, and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.exited
}

// Terminate shuts the process down gracefully, as a kubelet does, and returns when it is gone.
func (p *Process) Terminate() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("terminate process %d: %w", p.PID, err)
	}
	late := time.NewTimer(endTimeout)
	defer late.Stop()
	select {
	case <-p.exited:
		return nil
	case <-late.C:
		p.Kill()
		return fmt.Errorf("terminate process %d: it did not end within %s", p.PID, endTimeout)
	}
}

// ExitCode returns how a process that has ended did; -1 if a signal ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Freeze suspends the process until Thaw.
func (p *Process) Freeze() error { return freeze.Processes(p.PID) }

// Thaw resumes the process.
func (p *Process) Thaw() error { return freeze.Thaw(p.PID) }

// CPU returns the processor time that the process has used so far.
func (p *Process) CPU() (time.Duration, error) { return cputime.OfProcess(p.PID) }
