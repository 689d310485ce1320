// Package freeze suspends processes, and returns only after all their threads have stopped.
//
// SIGSTOP is queued: kill(2) returns before the first thread of the process has received it, and on a busy machine the other
// threads run until that one is scheduled. They could still answer a test that does not wait.
package freeze

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// timeout bounds the wait for threads that wait for a disk: they stop only when it has answered.
	timeout  = 30 * time.Second
	interval = time.Millisecond
)

// Processes suspends the processes and returns when each of their threads has stopped. A process that has ended counts as
// stopped.
func Processes(pids ...int) error {
	if err := sendSignal(syscall.SIGSTOP, pids); err != nil {
		return err
	}
	late := time.NewTimer(timeout)
	defer late.Stop()
	poll := time.NewTicker(interval)
	defer poll.Stop()
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
			case <-poll.C:
			case <-late.C:
				return fmt.Errorf("freeze process %d: still running after %s", pid, timeout)
			}
		}
	}
	return nil
}

// Family suspends a process and all its children, and returns a function that resumes them. The parent stops first, because a
// child that it forked after its children were listed would keep running.
func Family(parent int) (thaw func() error, err error) {
	frozen := []int{parent}
	thaw = func() error { return Thaw(frozen...) }
	if err := Processes(parent); err != nil {
		return nil, errors.Join(err, thaw())
	}
	for {
		children, err := Children(parent)
		if err != nil {
			return nil, errors.Join(err, thaw())
		}
		// proc_pid_task(5): the list is complete once all that are on it have stopped.
		missed := slices.DeleteFunc(children, func(pid int) bool { return slices.Contains(frozen, pid) })
		if len(missed) == 0 {
			return thaw, nil
		}
		frozen = append(frozen, missed...)
		if err := Processes(missed...); err != nil {
			return nil, errors.Join(err, thaw())
		}
	}
}

// Children returns the processes that the first thread of a process has forked and not waited for yet. Some may be missing
// while others end.
func Children(parent int) ([]int, error) {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	if err != nil {
		return nil, fmt.Errorf("list children of process %d: %w", parent, err)
	}
	var pids []int
	for field := range strings.FieldsSeq(string(list)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("list children of process %d: %w", parent, err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// Thaw resumes the processes. Processes that have ended are skipped.
func Thaw(pids ...int) error { return sendSignal(syscall.SIGCONT, pids) }

func sendSignal(what syscall.Signal, pids []int) error {
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
		// proc(5): "pid (comm) state ...", where comm may contain spaces and parentheses.
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
