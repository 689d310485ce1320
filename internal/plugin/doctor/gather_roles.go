package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// watchedNamespaces returns the namespaces that an operator works in; none for all.
func watchedNamespaces(d *appsv1.Deployment) []string {
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	namespaces := flags.StringSlice("watch-namespace", nil, "")
	for _, container := range d.Spec.Template.Spec.Containers {
		_ = flags.Parse(container.Args) // what cannot be parsed was refused by the operator
	}
	return *namespaces
}

// watches reports whether an operator works in a namespace.
func watches(d *appsv1.Deployment, namespace string) bool {
	watched := watchedNamespaces(d)
	return len(watched) == 0 || slices.Contains(watched, namespace)
}

// checkRoles asks the API server whether the operators may read the project's namespace.
func (e *Examiner) checkRoles(ctx context.Context, f *Facts) {
	f.Refused.Read = true
	for i := range f.Operators.Value {
		if d := &f.Operators.Value[i]; watches(d, f.Project.Namespace) {
			e.checkRole(ctx, f, d, f.Project.Namespace)
		}
	}
}

// checkRole adds what an operator may not read in a namespace.
func (e *Examiner) checkRole(ctx context.Context, f *Facts, d *appsv1.Deployment, namespace string) {
	account := cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")
	review := &authorizationv1.LocalSubjectAccessReview{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:" + d.Namespace + ":" + account,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + d.Namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: "list", Group: verifyv1.GroupVersion.Group, Resource: "verificationprojects",
			},
		},
	}
	if err := e.client.Create(ctx, review); err != nil {
		f.Refused = Known[[]string]{Why: explainUnread(err, "create localsubjectaccessreviews.authorization.k8s.io", namespace)}
	} else if !review.Status.Allowed {
		f.Refused.Value = append(f.Refused.Value,
			fmt.Sprintf("the ServiceAccount %s/%s of the operator may not list verificationprojects in %s", d.Namespace, account, namespace))
	}
}
