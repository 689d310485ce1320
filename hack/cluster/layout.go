package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Folders and addresses. The node has an address of its own, on a bridge without other machines, so that the cluster works
// without a network and cannot be reached from outside.
const (
	stateDir = "/var/lib/phoneproof-cluster" // data, keys and logs, which survive a reboot
	runDir   = "/run/phoneproof-cluster"     // sockets and process ids, which do not

	nodeName      = "phoneproof"
	nodeIP        = "10.200.0.1"
	nodeBridge    = "pp-node"
	podBridge     = "pp-pods" // made by the CNI plugin
	podRange      = "10.244.0.0/24"
	podRoute      = "10.244.0.0/16" // wider, so that packets to addresses near the pods' do not leave the machine
	serviceRange  = "10.96.0.0/16"
	serviceIP     = "10.96.0.1" // of the API server, the first of the range
	etcdAddress   = "127.0.0.1:12379"
	etcdPeer      = "127.0.0.1:12380" // etcd requires one
	apiServer     = "https://" + nodeIP + ":6443"
	clusterDomain = "cluster.local"
	pauseImage    = "localhost/phoneproof-pause:1"
	socket        = runDir + "/containerd.sock"
	lockFile      = runDir + ".lock"
)

// cluster is the cluster of this machine, as used from a checkout.
type cluster struct {
	bin string // the checkout's bin folder
	out io.Writer
}

// kubeBinary returns a program of Kubernetes, which hack/envtest-assets.sh built.
func (c *cluster) kubeBinary(name string) string { return filepath.Join(c.bin, "kube", name) }

func (c *cluster) corednsPath() string    { return filepath.Join(c.bin, "cluster", "coredns") }
func (c *cluster) kubeconfigPath() string { return filepath.Join(c.bin, "cluster", "kubeconfig") }

func (c *cluster) logf(format string, args ...any) {
	fmt.Fprintf(c.out, format+"\n", args...)
}

func statePath(path ...string) string {
	return filepath.Join(append([]string{stateDir}, path...)...)
}

// lock makes a second command wait until the first one is done.
func (c *cluster) lock(ctx context.Context) (unlock func(), err error) {
	file, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock cluster (needs root): %w", err)
	}
	err = c.waitUntil(ctx, "another cluster command to end", time.Hour, func(context.Context) error {
		return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}
