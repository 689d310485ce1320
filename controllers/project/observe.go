package project

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/apply"
)

// observed is what a project's reconciliation is decided by.
type observed struct {
	// project has its defaults, also those of fields that did not exist when it was stored.
	project *verifyv1.VerificationProject
	// accounts are the project's messenger accounts, with its claims on them.
	accounts []account
	// children are those that it has.
	children *apply.Observed
	// routes tells whether the cluster has the Gateway API.
	routes bool
}

// account is a messenger account of a project.
type account struct {
	name  string
	claim verifyv1.AccountClaim
	// holder is the project of the same namespace with an older claim; nil if there is none.
	holder *verifyv1.VerificationProject
	// elsewhere are the projects of other namespaces that name it and may.
	elsewhere []client.ObjectKey
}

// observe reads all of it, from the cache.
func (c *Controller) observe(ctx context.Context, project *verifyv1.VerificationProject) (*observed, error) {
	o := &observed{project: project.DeepCopy(), routes: c.gateway.present()}
	o.project.Default()
	c.claims.release(project)
	for _, name := range accounts(&o.project.Spec) {
		a, err := c.observeAccount(ctx, name, project)
		if err != nil {
			return nil, err
		}
		o.accounts = append(o.accounts, a)
	}
	var err error
	if o.children, err = c.applier.Observe(ctx, project); err != nil {
		return nil, err
	}
	return o, nil
}

// observeAccount finds out who else names an account of a project. A project that is being deleted claims nothing.
func (c *Controller) observeAccount(ctx context.Context, name string, project *verifyv1.VerificationProject) (account, error) {
	// Read under the lock: what was read before another claimed the account would not show that it names it.
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	var sharing verifyv1.VerificationProjectList
	if err := c.client.List(ctx, &sharing, client.MatchingFields{accountIndex: name}, client.UnsafeDisableDeepCopy); err != nil {
		return account{}, fmt.Errorf("list the projects with an account: %w", err)
	}
	a := account{name: name}
	rivals := []verifyv1.VerificationProject{*project}
	for i := range sharing.Items {
		other := &sharing.Items[i]
		switch {
		case other.UID == project.UID || !other.DeletionTimestamp.IsZero():
		case other.Namespace == project.Namespace:
			rivals = append(rivals, *other)
		case c.Permissions.mayUseAccount(project.Namespace, name) && c.Permissions.mayUseAccount(other.Namespace, name):
			a.elsewhere = append(a.elsewhere, client.ObjectKeyFromObject(other))
		}
	}
	for i, claim := range c.claims.order(rivals, name, c.Clock.Now()) {
		switch {
		case claim.project.UID == project.UID:
			a.claim = accountClaim(name, claim.since)
		case i == 0:
			a.holder = claim.project
		}
	}
	return a, nil
}
