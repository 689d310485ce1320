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

// runcState is the folder of runc's container state, which the shims of every containerd use; it cannot be configured.
const runcState = "/run/containerd/runc/k8s.io"

// removeCluster ends all processes and removes everything that the cluster created. It continues after a failure, and may be
// called when little or nothing is left.
func (c *cluster) removeCluster(ctx context.Context) error {
	var problems []error
	for _, component := range slices.Backward(components) {
		problems = append(problems, c.stopProcess(ctx, component.name))
		if component.name == "kubelet" { // the API server waits for the watches of pods before it ends
			problems = append(problems, removeContainers(ctx))
		}
	}
	problems = append(problems, c.endShims(ctx), removeRemains(ctx), unmountAll(), networkDown(ctx), restoreSysctls())
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("remove cluster (try again, its files are still there): %w", err)
	}
	if err := removeFiles(); err != nil {
		return fmt.Errorf("remove cluster: %w", err)
	}
	if err := os.Remove(c.kubeconfigPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove cluster: %w", err)
	}
	c.logf("the cluster is down and completely removed")
	return nil
}

// removeContainers ends the containers of pods, which nothing starts again, while containerd can still clean up after them.
func removeContainers(ctx context.Context) error {
	if _, ok := readProcess("containerd"); !ok {
		return nil
	}
	containers, err := runCtr(ctx, "containers", "list", "--quiet")
	if err != nil {
		return err
	}
	var problems []error
	for id := range strings.FieldsSeq(containers) {
		_, _ = runCtr(ctx, "tasks", "delete", "--force", id) // an exited container has no task
		if _, err := runCtr(ctx, "containers", "delete", id); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// endShims ends the shims that outlived containerd; it finds them by its socket.
func (c *cluster) endShims(ctx context.Context) error {
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	var problems []error
	for _, entry := range entries {
		content, err := os.ReadFile(entry) //nolint:gosec // found in /proc
		if err != nil {
			continue // it has exited meanwhile
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
			problems = append(problems, c.endProcess(ctx, process{PID: pid, Start: start}))
		}
	}
	return errors.Join(problems...)
}

// removeRemains deletes the processes and control groups of containers that containerd no longer knows, by the folders that it
// created for them.
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
		if _, err := runCommand(ctx, "runc", "--root", runcState, "delete", "--force", id); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// unmountAll unmounts the file systems of containers, volumes and network namespaces, the innermost first.
func unmountAll() error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var points []string
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && isOurs(fields[4]) {
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

func isOurs(path string) bool {
	return strings.HasPrefix(path, stateDir+"/") || strings.HasPrefix(path, runDir+"/")
}

// removeFiles deletes the cluster's folders, and the files that its programs keep in fixed places, unless those places contain
// other files.
func removeFiles() error {
	for _, pattern := range []string{
		"/var/lib/kubelet/device-plugins/*", // kubelet's socket and checkpoint
		"/var/lib/cni/results/*",            // results of the network's plugins
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
		removeEmptyFolders(dir)
	}
	hierarchies, err := filepath.Glob("/sys/fs/cgroup/*/k8s.io")
	if err != nil {
		return err
	}
	for _, dir := range hierarchies {
		removeEmptyFolders(dir)
	}
	return errors.Join(os.RemoveAll(stateDir), os.RemoveAll(runDir), os.Remove(lockFile))
}

// removeTrace deletes a file of kubelet's, or one whose target or content shows that it belongs to this cluster.
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

// removeEmptyFolders removes folders that contain only folders.
func removeEmptyFolders(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.IsDir() {
			removeEmptyFolders(filepath.Join(dir, entry.Name()))
		}
	}
	_ = syscall.Rmdir(dir) // fails if it still contains files, which are not ours
}
