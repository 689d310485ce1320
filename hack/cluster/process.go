package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// stopTimeout is the time a process has for an orderly end.
const stopTimeout = 20 * time.Second

// process is one that this program started. An id alone may belong to another process by now; with the start time it
// cannot.
type process struct {
	PID   int      `json:"pid"`
	Start uint64   `json:"start"` // in ticks since the machine booted
	Args  []string `json:"args"`
}

func recordFile(name string) string { return filepath.Join(runDir, name+".json") }

// recorded returns the process that was started under a name, if it still runs.
func recorded(name string) (process, bool) {
	var p process
	content, err := os.ReadFile(recordFile(name))
	if err != nil || json.Unmarshal(content, &p) != nil {
		return process{}, false
	}
	return p, p.alive()
}

func (p process) alive() bool {
	start, err := startTime(p.PID)
	return err == nil && start == p.Start
}

// startTime returns when a process was started; one that has ended and waits for its parent counts as gone.
func startTime(pid int) (uint64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("look at process %d: %w", pid, err)
	}
	// The second field is the program's name in parentheses, which may hold anything.
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return 0, fmt.Errorf("look at process %d: %w", pid, fs.ErrNotExist)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// start runs a program that outlives this one, unless it runs already with the same arguments.
func (c *cluster) start(ctx context.Context, name string, args ...string) error {
	if p, ok := recorded(name); ok {
		if slices.Equal(p.Args, args) {
			return nil
		}
		if err := c.stop(ctx, name); err != nil {
			return err
		}
	}
	c.sayf("starting %s", name)
	log, err := os.OpenFile(state("logs", name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the program has its own copy
	// No context: it must not end with this program. Nor may it inherit a PATH without /usr/sbin, where iptables is.
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx,gosec // see above; the arguments are this program's own
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "HOME=/root"}
	cmd.Dir = stateDir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	began, err := startTime(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("start %s, see %s: %w", name, log.Name(), err)
	}
	content, err := json.Marshal(process{PID: cmd.Process.Pid, Start: began, Args: args})
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	if err := os.WriteFile(recordFile(name), content, 0o600); err != nil {
		return errors.Join(fmt.Errorf("record %s: %w", name, err), cmd.Process.Kill())
	}
	return nil
}

// stop ends the process recorded under a name, in order or, when that takes too long, at once.
func (c *cluster) stop(ctx context.Context, name string) error {
	p, ok := recorded(name)
	if ok {
		c.sayf("stopping %s", name)
		if err := p.end(ctx); err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
	}
	if err := os.Remove(recordFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	return nil
}

func (p process) end(ctx context.Context) error {
	var err error
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if !p.alive() { // its id may be another process's by now
			return nil
		}
		if err := syscall.Kill(p.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal process %d: %w", p.PID, err)
		}
		err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, stopTimeout, true,
			func(context.Context) (bool, error) { return !p.alive(), nil })
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("process %d does not end: %w", p.PID, err)
}

// command runs a program to its end and returns its output; what it says besides is part of an error alone.
func command(ctx context.Context, name string, args ...string) (string, error) {
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // this program's own arguments
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(stderr.String())
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, said)
	}
	return stdout.String(), nil
}

// until asks again and again until there is no error, and returns the last one after the timeout.
func until(ctx context.Context, what string, timeout time.Duration, ask func(context.Context) error) error {
	last := errors.New("never asked")
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		last = ask(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, last)
	}
	return nil
}
