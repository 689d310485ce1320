// Package cputime tells how much processor time processes have used.
package cputime

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/test/freeze"
)

// OfProcess returns the processor time that a process has used so far, without its children.
func OfProcess(pid int) (time.Duration, error) { return readTime(pid, false) }

// OfFamily returns the processor time that a process and its children have used so far, including those that ended.
func OfFamily(parent int) (time.Duration, error) {
	children, err := freeze.Children(parent)
	if err != nil {
		return 0, err
	}
	all, err := readTime(parent, true) // children that ended are counted by their parent
	if err != nil {
		return 0, err
	}
	for _, pid := range children {
		used, err := readTime(pid, false)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, err
		}
		all += used
	}
	return all, nil
}

// readTime returns the processor time of a process, including its ended children if withEnded is set.
func readTime(pid int, withEnded bool) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may contain anything; utime is the twelfth field after it.
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	last := 13
	if withEnded {
		last = 15
	}
	var ticks int64
	for _, field := range fields[11:last] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read processor time of process %d: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil // Linux counts in hundredths of a second
}
