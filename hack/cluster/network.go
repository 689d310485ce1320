package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sysctls are the kernel settings that this program, kubelet and kube-proxy change; `down` restores them.
var sysctls = []string{
	"net/ipv4/ip_forward",
	"net/ipv4/conf/all/route_localnet",
	"net/bridge/bridge-nf-call-iptables",
	"net/netfilter/nf_conntrack_tcp_timeout_established",
	"net/netfilter/nf_conntrack_tcp_timeout_close_wait",
	"vm/overcommit_memory",
	"vm/panic_on_oom",
	"kernel/panic",
	"kernel/panic_on_oops",
	"kernel/keys/root_maxkeys",
	"kernel/keys/root_maxbytes",
}

func sysctlFile(name string) string { return filepath.Join("/proc/sys", name) }

// saveSysctls saves the kernel settings from before the cluster, unless an earlier `up` has saved them.
func saveSysctls() error {
	file := statePath("sysctls.json")
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	saved := map[string]string{}
	for _, name := range sysctls {
		if value, err := os.ReadFile(sysctlFile(name)); err == nil {
			saved[name] = strings.TrimSpace(string(value))
		}
	}
	content, err := json.Marshal(saved)
	if err != nil {
		return fmt.Errorf("save kernel settings: %w", err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return fmt.Errorf("save kernel settings: %w", err)
	}
	return nil
}

func restoreSysctls() error {
	content, err := os.ReadFile(statePath("sysctls.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore kernel settings: %w", err)
	}
	var saved map[string]string
	if err := json.Unmarshal(content, &saved); err != nil {
		return fmt.Errorf("restore kernel settings: %w", err)
	}
	var problems []error
	for name, value := range saved {
		if now, err := os.ReadFile(sysctlFile(name)); err != nil || strings.TrimSpace(string(now)) == value {
			continue
		}
		if err := os.WriteFile(sysctlFile(name), []byte(value), 0o600); err != nil {
			problems = append(problems, fmt.Errorf("restore kernel setting: %w", err))
		}
	}
	return errors.Join(problems...)
}

// networkUp creates the node's bridge with its address, keeps the cluster's ranges on this machine, and lets packets pass
// between pods even if the machine forwards nothing else. Every step is idempotent.
func networkUp(ctx context.Context) error {
	// Not every kernel has it as a module; the setting below fails without it.
	_ = exec.CommandContext(ctx, "modprobe", "br_netfilter").Run()
	for name, value := range map[string]string{"net/ipv4/ip_forward": "1", "net/bridge/bridge-nf-call-iptables": "1"} {
		if err := os.WriteFile(sysctlFile(name), []byte(value), 0o600); err != nil {
			return fmt.Errorf("set up network: %w", err)
		}
	}
	if _, err := runCommand(ctx, "ip", "link", "show", nodeBridge); err != nil {
		if _, err := runCommand(ctx, "ip", "link", "add", nodeBridge, "type", "bridge"); err != nil {
			return fmt.Errorf("set up network: %w", err)
		}
	}
	for _, args := range []string{
		"address replace " + nodeIP + "/24 dev " + nodeBridge,
		"link set " + nodeBridge + " up",
		"route replace " + serviceRange + " dev " + nodeBridge + " src " + nodeIP,
		"route replace " + podRoute + " dev " + nodeBridge + " src " + nodeIP,
	} {
		if _, err := runCommand(ctx, "ip", strings.Fields(args)...); err != nil {
			return fmt.Errorf("set up network: %w", err)
		}
	}
	for _, rule := range forwardRules() {
		if _, err := runCommand(ctx, "iptables", append([]string{"-w", "-C"}, rule...)...); err == nil {
			continue
		}
		if _, err := runCommand(ctx, "iptables", append([]string{"-w", "-I"}, rule...)...); err != nil {
			return fmt.Errorf("set up network: %w", err)
		}
	}
	return nil
}

// forwardRules returns the rules that let packets pass between pods; a machine with Docker drops all others.
func forwardRules() [][]string {
	return [][]string{{"FORWARD", "-i", podBridge, "-o", podBridge, "-m", "comment", "--comment", "phoneproof-cluster", "-j", "ACCEPT"}}
}

func networkDown(ctx context.Context) error {
	var problems []error
	for _, rule := range forwardRules() {
		if _, err := runCommand(ctx, "iptables", append([]string{"-w", "-C"}, rule...)...); err != nil {
			continue
		}
		if _, err := runCommand(ctx, "iptables", append([]string{"-w", "-D"}, rule...)...); err != nil {
			problems = append(problems, err)
		}
	}
	// The routes and the pods' interfaces are removed with their bridge.
	for _, bridge := range []string{podBridge, nodeBridge} {
		if _, err := runCommand(ctx, "ip", "link", "show", bridge); err != nil {
			continue
		}
		if _, err := runCommand(ctx, "ip", "link", "delete", bridge); err != nil {
			problems = append(problems, err)
		}
	}
	for _, family := range []string{"iptables", "ip6tables"} {
		problems = append(problems, removeRules(ctx, family))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("take down network: %w", err)
	}
	return nil
}

// removeRules deletes the rules of kubelet and kube-proxy, by the names of their chains, and keeps every other rule.
func removeRules(ctx context.Context, family string) error {
	saved, err := runCommand(ctx, family+"-save")
	if errors.Is(err, exec.ErrNotFound) {
		return nil // up installs it before it writes a rule
	}
	if err != nil || !strings.Contains(saved, "KUBE-") {
		return err
	}
	restore := exec.CommandContext(ctx, family+"-restore", "-w") //nolint:gosec // one of two constants
	restore.Stdin = strings.NewReader(withoutKube(saved))
	if output, err := restore.CombinedOutput(); err != nil {
		return fmt.Errorf("%s-restore: %w: %s", family, err, output)
	}
	return nil
}

// withoutKube removes the lines of Kubernetes from the output of iptables-save: its chains, and the rules that jump to them.
func withoutKube(saved string) string {
	var kept strings.Builder
	for line := range strings.Lines(saved) {
		if !strings.Contains(line, "KUBE-") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// foreignNode reports whether another Kubernetes node runs on this machine: two of them would delete each other's rules.
func foreignNode(ctx context.Context) (bool, error) {
	if _, err := os.Stat(statePath("sysctls.json")); err == nil {
		return false, nil // ours
	}
	saved, err := runCommand(ctx, "iptables-save")
	return strings.Contains(saved, "KUBE-"), err
}
