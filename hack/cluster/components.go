package main

import (
	"context"
	"time"
)

// component is a process of the cluster.
type component struct {
	name string
	args func(c *cluster) []string
	// ready returns nil once other components may rely on it. It is nil if there is nothing to wait for.
	ready func(ctx context.Context, c *cluster) error
}

// components are in start order. They need no supervisor: those that exit when they lose a lease hold none here.
var components = []component{
	{"containerd", containerdArgs, func(ctx context.Context, _ *cluster) error {
		_, err := runCtr(ctx, "version")
		return err
	}},
	{"etcd", etcdArgs, nil},
	{"kube-apiserver", apiserverArgs, serverReady},
	{"kube-controller-manager", controllerManagerArgs, nil},
	{"kube-scheduler", schedulerArgs, nil},
	{"coredns", corednsArgs, func(ctx context.Context, _ *cluster) error { return checkHealth(ctx, "http://"+nodeIP+":8181/ready") }},
	{"kubelet", kubeletArgs, func(ctx context.Context, _ *cluster) error { return checkHealth(ctx, "http://127.0.0.1:10248/healthz") }},
	{"kube-proxy", proxyArgs, func(ctx context.Context, _ *cluster) error { return checkHealth(ctx, "http://"+nodeIP+":10256/livez") }},
}

// readyTimeout bounds the start of one component on a loaded machine.
const readyTimeout = 3 * time.Minute

func containerdArgs(*cluster) []string {
	return []string{"containerd", "--config", statePath("containerd.toml")}
}

func etcdArgs(c *cluster) []string {
	const client, peer = "https://" + etcdAddress, "http://" + etcdPeer
	return []string{
		c.kubeBinary("etcd"), "--name=" + nodeName, "--data-dir=" + statePath("etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=" + nodeName + "=" + peer,
		"--cert-file=" + certFile("etcd"), "--key-file=" + keyFile("etcd"),
		"--trusted-ca-file=" + certFile("ca"), "--client-cert-auth",
		"--unsafe-no-fsync", // the data need not survive a crash
		"--log-level=warn",
	}
}

func apiserverArgs(c *cluster) []string {
	return []string{
		c.kubeBinary("kube-apiserver"), "--bind-address=" + nodeIP, "--advertise-address=" + nodeIP, "--secure-port=6443",
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
		"--kubelet-preferred-address-types=InternalIP", // no DNS resolves the node's name
	}
}

func controllerManagerArgs(c *cluster) []string {
	return []string{
		c.kubeBinary("kube-controller-manager"), "--bind-address=" + nodeIP, "--leader-elect=false",
		"--kubeconfig=" + kubeconfigFile("controller-manager"), "--use-service-account-credentials",
		"--service-account-private-key-file=" + keyFile("service-accounts"), "--root-ca-file=" + certFile("ca"),
		"--cluster-signing-cert-file=" + certFile("ca"), "--cluster-signing-key-file=" + keyFile("ca"),
		"--kube-api-qps=200", "--kube-api-burst=400", // otherwise it collects 20 objects a second, and a project may have thousands
	}
}

func schedulerArgs(c *cluster) []string {
	return []string{
		c.kubeBinary("kube-scheduler"), "--bind-address=" + nodeIP, "--leader-elect=false",
		"--kubeconfig=" + kubeconfigFile("scheduler"),
	}
}

func corednsArgs(c *cluster) []string {
	return []string{c.corednsPath(), "-conf", statePath("Corefile")}
}

func kubeletArgs(c *cluster) []string {
	return []string{
		c.kubeBinary("kubelet"), "--config=" + statePath("kubelet.yaml"), "--kubeconfig=" + kubeconfigFile("kubelet"),
		"--root-dir=" + statePath("kubelet"), "--hostname-override=" + nodeName, "--node-ip=" + nodeIP,
	}
}

func proxyArgs(c *cluster) []string {
	return []string{c.kubeBinary("kube-proxy"), "--config=" + statePath("kube-proxy.yaml")}
}
