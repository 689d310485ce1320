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
	// accounts are the project's messenger accounts, each with the project that holds it.
	accounts []account
	// children are those that it has.
	children *apply.Observed
	// routes tells whether the cluster has the Gateway API.
	routes bool
}

// account is a messenger account of a project.
type account struct {
	name   string
	holder *verifyv1.VerificationProject
}

// observe reads all of it, from the cache.
func (c *Controller) observe(ctx context.Context, project *verifyv1.VerificationProject) (*observed, error) {
	o := &observed{project: project.DeepCopy(), routes: c.gateway.present()}
	o.project.Default()
	for _, name := range accounts(&o.project.Spec) {
		var all verifyv1.VerificationProjectList
		if err := c.client.List(ctx, &all, client.MatchingFields{accountIndex: name}); err != nil {
			return nil, fmt.Errorf("list the projects with an account: %w", err)
		}
		o.accounts = append(o.accounts, account{name, holder(append(all.Items, *project))})
	}
	var err error
	if o.children, err = c.applier.Observe(ctx, project); err != nil {
		return nil, err
	}
	return o, nil
}
