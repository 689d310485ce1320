//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// run runs a command at the root of the repository, against the cluster.
func run(ctx context.Context, name string, args ...string) (string, error) {
	return runWith(ctx, "", name, args...)
}

func runWith(ctx context.Context, stdin, name string, args ...string) (string, error) {
	if name == "kubectl" {
		name = filepath.Join(root, "bin", "kube", "kubectl")
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdin = strings.NewReader(stdin)
	output, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, output)
	}
	return string(output), err
}

// runKubectl runs a kubectl command that must succeed. line is split at blanks; arguments with blanks follow in more.
func runKubectl(ctx context.Context, line string, more ...string) string {
	GinkgoHelper()
	output, err := run(ctx, "kubectl", append(strings.Fields(line), more...)...)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(output)
}

// helm is the command line of a Helm version at the root of the repository.
type helm []string

// The chart supports both.
var (
	helm4 = helm{"go", "tool", "-modfile=hack/tools/helm/go.mod", "helm.sh/helm/v4/cmd/helm"}
	helm3 = helm{"bin/helm3"}
)

// run runs a command on the release's namespace that must succeed.
func (h helm) run(ctx context.Context, args ...string) {
	GinkgoHelper()
	_, err := run(ctx, h[0], slices.Concat(h[1:], []string{"--namespace", releaseNamespace}, args)...)
	Expect(err).NotTo(HaveOccurred())
}

// install installs or upgrades the release from a chart, and waits for the operator.
func (h helm) install(ctx context.Context, chart, image string, more ...string) {
	GinkgoHelper()
	repository, tag, _ := strings.Cut(image, ":")
	h.run(ctx, slices.Concat([]string{
		"upgrade", "--install", "phoneproof", chart, "--wait", "--timeout", "10m",
		"--set", "image.repository=" + repository, "--set", "image.tag=" + tag,
	}, more)...)
}

// applyFile applies a file of testdata with its names filled in.
func applyFile(ctx context.Context, file string, values map[string]string) {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	Expect(err).NotTo(HaveOccurred())
	filled := os.Expand(string(content), func(name string) string {
		Expect(values).To(HaveKey(name), file)
		return values[name]
	})
	_, err = runWith(ctx, filled, "kubectl", "apply", "--filename", "-")
	Expect(err).NotTo(HaveOccurred())
}

// restartComponent ends a component of the cluster and starts it again.
func restartComponent(ctx context.Context, component string) {
	GinkgoHelper()
	_, err := run(ctx, "hack/cluster.sh", "restart", component)
	Expect(err).NotTo(HaveOccurred())
}
