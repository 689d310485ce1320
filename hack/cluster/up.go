package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

var errForeignNode = errors.New("another Kubernetes node has its iptables rules on this machine; " +
	"two of them would break each other (on a machine with Docker, try make cluster-up CLUSTER=kind, which was not tried here)")

// startCluster starts the components that are not running, in order, and returns when pods can run.
func (c *cluster) startCluster(ctx context.Context) error {
	began := time.Now()
	foreign, err := foreignNode(ctx)
	if err != nil {
		return err
	}
	if foreign {
		return errForeignNode
	}
	if err := c.prepareMachine(ctx); err != nil {
		return err
	}
	for _, component := range components {
		if _, err := os.Stat(c.corednsPath()); component.name == "coredns" && errors.Is(err, fs.ErrNotExist) {
			c.logf("coredns is not compiled yet; the next cluster up starts it") // hack/cluster.sh starts the rest meanwhile
			continue
		}
		if err := c.startComponent(ctx, component); err != nil {
			return err
		}
		if err := c.finishComponent(ctx, component.name); err != nil {
			return err
		}
	}
	if err := c.waitUntil(ctx, "the node to be ready", readyTimeout, c.nodeReady); err != nil {
		return err
	}
	c.logf("the cluster is up after %s; to use it: export KUBECONFIG=%s", time.Since(began).Round(time.Second), c.kubeconfigPath())
	return nil
}

// prepareMachine creates everything that needs no running component.
func (c *cluster) prepareMachine(ctx context.Context) error {
	if err := os.MkdirAll(runDir, 0o755); err != nil { //nolint:gosec // ctr needs no more than root has
		return fmt.Errorf("create cluster's folders: %w", err)
	}
	for _, dir := range []string{"", "keys", "logs", "etcd", "kubelet", "containerd", "cni", "pod-logs"} {
		if err := os.MkdirAll(statePath(dir), 0o755); err != nil { //nolint:gosec // containers read their own logs' folder
			return fmt.Errorf("create cluster's folders: %w", err)
		}
	}
	if err := saveSysctls(); err != nil {
		return err
	}
	if err := writeKeys(); err != nil {
		return err
	}
	for _, identity := range []string{"controller-manager", "scheduler", "kube-proxy", "kubelet", "coredns"} {
		if err := writeKubeconfig(kubeconfigFile(identity), identity); err != nil {
			return err
		}
	}
	if err := writeKubeconfig(c.kubeconfigPath(), "admin"); err != nil {
		return err
	}
	changed, err := writeConfigs()
	if err != nil {
		return err
	}
	for _, component := range changed {
		if err := c.stopProcess(ctx, component); err != nil {
			return err
		}
	}
	return networkUp(ctx)
}

// startComponent starts a component and waits until it is ready. If it exits at once, its log has the reason.
func (c *cluster) startComponent(ctx context.Context, component component) error {
	if err := c.startProcess(ctx, component.name, component.args(c)...); err != nil {
		return err
	}
	if component.ready == nil {
		return nil
	}
	ctx, ended := context.WithCancelCause(ctx)
	defer ended(nil)
	err := c.waitUntil(ctx, component.name, readyTimeout, func(ctx context.Context) error {
		if _, ok := readProcess(component.name); !ok {
			ended(errEnded)
			return errEnded
		}
		return component.ready(ctx, c)
	})
	if err != nil {
		return fmt.Errorf("start cluster (its logs are in %s): %w", statePath("logs"), err)
	}
	return nil
}

var errEnded = errors.New("exited; see its log")

// finishComponent does the setup that needs a component and that later components need.
func (c *cluster) finishComponent(ctx context.Context, name string) error {
	switch name {
	case "containerd":
		return c.loadImages(ctx, filepath.Join(c.bin, "cluster", "pause.tar"))
	case "kube-apiserver":
		_, err := runCommand(ctx, c.kubeBinary("kubectl"), "--kubeconfig", c.kubeconfigPath(),
			"apply", "--server-side", "-f", statePath("objects.yaml"))
		return err
	}
	return nil
}

// restartComponent ends a component and starts it again.
func (c *cluster) restartComponent(ctx context.Context, name string) error {
	i := slices.IndexFunc(components, func(component component) bool { return component.name == name })
	if i < 0 {
		return fmt.Errorf("restart %s: no such component", name)
	}
	if err := c.stopProcess(ctx, name); err != nil {
		return err
	}
	return c.startComponent(ctx, components[i])
}

func (c *cluster) printStatus() error {
	var problem error
	for _, component := range components {
		if p, ok := readProcess(component.name); ok {
			c.logf("%-24s running, process %d", component.name, p.PID)
			continue
		}
		c.logf("%-24s not running", component.name)
		problem = errors.New("not all components are running; make cluster-up starts them")
	}
	return problem
}

func serverReady(ctx context.Context, c *cluster) error {
	_, err := runCommand(ctx, c.kubeBinary("kubectl"), "--kubeconfig", c.kubeconfigPath(), "get", "--raw", "/readyz", "--request-timeout=5s")
	return err
}

// nodeReady checks what every pod needs: a ready node, and the namespace's default service account.
func (c *cluster) nodeReady(ctx context.Context) error {
	if _, err := runCommand(ctx, c.kubeBinary("kubectl"), "--kubeconfig", c.kubeconfigPath(), "wait", "--for=condition=Ready", "--timeout=1s",
		"node/"+nodeName); err != nil {
		return err
	}
	_, err := runCommand(ctx, c.kubeBinary("kubectl"), "--kubeconfig", c.kubeconfigPath(),
		"get", "serviceaccount/default", "--namespace=default")
	return err
}

// checkHealth returns nil if a health endpoint of this machine answers 200.
func checkHealth(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // ignores the environment's proxy
	response, err := direct.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return nil
}
