package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// operatorChecks are about the operator and the CRDs.
func operatorChecks() []check {
	return []check{
		{
			name: "OperatorAbsent", problem: "no operator works in the namespace",
			remedy: "install it, or look at it: `kubectl -n phoneproof-system get deployments,pods`, `kubectl -n phoneproof-system logs deploy/phoneproof-operator`; " +
				"one with `--watch-namespace` must name NAMESPACE; if it does: `kubectl -n phoneproof-system rollout restart deployment phoneproof-operator`",
			find: findAbsentOperator,
		},
		{
			name: "NamespaceUnread", problem: "the operator does not serve the namespace: it is missing, lacks the chart's Roles, or came back after the operator's start",
			remedy: "create the namespace if it is missing, and have `helm upgrade`, with the values of the release, create its Roles. The operator serves it " +
				"within ten minutes; at once after `kubectl -n phoneproof-system rollout restart deployment phoneproof-operator`",
			find: func(f *Facts) []evidence { return see(f.Refused.Value...) },
		},
		{
			name: "OperatorStuck", problem: "pods of the operator do not become ready, so its former ones go on, or none does",
			remedy: "correct what the evidence names in the values of the release, such as `image.*`, and run `helm upgrade`, or go back with `helm rollback`: " +
				"`kubectl -n phoneproof-system describe pods`",
			find: findStuckOperator,
		},
		{
			name: "RolesMissing", problem: "a role that the pods of projects are bound to is missing, so they cannot reach their store",
			remedy: "have `helm upgrade`, with the values of the release, create it; without Helm `kubectl apply --server-side -k config/default`",
			find:   func(f *Facts) []evidence { return see(f.MissingRoles.Value...) },
		},
		{
			name: "OperatorBehind", problem: "the operator has not acted on the last change of the project",
			remedy: "look at its logs: `kubectl -n phoneproof-system logs deploy/phoneproof-operator`",
			find: func(f *Facts) []evidence {
				seen, at := f.Project.Status.ObservedGeneration, f.Project.Generation
				if seen <= 0 || seen >= at || isRecent(f, lastEdit(f.Project)) {
					return nil
				}
				return see(fmt.Sprintf("status.observedGeneration is %d, metadata.generation is %d", seen, at))
			},
		},
		{
			name: "CRDsOlder", problem: "the CRDs are missing, or older than this version, so the API server drops fields without a word",
			remedy: "have `helm upgrade`, with the values of the release, install those of its version (`crds.enabled`); without Helm `kubectl apply --server-side -k config/crd`",
			find: func(f *Facts) []evidence {
				missing := f.MissingFields.Value
				if len(missing) == 0 {
					return nil
				}
				const most = 5
				text := "they lack " + strings.Join(missing[:min(most, len(missing))], ", ")
				if more := len(missing) - most; more > 0 {
					text += fmt.Sprintf(" and %d more", more)
				}
				return see(text)
			},
		},
	}
}

// findAbsentOperator sees that no operator is there, or that none has ever looked at the project.
func findAbsentOperator(f *Facts) []evidence {
	installation, explained := f.Project.Name == "", len(f.Refused.Value) > 0 // by NamespaceUnread
	if !installation && !explained && f.Project.Status.ObservedGeneration <= 0 && !isRecent(f, f.Project.CreationTimestamp.Time) {
		return see("the project was created at " + f.Project.CreationTimestamp.UTC().Format(time.RFC3339) + " and was never observed")
	}
	if !f.Operators.Read {
		return nil
	}
	for i := range f.Operators.Value {
		if d := &f.Operators.Value[i]; d.Status.ReadyReplicas > 0 && (installation || watches(d, f.Project.Namespace)) {
			return nil
		}
	}
	return see(fmt.Sprintf("%d Deployments of an operator, none with a ready pod that works in %s", len(f.Operators.Value),
		cmp.Or(f.Project.Namespace, "any namespace")))
}

// findStuckOperator judges the pods of each operator as those of a project.
func findStuckOperator(f *Facts) (found []evidence) {
	for i := range f.Operators.Value {
		d := &f.Operators.Value[i]
		own := &Facts{Now: f.Now, Settle: f.Settle, ServerOffset: f.ServerOffset, Deployment: knownValue(d)}
		own.Pods.Value = slices.DeleteFunc(slices.Clone(f.OperatorPods.Value), func(p corev1.Pod) bool { return p.Namespace != d.Namespace })
		for _, c := range podChecks() {
			for _, e := range c.find(own) {
				found = append(found, see(c.problem+": "+e.text)...)
			}
		}
	}
	return found
}

// isRecent reports whether the operator or a pod may still be about to act on a change of that time.
func isRecent(f *Facts, at time.Time) bool {
	return f.Now.Add(-f.ServerOffset.Value).Sub(at) < f.Settle
}

// lastEdit returns when the project was last changed, but for its status.
func lastEdit(p *verifyv1.VerificationProject) time.Time {
	last := p.CreationTimestamp.Time
	for _, m := range p.ManagedFields {
		if m.Subresource == "" && m.Time != nil && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}
