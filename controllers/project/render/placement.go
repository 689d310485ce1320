package render

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// placePods sets the constraints on the nodes of the pods.
func placePods(spec *corev1ac.PodSpecApplyConfiguration, p *verifyv1.VerificationProject) *corev1ac.PodSpecApplyConfiguration {
	server := &p.Spec.Server
	spec.NodeSelector = verifyv1.Strings(server.NodeSelector)
	spec.Affinity = toConfiguration[*corev1ac.AffinityApplyConfiguration](server.Affinity)
	spec.Tolerations = toConfiguration[[]corev1ac.TolerationApplyConfiguration](server.Tolerations)
	if server.PriorityClassName != "" {
		spec.WithPriorityClassName(server.PriorityClassName)
	}
	constraints := server.TopologySpreadConstraints
	if constraints == nil {
		constraints = []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway},
			{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway},
		}
	}
	spec.TopologySpreadConstraints = toConfiguration[[]corev1ac.TopologySpreadConstraintApplyConfiguration](constraints)
	for i := range spec.TopologySpreadConstraints {
		spreadOwn(&spec.TopologySpreadConstraints[i], p)
	}
	return spec
}

// spreadOwn makes a constraint without a selector count the project's own pods. Without matchLabelKeys the old pods would count
// during a rollout, and the new ones would be spread unevenly.
func spreadOwn(constraint *corev1ac.TopologySpreadConstraintApplyConfiguration, p *verifyv1.VerificationProject) {
	if constraint.LabelSelector != nil {
		return
	}
	constraint.LabelSelector = podSelector(p)
	if constraint.MatchLabelKeys == nil {
		constraint.WithMatchLabelKeys(appsv1.DefaultDeploymentUniqueLabelKey)
	}
}

// toConfiguration returns an API value as its apply configuration, which has the same JSON.
func toConfiguration[T any](value any) T {
	var out T
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		panic(fmt.Sprintf("%T and %T differ in JSON: %v", value, out, err))
	}
	return out
}
