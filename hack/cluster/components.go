package main

import (
	"context"
	"path/filepath"
	"time"
)

// component is a process of the cluster.
type component struct {
	name string
	args func(c *cluster) []string
	// ready returns nil once others may rely on it; nil itself where nothing is to wait for.
	ready func(ctx context.Context, c *cluster) error
}

// components are in the order of their start. None needs a supervisor: those that end themselves when they lose a lease
// hold none.
var components = []component{
	{"containerd", containerd, func(ctx context.Context, _ *cluster) error {
		_, err := ctr(ctx, "version")
		return err
	}},
	{"etcd", etcd, nil},
	{"kube-apiserver", apiserver, serverReady},
	{"kube-controller-manager", controllerManager, nil},
	{"kube-scheduler", scheduler, nil},
	{"coredns", coredns, func(ctx context.Context, _ *cluster) error { return answers(ctx, "http://"+nodeIP+":8181/ready") }},
	{"kubelet", kubelet, func(ctx context.Context, _ *cluster) error { return answers(ctx, "http://127.0.0.1:10248/healthz") }},
	{"kube-proxy", proxy, func(ctx context.Context, _ *cluster) error { return answers(ctx, "http://"+nodeIP+":10256/livez") }},
}

// readyTimeout bounds the start of one component on a machine that has other work too.
const readyTimeout = 3 * time.Minute

func (c *cluster) kube(name string) string { return filepath.Join(c.bin, "kube", name) }

func containerd(*cluster) []string {
	return []string{"containerd", "--config", state("containerd.toml")}
}

func etcd(c *cluster) []string {
	const client, peer = "https://" + etcdAddress, "http://" + etcdPeer
	return []string{
		c.kube("etcd"), "--name=" + nodeName, "--data-dir=" + state("etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=" + nodeName + "=" + peer,
		"--cert-file=" + certFile("etcd"), "--key-file=" + keyFile("etcd"),
		"--trusted-ca-file=" + certFile("ca"), "--client-cert-auth",
		"--unsafe-no-fsync", // nothing here is worth waiting for the disk
		"--log-level=warn",
	}
}

func apiserver(c *cluster) []string {
	return []string{
		c.kube("kube-apiserver"), "--bind-address=" + nodeIP, "--advertise-address=" + nodeIP, "--secure-port=6443",
		"--etcd-servers=https://" + etcdAddress,
		"--etcd-cafile=" + certFile("ca"), "--etcd-certfile=" + certFile("apiserver"), "--etcd-keyfile=" + keyFile("apiserver"),
		"--tls-cert-file=" + certFile("apiserver"), "--tls-private-key-file=" + keyFile("apiserver"),
		"--client-ca-file=" + certFile("ca"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-cluster-ip-range=" + serviceRange,
		"--service-account-issuer=https://kubernetes.default.svc." + clusterDomain,
		"--service-account-key-file=" + certFile("service-accounts"),
		"--service-account-signing-key-file=" + keyFile("service-accounts"),
		"--kubelet-certificate-authority=" + certFile("ca"),
		"--kubelet-client-certificate=" + certFile("admin"), "--kubelet-client-key=" + keyFile("admin"),
		"--kubelet-preferred-address-types=InternalIP", // the node's name is in no DNS
	}
}

func controllerManager(c *cluster) []string {
	return []string{
		c.kube("kube-controller-manager"), "--bind-address=" + nodeIP, "--leader-elect=false",
		"--kubeconfig=" + kubeconfigFile("controller-manager"), "--use-service-account-credentials",
		"--service-account-private-key-file=" + keyFile("service-accounts"), "--root-ca-file=" + certFile("ca"),
		"--cluster-signing-cert-file=" + certFile("ca"), "--cluster-signing-key-file=" + keyFile("ca"),
	}
}

func scheduler(c *cluster) []string {
	return []string{
		c.kube("kube-scheduler"), "--bind-address=" + nodeIP, "--leader-elect=false",
		"--kubeconfig=" + kubeconfigFile("scheduler"),
	}
}

func coredns(c *cluster) []string {
	return []string{filepath.Join(c.bin, "cluster", "coredns"), "-conf", state("Corefile")}
}

func kubelet(c *cluster) []string {
	return []string{
		c.kube("kubelet"), "--config=" + state("kubelet.yaml"), "--kubeconfig=" + kubeconfigFile("kubelet"),
		"--root-dir=" + state("kubelet"), "--hostname-override=" + nodeName, "--node-ip=" + nodeIP,
	}
}

func proxy(c *cluster) []string {
	return []string{c.kube("kube-proxy"), "--config=" + state("kube-proxy.yaml")}
}
