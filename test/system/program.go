package system

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/phoneproof/phoneproof/test/repository"
)

// Build builds the program of the replicas, test/program, in a folder and returns its path.
func Build(ctx context.Context, dir string) (string, error) {
	root, err := repository.Root()
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", fmt.Errorf("build program: %w", err)
	}
	program := filepath.Join(dir, "phoneproof")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./test/program/phoneproof")
	build.Dir, build.Env = root, os.Environ()
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build program: %w: %s", err, output)
	}
	return program, nil
}

// BuildRelease builds the released program as make does, and returns its path.
func BuildRelease(ctx context.Context) (string, error) {
	root, err := repository.Root()
	if err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "make", "--no-print-directory", "build")
	build.Dir, build.Env = root, os.Environ()
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build released program: %w: %s", err, output)
	}
	return filepath.Join(root, "bin", "phoneproof"), nil
}
