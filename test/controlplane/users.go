package controlplane

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// User returns the configuration of a client with this name and these groups. It has only the rights that RBAC grants to
// them.
func (c *ControlPlane) User(name string, groups ...string) (*rest.Config, error) {
	// No rate limits, like Config: a throttled client would look like a slow server.
	unthrottled := &rest.Config{QPS: c.Config.QPS, Burst: c.Config.Burst}
	user, err := c.env.AddUser(envtest.User{Name: name, Groups: groups}, unthrottled)
	if err != nil {
		return nil, fmt.Errorf("add user %s: %w", name, err)
	}
	return user.Config(), nil
}

// ServiceAccount returns the configuration of a client that the API server treats as a service account: it has the name and
// groups of the account's tokens, so that bindings apply. The ServiceAccount object itself need not exist.
func (c *ControlPlane) ServiceAccount(namespace, name string) (*rest.Config, error) {
	return c.User("system:serviceaccount:"+namespace+":"+name,
		"system:serviceaccounts", "system:serviceaccounts:"+namespace)
}

// WriteKubeconfig writes a kubeconfig file with the credentials of a configuration that this package returned, for kubectl
// and other programs.
func WriteKubeconfig(file string, config *rest.Config) error {
	content, err := renderKubeconfig(config)
	if err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", file, err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
