package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed config
var configs embed.FS

var errNoPlugins = errors.New("no CNI plugins found; the Debian package is containernetworking-plugins")

// configFiles are the files in the config folder with the component that reads each.
var configFiles = []struct{ file, target, component string }{
	{"containerd.toml", statePath("containerd.toml"), "containerd"},
	{"pods.conflist", statePath("cni", "pods.conflist"), ""}, // read for every pod
	{"objects.yaml", statePath("objects.yaml"), ""},
	{"Corefile", statePath("Corefile"), "coredns"},
	{"kubelet.yaml", statePath("kubelet.yaml"), "kubelet"},
	{"kube-proxy.yaml", statePath("kube-proxy.yaml"), "kube-proxy"},
}

// writeConfigs writes the configuration files into the cluster's folder, and returns the components whose file has
// changed. Unchanged files are not written, because kube-proxy exits when its file is written to.
func writeConfigs() (changed []string, err error) {
	plugins, err := pluginDir()
	if err != nil {
		return nil, err
	}
	values := configValues(plugins)
	for _, config := range configFiles {
		content, err := configs.ReadFile("config/" + config.file)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", config.file, err)
		}
		filled := os.Expand(string(content), func(name string) string { return values[name] })
		if before, err := os.ReadFile(config.target); err == nil && string(before) == filled {
			continue
		}
		if err := os.WriteFile(config.target, []byte(filled), 0o600); err != nil {
			return nil, fmt.Errorf("write %s: %w", config.file, err)
		}
		if config.component != "" {
			changed = append(changed, config.component)
		}
	}
	return changed, nil
}

// configValues returns the values of the placeholders ${NAME} in the files.
func configValues(plugins string) map[string]string {
	return map[string]string{
		"STATE": stateDir, "RUN": runDir, "SOCKET": socket, "PAUSE": pauseImage, "PLUGINS": plugins, "DOMAIN": clusterDomain,
		"NODE": nodeName, "NODE_IP": nodeIP, "POD_BRIDGE": podBridge, "POD_RANGE": podRange,
		"CA": certFile("ca"), "KUBELET_CERT": certFile("kubelet-server"), "KUBELET_KEY": keyFile("kubelet-server"),
		"PROXY_KUBECONFIG": kubeconfigFile("kube-proxy"), "DNS_KUBECONFIG": kubeconfigFile("coredns"),
	}
}

// pluginDir returns the folder in which the distribution installs the CNI plugins.
func pluginDir() (string, error) {
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"} {
		if _, err := os.Stat(filepath.Join(dir, "bridge")); err == nil {
			return dir, nil
		}
	}
	return "", errNoPlugins
}
