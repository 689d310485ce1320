package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
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
		namespaces, started := watchedNamespaces(d), e.readOperatorPods(ctx, f, d)
		if len(namespaces) == 0 {
			namespaces = []string{""} // the cluster's roles
		}
		for _, namespace := range namespaces {
			if f.Project.Name == "" || namespace == "" || namespace == f.Project.Namespace {
				e.checkOperator(ctx, f, d, cmp.Or(namespace, f.Project.Namespace, d.Namespace))
				e.checkServerRoles(ctx, f, namespace, started)
			}
		}
	}
}

// readOperatorPods adds the pods of an operator, and returns when the newest of its processes started; zero if none is ready.
func (e *Examiner) readOperatorPods(ctx context.Context, f *Facts, d *appsv1.Deployment) (started time.Time) {
	var list corev1.PodList
	if err := e.client.List(ctx, &list, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		f.OperatorPods.Why = explainUnread(err, "list pods", d.Namespace)
	}
	for i := range list.Items {
		for _, c := range list.Items[i].Status.ContainerStatuses {
			if c.Ready && c.State.Running != nil && c.State.Running.StartedAt.After(started) {
				started = c.State.Running.StartedAt.Time
			}
		}
	}
	f.OperatorPods.Value = append(f.OperatorPods.Value, list.Items...)
	return started
}

// longestAbsence is after which time an operator's process has read, or ended for, every namespace that can be read.
const longestAbsence = 11 * time.Minute

// checkServerRoles adds which roles of the pods a namespace lacks, or the cluster if it is empty, and whether they are newer than the
// operator's process, which started without them then.
func (e *Examiner) checkServerRoles(ctx context.Context, f *Facts, namespace string, started time.Time) {
	kind, where := "Role", "in "+namespace
	if namespace == "" {
		kind, where = "ClusterRole", "in the cluster"
	}
	var role *metav1.PartialObjectMetadata
	for _, name := range []string{"phoneproof-server-kubernetes", "phoneproof-server-postgresql"} {
		role = &metav1.PartialObjectMetadata{}
		role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
		err := e.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, role)
		if apierrors.IsNotFound(err) {
			f.MissingRoles.Value = append(f.MissingRoles.Value, fmt.Sprintf("there is no %s %s %s", kind, name, where))
		} else if err != nil {
			f.MissingRoles.Why = explainUnread(err, "get "+strings.ToLower(kind)+"s.rbac.authorization.k8s.io", namespace)
		}
	}
	if namespace != "" && role.CreationTimestamp.After(started) && f.Now.Sub(started) < longestAbsence {
		f.Refused.Value = append(f.Refused.Value,
			fmt.Sprintf("the Role %s %s is newer than the operator's process, which serves the namespace after a restart", role.Name, where))
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
