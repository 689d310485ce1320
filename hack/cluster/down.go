package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// runcState is where every containerd's shims keep what runc knows of its containers; it cannot be chosen.
const runcState = "/run/containerd/runc/k8s.io"

// down ends everything and removes what the cluster made. It goes on after a failure, and it may be called when there is
// little or nothing left.
func (c *cluster) down(ctx context.Context) error {
	var problems []error
	for _, component := range slices.Backward(components) {
		if component.name == "containerd" {
			problems = append(problems, removeContainers(ctx))
		}
		problems = append(problems, c.stop(ctx, component.name))
	}
	problems = append(problems, endShims(ctx), removeRemains(ctx), unmount(), networkDown(ctx), restoreSysctls())
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("end the cluster (try again, its files are still there): %w", err)
	}
	if err := removeFiles(); err != nil {
		return fmt.Errorf("end the cluster: %w", err)
	}
	if err := os.Remove(c.kubeconfig()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("end the cluster: %w", err)
	}
	c.sayf("the cluster is down, and nothing of it is left")
	return nil
}

// removeContainers ends what runs in pods, while containerd can still clean up after them.
func removeContainers(ctx context.Context) error {
	if _, ok := recorded("containerd"); !ok {
		return nil
	}
	containers, err := ctr(ctx, "containers", "list", "--quiet")
	if err != nil {
		return err
	}
	var problems []error
	for id := range strings.FieldsSeq(containers) {
		_, _ = ctr(ctx, "tasks", "delete", "--force", id) // a container that has ended has no task
		if _, err := ctr(ctx, "containers", "delete", id); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// endShims ends the processes between containerd and containers that outlived it; they name its socket.
func endShims(ctx context.Context) error {
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	var problems []error
	for _, entry := range entries {
		content, err := os.ReadFile(entry) //nolint:gosec // found in /proc
		if err != nil {
			continue // it has ended meanwhile
		}
		args := strings.Split(string(content), "\x00")
		if !strings.HasPrefix(filepath.Base(args[0]), "containerd-shim") || !slices.Contains(args, socket) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(entry)))
		if err != nil {
			continue
		}
		if start, err := startTime(pid); err == nil {
			problems = append(problems, process{PID: pid, Start: start}.end(ctx))
		}
	}
	return errors.Join(problems...)
}

// removeRemains deletes the processes and control groups of containers that containerd forgot, by the folders that it
// made for them.
func removeRemains(ctx context.Context) error {
	bundles, err := filepath.Glob(filepath.Join(runDir, "containerd", "io.containerd.runtime.v2.task", "k8s.io", "*"))
	if err != nil {
		return err
	}
	var problems []error
	for _, bundle := range bundles {
		id := filepath.Base(bundle)
		if _, err := os.Stat(filepath.Join(runcState, id)); err != nil {
			continue
		}
		if _, err := command(ctx, "runc", "--root", runcState, "delete", "--force", id); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// unmount takes away the file systems of containers, volumes and network namespaces, the innermost first.
func unmount() error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var points []string
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && ours(fields[4]) {
			points = append(points, fields[4])
		}
	}
	var problems []error
	for _, point := range slices.Backward(points) {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil {
			problems = append(problems, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(problems...)
}

func ours(path string) bool {
	return strings.HasPrefix(path, stateDir+"/") || strings.HasPrefix(path, runDir+"/")
}

// removeFiles deletes the cluster's folders, and what its programs keep in places that cannot be chosen, as far as
// nothing else has anything there.
func removeFiles() error {
	for _, pattern := range []string{
		"/var/lib/kubelet/device-plugins/*", // kubelet's socket and checkpoint
		"/var/lib/cni/results/*",            // what the network's plugins answered
		"/var/log/containers/*",             // links to the logs
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := removeTrace(file); err != nil {
				return err
			}
		}
	}
	for _, dir := range []string{
		"/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/run/containerd", "/run/netns", "/usr/libexec/kubernetes",
		"/sys/fs/cgroup/k8s.io",
	} {
		prune(dir)
	}
	hierarchies, err := filepath.Glob("/sys/fs/cgroup/*/k8s.io")
	if err != nil {
		return err
	}
	for _, dir := range hierarchies {
		prune(dir)
	}
	return errors.Join(os.RemoveAll(stateDir), os.RemoveAll(runDir), os.Remove(lockFile))
}

// removeTrace deletes a file that is kubelet's or tells by its target or its content that it belongs to this cluster.
func removeTrace(file string) error {
	if !strings.HasPrefix(file, "/var/lib/kubelet/") {
		target, err := os.Readlink(file)
		if err != nil {
			content, _ := os.ReadFile(file) //nolint:gosec // found by a constant pattern; one that cannot be read is not ours
			target = string(content)
		}
		if !strings.Contains(target, stateDir+"/") && !strings.Contains(target, runDir+"/") {
			return nil
		}
	}
	return os.Remove(file)
}

// prune removes folders in which there is nothing but folders.
func prune(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.IsDir() {
			prune(filepath.Join(dir, entry.Name()))
		}
	}
	_ = syscall.Rmdir(dir) // fails where something is left, which is then not ours
}
