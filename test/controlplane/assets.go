package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
)

// assetsVariable is envtest's own variable for the folder of the binaries. It takes precedence over bin/kube, so that the
// same suites can run against another version of Kubernetes.
const assetsVariable = "KUBEBUILDER_ASSETS"

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
