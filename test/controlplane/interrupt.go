package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// interruptAPIServer sends the API server a first SIGTERM. The second one, from envtest's Stop, then ends it at once: after one
// signal alone it waits for its own watches, for as long as its request-timeout.
func (c *ControlPlane) interruptAPIServer() error {
	pid, err := processWith("--cert-dir=" + filepath.Join(c.dir, "apiserver"))
	if err != nil || pid == 0 {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("interrupt API server: %w", err)
	}
	return nil
}

// processWith returns the id of the process with an argument; 0 if there is none.
func processWith(argument string) (pid int, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	for _, file := range files {
		arguments, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		for one := range bytes.SplitSeq(arguments, []byte{0}) {
			if string(one) == argument {
				return strconv.Atoi(filepath.Base(filepath.Dir(file)))
			}
		}
	}
	return 0, nil
}
