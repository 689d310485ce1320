package system

import (
	"context"
	"fmt"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/controlplane"
	"github.com/phoneproof/phoneproof/test/repository"
)

const (
	serverRole = "phoneproof-server-kubernetes"
	// serviceAccount is the identity of the replicas.
	serviceAccount = "serve"
	// tokenSeconds is longer than any run.
	tokenSeconds = 24 * 60 * 60
)

// startPlane runs an API server whose etcd syncs every acknowledged write, and creates the role of the replicas.
func (s *System) startPlane(ctx context.Context) error {
	log, err := s.openLog("apiserver")
	if err != nil {
		return err
	}
	s.Plane, err = controlplane.Start(controlplane.Options{
		Durable: true, Output: log,
		// When stopped, it waits this long for open watches; the default is a minute.
		APIServerArgs: map[string]string{"request-timeout": "12s"},
	})
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		verifyv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, authenticationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	if s.Admin, err = client.New(s.Plane.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{}
	if err := repository.Decode(role, repository.Roles, "server_kubernetes_role.yaml"); err != nil {
		return fmt.Errorf("read the role of the replicas: %w", err)
	}
	return s.Admin.Create(ctx, role)
}

func (p *Project) createInCluster(ctx context.Context, object *verifyv1.VerificationProject) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: serviceAccount}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}},
		account,
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: serviceAccount},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: serverRole},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.Namespace, Name: serviceAccount}},
		},
		object,
	} {
		if err := p.system.Admin.Create(ctx, o); err != nil {
			return err
		}
	}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	if err := p.system.Admin.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("create token: %w", err)
	}
	config := rest.AnonymousClientConfig(p.system.Plane.Config)
	config.BearerToken = token.Status.Token
	if reroute := p.system.options.APIServer; reroute != nil {
		if err := reroute(config); err != nil {
			return fmt.Errorf("reroute the calls of the replicas: %w", err)
		}
	}
	p.kubeconfig = filepath.Join(p.system.Dir, p.Namespace, "kubeconfig")
	return controlplane.WriteKubeconfig(p.kubeconfig, config)
}

// Config returns the client configuration of the replicas, with their token and their rights but without a rate limit.
func (p *Project) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of project %s: %w", p.Name(), err)
	}
	config.QPS, config.Burst = -1, -1
	return config, nil
}
