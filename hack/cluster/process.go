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

// stopTimeout is the time that a process has for a graceful shutdown.
const stopTimeout = 20 * time.Second

// reportInterval is the time between two lines of a wait.
const reportInterval = 8 * time.Second

// process is a process that this program started. The id alone may have been reused by another process; with the start time
// it is unique.
type process struct {
	PID   int      `json:"pid"`
	Start uint64   `json:"start"` // in ticks since the machine booted
	Args  []string `json:"args"`
}

func recordFile(name string) string { return filepath.Join(runDir, name+".json") }

// readProcess returns the process that was started under a name, if it is still running.
func readProcess(name string) (process, bool) {
	var p process
	content, err := os.ReadFile(recordFile(name))
	if err != nil || json.Unmarshal(content, &p) != nil {
		return process{}, false
	}
	return p, p.isAlive()
}

func (p process) isAlive() bool {
	start, err := startTime(p.PID)
	return err == nil && start == p.Start
}

// startTime returns when a process was started; a zombie counts as gone.
func startTime(pid int) (uint64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read start time of process %d: %w", pid, err)
	}
	// The second field is the program's name in parentheses, which may contain anything.
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return 0, fmt.Errorf("read start time of process %d: %w", pid, fs.ErrNotExist)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// startProcess runs a program that outlives this one, unless it is already running with the same arguments.
func (c *cluster) startProcess(ctx context.Context, name string, args ...string) error {
	if p, ok := readProcess(name); ok {
		if slices.Equal(p.Args, args) {
			return nil
		}
		if err := c.stopProcess(ctx, name); err != nil {
			return err
		}
	}
	c.logf("starting %s", name)
	log, err := os.OpenFile(statePath("logs", name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the program has its own copy
	// Without a context, because it must not end with this program. Its PATH must include /usr/sbin for iptables.
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

// stopProcess ends the process recorded under a name gracefully or, if that takes too long, at once.
func (c *cluster) stopProcess(ctx context.Context, name string) error {
	p, ok := readProcess(name)
	if ok {
		c.logf("stopping %s", name)
		if err := c.endProcess(ctx, p); err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
	}
	if err := os.Remove(recordFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	return nil
}

// endProcess ends a process with SIGTERM or, if that takes too long, with SIGKILL.
func (c *cluster) endProcess(ctx context.Context, p process) error {
	var err error
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if !p.isAlive() { // its id may have been reused
			return nil
		}
		if err := syscall.Kill(p.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal process %d: %w", p.PID, err)
		}
		err = c.waitUntil(ctx, fmt.Sprintf("the end of process %d", p.PID), stopTimeout, func(context.Context) error {
			if p.isAlive() {
				return errRunning
			}
			return nil
		})
		if err == nil {
			return nil
		}
	}
	return err
}

var errRunning = errors.New("it still runs")

// runCommand runs a program to its end and returns its output; stderr is only part of errors.
func runCommand(ctx context.Context, name string, args ...string) (string, error) {
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // this program's own arguments
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(stderr.String())
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, said)
	}
	return stdout.String(), nil
}

// waitUntil polls ask until it returns no error, and returns the last error after the timeout. It reports every 8 s what it waits for.
func (c *cluster) waitUntil(ctx context.Context, what string, timeout time.Duration, ask func(context.Context) error) error {
	last := errors.New("timed out before the first check")
	began, reported := time.Now(), time.Now()
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		last = ask(ctx)
		if last != nil && time.Since(reported) >= reportInterval {
			reported = time.Now()
			c.logf("waiting for %s, %s: %v", what, time.Since(began).Round(time.Second), last)
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, last)
	}
	return nil
}
