package server

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestClusterConfig_order(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // not in a pod
	t.Setenv("KUBECONFIG", "")
	g := NewWithT(t)

	_, err := ClusterConfig("", "operator")
	g.Expect(err).To(MatchError("find the cluster: this is not a pod, and no kubeconfig file names a cluster: set --kubeconfig or KUBECONFIG"))

	byHome := filepath.Join(home, ".kube", "config")
	g.Expect(os.Mkdir(filepath.Dir(byHome), 0o700)).To(Succeed())
	writeKubeconfig(t, byHome, "https://home.example")
	g.Expect(clusterHost(t, "")).To(Equal("https://home.example"))

	byVariable := filepath.Join(home, "variable")
	writeKubeconfig(t, byVariable, "https://variable.example")
	t.Setenv("KUBECONFIG", byVariable)
	g.Expect(clusterHost(t, "")).To(Equal("https://variable.example"))

	byFlag := filepath.Join(home, "flag")
	writeKubeconfig(t, byFlag, "https://flag.example")
	g.Expect(clusterHost(t, byFlag)).To(Equal("https://flag.example"))

	_, err = ClusterConfig(filepath.Join(home, "missing"), "operator")
	g.Expect(err).To(MatchError(ContainSubstring("missing: no such file")))
}

func clusterHost(t *testing.T, kubeconfig string) string {
	t.Helper()
	config, err := ClusterConfig(kubeconfig, "operator")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return config.Host
}

func writeKubeconfig(t *testing.T, path, server string) {
	t.Helper()
	content := "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: " + server + "}}], " +
		"contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {token: t}}]}"
	NewWithT(t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}
