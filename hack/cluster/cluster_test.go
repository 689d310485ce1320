package main

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestWithoutKube_leavesOtherRules(t *testing.T) {
	g := NewWithT(t)
	const saved = `*filter
:INPUT ACCEPT [0:0]
:KUBE-FIREWALL - [0:0]
:DOCKER - [0:0]
-A INPUT -j KUBE-FIREWALL
-A INPUT -p tcp --dport 22 -j ACCEPT
-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP
COMMIT
`
	g.Expect(withoutKube(saved)).To(Equal(`*filter
:INPUT ACCEPT [0:0]
:DOCKER - [0:0]
-A INPUT -p tcp --dport 22 -j ACCEPT
COMMIT
`))
}

func TestProcess_isNotAnotherOneWithItsID(t *testing.T) {
	g := NewWithT(t)
	start, err := startTime(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(process{PID: os.Getpid(), Start: start}.isAlive()).To(BeTrue())
	g.Expect(process{PID: os.Getpid(), Start: start + 1}.isAlive()).To(BeFalse())
}

func TestProcess_thatEndedIsNotAlive(t *testing.T) {
	g := NewWithT(t)
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	g.Expect(cmd.Start()).To(Succeed())
	start, err := startTime(cmd.Process.Pid)
	g.Expect(err).NotTo(HaveOccurred())
	p, c := process{PID: cmd.Process.Pid, Start: start}, &cluster{out: t.Output()}

	g.Expect(c.endProcess(t.Context(), p)).To(Succeed()) // while it is a zombie that no parent has waited for
	g.Expect(p.isAlive()).To(BeFalse())
	g.Expect(cmd.Wait()).To(MatchError("signal: terminated"))
	g.Expect(c.endProcess(t.Context(), p)).To(Succeed())
}

func TestPrune_removesNothingButEmptyFolders(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	for _, name := range []string{"empty/deep/deeper", "kept/empty"} {
		g.Expect(os.MkdirAll(filepath.Join(dir, name), 0o700)).To(Succeed())
	}
	g.Expect(os.WriteFile(filepath.Join(dir, "kept", "file"), nil, 0o600)).To(Succeed())
	removeEmptyFolders(dir)
	g.Expect(filepath.Join(dir, "empty")).NotTo(BeADirectory())
	g.Expect(filepath.Join(dir, "kept", "empty")).NotTo(BeADirectory())
	g.Expect(filepath.Join(dir, "kept", "file")).To(BeARegularFile())
}

func TestConfigs_nameNothingUnknown(t *testing.T) {
	g := NewWithT(t)
	for _, config := range configFiles {
		content, err := configs.ReadFile("config/" + config.file)
		g.Expect(err).NotTo(HaveOccurred())
		for name := range findReferences(string(content)) {
			g.Expect(configValues("/plugins")).To(HaveKey(name), config.file)
		}
		if strings.HasSuffix(config.file, ".conflist") {
			g.Expect(json.Valid(content)).To(BeTrue(), config.file)
		}
	}
}

func findReferences(text string) map[string]bool {
	found := map[string]bool{}
	os.Expand(text, func(name string) string {
		found[name] = true
		return ""
	})
	return found
}

func TestAddresses_lieInTheirRanges(t *testing.T) {
	g := NewWithT(t)
	for address, within := range map[string]string{serviceIP: serviceRange, "10.244.0.1": podRoute, nodeIP: nodeIP + "/24"} {
		_, network, err := net.ParseCIDR(within)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(network.Contains(net.ParseIP(address))).To(BeTrue(), address)
	}
}

// TestNetworkDown_whereNothingIsInstalledThereIsNothingToRemove simulates a machine that never had a cluster.
func TestNetworkDown_whereNothingIsInstalledThereIsNothingToRemove(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	NewWithT(t).Expect(networkDown(t.Context())).To(Succeed())
}
