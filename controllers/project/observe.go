package project

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// observed is the input of a decision.
type observed struct {
	// project has its defaults, including those of fields that did not exist when it was stored.
	project *verifyv1.VerificationProject
	// accounts are the project's messenger accounts, with its claims on them.
	accounts []account
	// children are the existing ones.
	children *apply.Observed
	// routes is set if the cluster has the Gateway API.
	routes bool
}

// account is a messenger account of a project.
type account struct {
	name  string
	claim verifyv1.AccountClaim
	// holder is the project of the same namespace with an older claim; nil if there is none.
	holder *verifyv1.VerificationProject
	// elsewhere are the projects of other namespaces that may name it and do.
	elsewhere []client.ObjectKey
}

// observeProject reads the input from the cache.
func (c *Controller) observeProject(ctx context.Context, project *verifyv1.VerificationProject) (*observed, error) {
	o := &observed{project: project.DeepCopy(), routes: c.gateway.isPresent()}
	o.project.Default()
	c.claims.release(project)
	for _, name := range listAccounts(&o.project.Spec) {
		a, err := c.observeAccount(ctx, name, project)
		if err != nil {
			return nil, fmt.Errorf("observe account %s: %w", name, err)
		}
		o.accounts = append(o.accounts, a)
	}
	var err error
	if o.children, err = c.applier.Observe(ctx, project); err != nil {
		return nil, fmt.Errorf("observe children: %w", err)
	}
	return o, nil
}

// observeAccount finds the other projects that name an account of a project.
func (c *Controller) observeAccount(ctx context.Context, name string, project *verifyv1.VerificationProject) (account, error) {
	a := account{name: name}
	if err := c.claimAccount(ctx, &a, project); err != nil {
		return account{}, fmt.Errorf("claim account: %w", err)
	}
	if err := c.findSharing(ctx, &a, project); err != nil {
		return account{}, fmt.Errorf("find sharing projects: %w", err)
	}
	return a, nil
}

// claimAccount orders the project's claim on an account among those of its namespace. A project that is being deleted has none.
func (c *Controller) claimAccount(ctx context.Context, a *account, project *verifyv1.VerificationProject) error {
	// Read under the lock: an earlier read might not show that another project names the account.
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	var beside verifyv1.VerificationProjectList
	err := c.client.List(ctx, &beside, client.InNamespace(project.Namespace), client.MatchingFields{accountIndex: a.name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list projects of namespace by account: %w", err)
	}
	rivals := []*verifyv1.VerificationProject{project}
	for i := range beside.Items {
		if other := &beside.Items[i]; other.UID != project.UID && other.DeletionTimestamp.IsZero() {
			rivals = append(rivals, other)
		}
	}
	for i, claim := range c.claims.recordClaims(rivals, a.name, c.Clock.Now()) {
		switch {
		case claim.project.UID == project.UID:
			a.claim = newAccountClaim(a.name, claim.since)
		case i == 0:
			a.holder = claim.project
		}
	}
	return nil
}

// findSharing finds the projects of other namespaces that use an account. A project that is being deleted uses it while its
// Deployment exists.
func (c *Controller) findSharing(ctx context.Context, a *account, project *verifyv1.VerificationProject) error {
	if !c.Permissions.mayUseAccount(project.Namespace, a.name) {
		return nil
	}
	var sharing verifyv1.VerificationProjectList
	if err := c.client.List(ctx, &sharing, client.MatchingFields{accountIndex: a.name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list projects by account: %w", err)
	}
	for i := range sharing.Items {
		other := &sharing.Items[i]
		if other.Namespace == project.Namespace {
			continue
		}
		uses, err := c.usesAccount(ctx, other, a.name)
		if err != nil {
			return fmt.Errorf("check use by project in deletion: %w", err)
		}
		if uses {
			a.elsewhere = append(a.elsewhere, client.ObjectKeyFromObject(other))
		}
	}
	return nil
}

// usesAccount reports whether a project of another namespace uses an account: it names the account and may, or it is being
// deleted and its Deployment still exists.
func (c *Controller) usesAccount(ctx context.Context, other *verifyv1.VerificationProject, account string) (bool, error) {
	if other.DeletionTimestamp.IsZero() {
		return c.Permissions.mayUseAccount(other.Namespace, account), nil
	}
	var deployment appsv1.Deployment
	key := client.ObjectKey{Namespace: other.Namespace, Name: render.Name(other.Name)}
	err := c.client.Get(ctx, key, &deployment, client.UnsafeDisableDeepCopy)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("read Deployment of project in deletion: %w", err)
	}
	return err == nil && metav1.IsControlledBy(&deployment, other), nil
}
