package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// checkRoles examines the roles of the operators and of the pods, for a project those in its namespace.
func (e *Examiner) checkRoles(ctx context.Context, f *Facts) {
	f.Refused.Read, f.MissingRoles.Read = true, true
	for i := range f.Operators.Value {
		d := &f.Operators.Value[i]
		namespaces := watchedNamespaces(d)
		if len(namespaces) == 0 {
			namespaces = []string{""} // the cluster's roles
		}
		for _, namespace := range namespaces {
			if f.Project.Name == "" || namespace == "" || namespace == f.Project.Namespace {
				e.checkOperator(ctx, f, d, cmp.Or(namespace, f.Project.Namespace, d.Namespace))
				e.checkServerRoles(ctx, f, namespace)
			}
		}
	}
}

// checkServerRoles adds which roles of the pods a namespace lacks, or the cluster if it is empty.
func (e *Examiner) checkServerRoles(ctx context.Context, f *Facts, namespace string) {
	kind, where := "Role", "in "+namespace
	if namespace == "" {
		kind, where = "ClusterRole", "in the cluster"
	}
	for _, name := range []string{"phoneproof-server-kubernetes", "phoneproof-server-postgresql"} {
		role := &metav1.PartialObjectMetadata{}
		role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
		err := e.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, role)
		if apierrors.IsNotFound(err) {
			f.MissingRoles.Value = append(f.MissingRoles.Value, fmt.Sprintf("there is no %s %s %s", kind, name, where))
		} else if err != nil {
			f.MissingRoles.Why = explainUnread(err, "get "+strings.ToLower(kind)+"s.rbac.authorization.k8s.io", namespace)
		}
	}
}

// checkOperator asks the API server whether an operator may read a namespace.
func (e *Examiner) checkOperator(ctx context.Context, f *Facts, d *appsv1.Deployment, namespace string) {
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
		f.Refused.Why = explainUnread(err, "create localsubjectaccessreviews.authorization.k8s.io", namespace)
	} else if !review.Status.Allowed {
		f.Refused.Value = append(f.Refused.Value,
			fmt.Sprintf("the ServiceAccount %s/%s of the operator may not list verificationprojects in %s", d.Namespace, account, namespace))
	}
}
