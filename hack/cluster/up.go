package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

var errForeignNode = errors.New("another Kubernetes node has its iptables rules on this machine; " +
	"two of them would break each other (on a machine with Docker, try make cluster-up CLUSTER=kind)")

// up starts what does not run yet, in order, and returns when pods can run.
func (c *cluster) up(ctx context.Context) error {
	began := time.Now()
	foreign, err := foreignNode(ctx)
	if err != nil {
		return err
	}
	if foreign {
		return errForeignNode
	}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	for _, component := range components {
		if err := c.run(ctx, component); err != nil {
			return err
		}
		if err := c.after(ctx, component.name); err != nil {
			return err
		}
	}
	if err := until(ctx, "the node to be ready", readyTimeout, c.nodeReady); err != nil {
		return err
	}
	c.sayf("the cluster is up after %s; to use it: export KUBECONFIG=%s", time.Since(began).Round(time.Second), c.kubeconfig())
	return nil
}

// prepare does what no process needs to run for.
func (c *cluster) prepare(ctx context.Context) error {
	if err := os.MkdirAll(runDir, 0o755); err != nil { //nolint:gosec // ctr needs no more than root has
		return fmt.Errorf("make the cluster's folders: %w", err)
	}
	for _, dir := range []string{"", "keys", "logs", "etcd", "kubelet", "containerd", "cni", "pod-logs"} {
		if err := os.MkdirAll(state(dir), 0o755); err != nil { //nolint:gosec // containers read their own logs' folder
			return fmt.Errorf("make the cluster's folders: %w", err)
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
	if err := writeKubeconfig(c.kubeconfig(), "admin"); err != nil {
		return err
	}
	changed, err := writeConfigs()
	if err != nil {
		return err
	}
	for _, component := range changed {
		if err := c.stop(ctx, component); err != nil {
			return err
		}
	}
	return networkUp(ctx)
}

// run starts a component and waits until it is ready. One that ends at once tells why in its log.
func (c *cluster) run(ctx context.Context, component component) error {
	if err := c.start(ctx, component.name, component.args(c)...); err != nil {
		return err
	}
	if component.ready == nil {
		return nil
	}
	ctx, ended := context.WithCancelCause(ctx)
	defer ended(nil)
	err := until(ctx, component.name, readyTimeout, func(ctx context.Context) error {
		if _, ok := recorded(component.name); !ok {
			ended(errEnded)
			return errEnded
		}
		return component.ready(ctx, c)
	})
	if err != nil {
		return fmt.Errorf("start the cluster (its logs are in %s): %w", state("logs"), err)
	}
	return nil
}

var errEnded = errors.New("it ended; see its log")

// after does what a component makes possible and later ones need.
func (c *cluster) after(ctx context.Context, name string) error {
	switch name {
	case "containerd":
		return c.load(ctx, filepath.Join(c.bin, "cluster", "pause.tar"))
	case "kube-apiserver":
		_, err := command(ctx, c.kubectl(), "--kubeconfig", c.kubeconfig(), "apply", "--server-side", "-f", state("objects.yaml"))
		return err
	}
	return nil
}

// restart ends a component and starts it again.
func (c *cluster) restart(ctx context.Context, name string) error {
	i := slices.IndexFunc(components, func(component component) bool { return component.name == name })
	if i < 0 {
		return fmt.Errorf("restart %s: the cluster has no such component", name)
	}
	if err := c.stop(ctx, name); err != nil {
		return err
	}
	return c.run(ctx, components[i])
}

func (c *cluster) status() error {
	var problem error
	for _, component := range components {
		if p, ok := recorded(component.name); ok {
			c.sayf("%-24s runs, process %d", component.name, p.PID)
			continue
		}
		c.sayf("%-24s does not run", component.name)
		problem = errors.New("not everything runs; make cluster-up starts it")
	}
	return problem
}

func serverReady(ctx context.Context, c *cluster) error {
	_, err := command(ctx, c.kubectl(), "--kubeconfig", c.kubeconfig(), "get", "--raw", "/readyz")
	return err
}

// nodeReady asks for what every pod needs: a node that takes it, and the service account that the namespace gives it.
func (c *cluster) nodeReady(ctx context.Context) error {
	if _, err := command(ctx, c.kubectl(), "--kubeconfig", c.kubeconfig(), "wait", "--for=condition=Ready", "--timeout=1s",
		"node/"+nodeName); err != nil {
		return err
	}
	_, err := command(ctx, c.kubectl(), "--kubeconfig", c.kubeconfig(), "get", "serviceaccount/default", "--namespace=default")
	return err
}

// answers asks an address of this machine whether all is well.
func answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // whatever proxy the environment names
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
