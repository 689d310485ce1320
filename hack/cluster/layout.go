package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Where everything is. The node has an address of its own, on a bridge that no other machine is connected to, so the
// cluster works without a network and is not reached from outside.
const (
	stateDir = "/var/lib/phoneproof-cluster" // data, keys, logs: what a reboot leaves
	runDir   = "/run/phoneproof-cluster"     // sockets and process ids: what it does not

	nodeName      = "phoneproof"
	nodeIP        = "10.200.0.1"
	nodeBridge    = "pp-node"
	podBridge     = "pp-pods" // made by the CNI plugin
	podRange      = "10.244.0.0/24"
	podRoute      = "10.244.0.0/16" // wider, so that no address near the pods' leaves the machine
	serviceRange  = "10.96.0.0/16"
	serviceIP     = "10.96.0.1" // of the API server, the first of the range
	etcdAddress   = "127.0.0.1:12379"
	etcdPeer      = "127.0.0.1:12380" // etcd insists on one
	apiServer     = "https://" + nodeIP + ":6443"
	clusterDomain = "cluster.local"
	pauseImage    = "localhost/phoneproof-pause:1"
	socket        = runDir + "/containerd.sock"
	lockFile      = runDir + ".lock"
)

// cluster is the one on this machine, seen from a checkout.
type cluster struct {
	bin string // the checkout's bin folder
	out io.Writer
}

func (c *cluster) kubectl() string    { return filepath.Join(c.bin, "kube", "kubectl") }
func (c *cluster) kubeconfig() string { return filepath.Join(c.bin, "cluster", "kubeconfig") }

func (c *cluster) sayf(format string, args ...any) {
	fmt.Fprintf(c.out, format+"\n", args...)
}

func state(path ...string) string {
	return filepath.Join(append([]string{stateDir}, path...)...)
}

// lock makes a second command wait until the first one is done.
func lock() (unlock func(), err error) {
	file, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the cluster (root is needed): %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock the cluster: %w", err)
	}
	return func() { _ = file.Close() }, nil
}
