// Package freeze stops processes where they are, and says so only when they have stopped.
//
// SIGSTOP is queued: kill(2) returns before the first thread of the process has met it, and on a busy machine the others go
// on until that thread had its turn. What a test does then could still be answered.
package freeze

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	// timeout bounds the wait for a process whose threads wait for a disk: they stop when it has answered.
	timeout  = 30 * time.Second
	interval = time.Millisecond
)

// Processes stops the processes and returns when each of their threads has stopped. One that has ended counts as stopped.
func Processes(pids ...int) error {
	if err := signal(syscall.SIGSTOP, pids); err != nil {
		return err
	}
	late := time.NewTimer(timeout)
	defer late.Stop()
	look := time.NewTicker(interval)
	defer look.Stop()
	for _, pid := range pids {
		for {
			stopped, err := hasStopped(pid)
			if err != nil {
				return fmt.Errorf("freeze process %d: %w", pid, err)
			}
			if stopped {
				break
			}
			select {
			case <-look.C:
			case <-late.C:
				return fmt.Errorf("freeze process %d: it still runs after %s", pid, timeout)
			}
		}
	}
	return nil
}

// Thaw lets the processes go on. One that has ended is passed over.
func Thaw(pids ...int) error { return signal(syscall.SIGCONT, pids) }

func signal(what syscall.Signal, pids []int) error {
	var all error
	for _, pid := range pids {
		if err := syscall.Kill(pid, what); err != nil && !errors.Is(err, syscall.ESRCH) {
			all = errors.Join(all, fmt.Errorf("signal process %d: %w", pid, err))
		}
	}
	return all
}

// hasStopped reports whether no thread of the process can run.
func hasStopped(pid int) (bool, error) {
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "task", thread.Name(), "stat"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return false, err
		}
		// proc(5): "pid (comm) state ...", where comm may hold spaces and parentheses.
		_, state, found := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(" "))
		if !found {
			return false, fmt.Errorf("stat of thread %s: %q", thread.Name(), stat)
		}
		if !bytes.ContainsAny(state[:1], "TtZX") {
			return false, nil
		}
	}
	return true, nil
}
