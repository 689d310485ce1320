package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/homedir"

	"github.com/phoneproof/phoneproof/internal/version"
)

// ClusterConfig returns how a subcommand reaches the API server, in the order that controllers usually have: a kubeconfig
// file that a flag names, the files of the environment variable KUBECONFIG, the ServiceAccount of the pod, ~/.kube/config.
func ClusterConfig(kubeconfig, subcommand string) (*rest.Config, error) {
	config, err := findCluster(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.UserAgent = "phoneproof/" + version.Version() + " " + subcommand
	// The API server protects itself by priority and fairness; client-go's own limit of 5 calls a second would be
	// the slowest part of the service.
	config.QPS = -1
	return config, nil
}

func findCluster(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		config, err := rest.InClusterConfig()
		if err == nil || !errors.Is(err, rest.ErrNotInCluster) {
			return config, err
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	if os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		// What clientcmd has here was found when the process started.
		rules.Precedence = []string{filepath.Join(homedir.HomeDir(), clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)}
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("this is not a pod, and no kubeconfig file names a cluster: set --kubeconfig or KUBECONFIG")
	}
	return config, err
}
