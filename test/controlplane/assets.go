package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// modulePath distinguishes the repository's own go.mod from those of the modules inside it, such as hack/kube.
const modulePath = "github.com/phoneproof/phoneproof"

// assetsVariable is envtest's own variable for the folder of the binaries. It takes precedence over bin/kube, so that the
// same suites can run against another version of Kubernetes.
const assetsVariable = "KUBEBUILDER_ASSETS"

// RepositoryRoot returns the folder of the repository's go.mod: the working directory, which go test sets to the
// package's folder, or the nearest one above it that has it.
func RepositoryRoot() (string, error) {
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

// findAssets returns the folder of the binaries after checking that they exist: envtest itself would report a missing file
// only after five attempts and a timeout.
func findAssets(root string) (string, error) {
	dir := filepath.Join(root, "bin", "kube")
	if other := os.Getenv(assetsVariable); other != "" {
		dir = other
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("run make envtest-assets first, it downloads or builds the API server for the tests: %w", err)
		}
	}
	return dir, nil
}
