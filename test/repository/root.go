// Package repository finds the files of the repository for tests.
package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// modulePath distinguishes the repository's own go.mod from those of the modules inside it, such as hack/kube.
const modulePath = "github.com/phoneproof/phoneproof"

// Root returns the folder of the repository's go.mod: the working directory, which go test sets to the
// package's folder, or the nearest one above it that has it.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		found, err := declaresModule(filepath.Join(dir, "go.mod"))
		if err != nil {
			return "", fmt.Errorf("find repository: %w", err)
		}
		if found {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find repository: no go.mod of %s in %s or above", modulePath, start)
		}
	}
}

// Roles is the folder of the chart's roles.
const Roles = "charts/phoneproof/files/rbac"

// Decode reads a YAML file of the repository, which has no field that is not in the value.
func Decode(into any, path ...string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	file := filepath.Join(path...)
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return fmt.Errorf("decode file: %w", err)
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		return fmt.Errorf("decode %s: %w", file, err)
	}
	return nil
}

// declaresModule reports whether a go.mod exists and is the repository's own.
func declaresModule(file string) (bool, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "module" {
			return fields[1] == modulePath, nil
		}
	}
	return false, nil
}
