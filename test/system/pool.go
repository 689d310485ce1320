package system

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// AddProjects creates copies of a project of a cluster in its namespace, with the same secrets, and returns their names.
func (p *Project) AddProjects(ctx context.Context, n int) ([]string, error) {
	var project verifyv1.VerificationProject
	if err := p.system.Admin.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: ProjectName}, &project); err != nil {
		return nil, fmt.Errorf("copy project %s: %w", p.Name(), err)
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", ProjectName, i+2)
		one := &verifyv1.VerificationProject{Spec: *project.Spec.DeepCopy()}
		one.Namespace, one.Name = p.Namespace, names[i]
		if err := p.system.Admin.Create(ctx, one); err != nil {
			return nil, fmt.Errorf("copy project %s: %w", p.Name(), err)
		}
	}
	return names, nil
}

// PoolReplica is a process that serves several projects of a namespace.
type PoolReplica struct {
	*Replica

	// APIs are the addresses of the projects, by name, as host:port.
	APIs map[string]string
}

// StartPool starts a process that serves the project and others of its namespace, and does not wait for it; see AwaitReady.
func (p *Project) StartPool(others ...string) (*PoolReplica, error) {
	flags := slices.Concat(
		p.platformFlags(), p.system.options.Flags, []string{"--kubeconfig=" + p.kubeconfig, "--pool=" + p.Namespace + "/pool"},
	)
	apis := map[string]string{}
	for _, name := range append([]string{ProjectName}, others...) {
		address, err := p.system.reserveAddress()
		if err != nil {
			return nil, fmt.Errorf("start pool of %s: %w", p.Namespace, err)
		}
		apis[name] = address
		flags = append(flags, "--member=name="+name+",address="+address+",store="+string(p.system.options.Store))
	}
	r, err := p.startServe(flags...)
	if err != nil {
		return nil, fmt.Errorf("start pool of %s: %w", p.Namespace, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replicas = append(p.replicas, r)
	return &PoolReplica{r, apis}, nil
}
