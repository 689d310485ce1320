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

// interruptAPIServer sends the API server a first signal to end. The second one, of envtest's Stop, then ends it at once: by
// one alone it waits for its own watches, which takes its request-timeout.
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

// processWith returns the process that has an argument; 0 if none has.
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
