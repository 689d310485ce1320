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

// ClusterConfig returns the client configuration of a subcommand. It takes the first of: the kubeconfig file of a flag, the
// files of the environment variable KUBECONFIG, the ServiceAccount of the pod, ~/.kube/config.
func ClusterConfig(kubeconfig, subcommand string) (*rest.Config, error) {
	config, err := findCluster(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.UserAgent = "phoneproof/" + version.Version() + " " + subcommand
	// The API server protects itself with priority and fairness, and client-go's limit of 5 requests per second would be the
	// bottleneck of the service.
	config.QPS = -1
	return config, nil
}

func findCluster(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		config, err := rest.InClusterConfig()
		switch {
		case err == nil:
			return config, nil
		case !errors.Is(err, rest.ErrNotInCluster):
			return nil, fmt.Errorf("read ServiceAccount: %w", err)
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	if os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		// clientcmd computed its default when the process started; HOME may have changed since.
		rules.Precedence = []string{filepath.Join(homedir.HomeDir(), clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)}
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("this is not a pod, and no kubeconfig file names a cluster: set --kubeconfig or KUBECONFIG")
	}
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, nil
}
