package system

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/phoneproof/phoneproof/test/controlplane"
)

// asProcess makes the binary of the command's tests the program itself; see its TestMain.
const asProcess = "PHONEPROOF_TEST_AS_PROCESS=1"

// profileAddress makes that process serve its profiles there.
const profileAddress = "PHONEPROOF_TEST_PPROF_ADDRESS"

// Build makes the program of the replicas in a folder and returns its path.
func Build(ctx context.Context, dir string, race bool) (string, error) {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", fmt.Errorf("build the program: %w", err)
	}
	program := filepath.Join(dir, "phoneproof")
	args := []string{"test", "-c", "-o", program}
	if race {
		args = append(args, "-race")
	}
	build := exec.CommandContext(ctx, "go", append(args, "./cmd/phoneproof")...)
	build.Dir, build.Env = root, os.Environ()
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, output)
	}
	return program, nil
}
