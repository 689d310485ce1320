package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// killServers reads a folder, waits for the end of its input, kills the processes whose arguments name files in the folder, and deletes it.
const killServers = `read -r dir && [[ $dir == /?* ]] || exit 0
read -r _
for file in $(grep -lsF -f - /proc/[0-9]*/cmdline <<<"$dir/"); do
	kill -KILL "${file//[!0-9]/}"
done
rm -rf "$dir"`

// guard is a process that kills the servers of a test that dies without a Stop: each one left behind would use 400 MB.
//
// It reads a pipe from the test. A server that is being started holds the pipe too until its arguments can be read, so that none
// is missed.
type guard struct {
	process *exec.Cmd
	pipe    io.Closer
}

// startGuard starts the guard of the servers whose arguments name files in dir.
func startGuard(dir string) (*guard, error) {
	process := exec.Command("bash", "-c", killServers)        //nolint:noctx // it ends with the pipe
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C ends the test alone
	pipe, err := process.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	if _, err := io.WriteString(pipe, dir+"\n"); err != nil {
		return nil, errors.Join(fmt.Errorf("start guard: %w", err), pipe.Close(), process.Wait())
	}
	return &guard{process: process, pipe: pipe}, nil
}

// release ends the guard, which kills what is still running.
func (g *guard) release() error {
	if err := g.pipe.Close(); err != nil {
		return fmt.Errorf("release guard: %w", err)
	}
	if err := g.process.Wait(); err != nil {
		return fmt.Errorf("release guard: %w", err)
	}
	return nil
}
