package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Server says how the pods of the API run. Image, command, labels and
// annotations of the pods are not the project's to choose.
type Server struct {
	// replicas is how many pods run. Ignored while autoscaling is set, and while
	// suspend is true. 1 to 50. Default: 2.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	Replicas *int32 `json:"replicas,omitempty"`

	// autoscaling, when present, makes a HorizontalPodAutoscaler that sets the
	// number of pods. Default: unset, replicas pods run.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// podDisruptionBudget, when present, even as {}, makes a
	// PodDisruptionBudget. Default: unset, none.
	// +optional
	PodDisruptionBudget *PodDisruptionBudget `json:"podDisruptionBudget,omitempty"`

	// resources of each pod. Default: requests of 50m CPU and 64Mi memory, a
	// limit of 256Mi memory, no limit on CPU.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// nodeSelector lets the pods run on nodes with these labels only. At most
	// 16 entries. Default: unset, on any node.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule=`self.all(k, size(k) <= 317 && k.matches(r'^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$') && self[k].matches(r'^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$'))`,message="nodeSelector must consist of labels: keys like example.com/pool, values of letters, digits, '-', '_' and '.'"
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitempty"`

	// tolerations of the pods, as in a Pod. The cluster's administrator says which
	// are allowed; none by default. At most 16 entries. Default: unset, none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity of the pods, as in a Pod. Default: unset, none.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// topologySpreadConstraints of the pods, as in a Pod. At most 8 entries.
	// Default: unset, and the pods are spread over nodes and zones where possible.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName of the pods. The cluster's administrator says which are
	// allowed. Default: unset, the cluster's default.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message="priorityClassName must be the name of a PriorityClass: lower-case letters, digits, '-' and '.'"
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// Autoscaling sets the number of pods by their CPU use.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",message="minReplicas must not be greater than maxReplicas; raise maxReplicas or lower minReplicas",fieldPath=".minReplicas"
type Autoscaling struct {
	// minReplicas is the lowest number of pods. 1 to 50. Default: 2.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the highest number of pods. 1 to 50, not lower than
	// minReplicas. Example: 10. Required.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	MaxReplicas int32 `json:"maxReplicas"`

	// targetCPUUtilization is the average CPU use that is aimed at, in percent
	// of the pods' CPU request. 1 to 100. Default: 70.
	// +optional
	// +kubebuilder:default=70
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	TargetCPUUtilization *int32 `json:"targetCPUUtilization,omitempty"`
}

// PodDisruptionBudget bounds how many pods a node drain may stop at once.
type PodDisruptionBudget struct {
	// maxUnavailable is how many pods may be missing at once. 1 to 50.
	// Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	MaxUnavailable *int32 `json:"maxUnavailable,omitempty"`
}

// Resources of each pod. It reads like a container's resources, with the
// amounts that a web server can use and no others.
//
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !has(self.requests.cpu) || !has(self.limits.cpu) || quantity(string(self.requests.cpu)).compareTo(quantity(string(self.limits.cpu))) <= 0",message="requests.cpu must not be greater than limits.cpu",fieldPath=".requests.cpu"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !has(self.requests.memory) || !has(self.limits.memory) || quantity(string(self.requests.memory)).compareTo(quantity(string(self.limits.memory))) <= 0",message="requests.memory must not be greater than limits.memory",fieldPath=".requests.memory"
type Resources struct {
	// requests is what the scheduler sets aside for each pod. Default: 50m CPU
	// and 64Mi memory, but never more than limits.
	// +optional
	Requests *ResourceAmounts `json:"requests,omitempty"`

	// limits is what each pod may use at most. Default: no limit on CPU; 256Mi
	// memory, or requests.memory where that is more.
	// +optional
	Limits *ResourceAmounts `json:"limits,omitempty"`
}

// ResourceAmounts are amounts of CPU and memory.
type ResourceAmounts struct {
	// cpu in cores or, with the suffix m, thousandths of a core. Example: 250m.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) > 0 && quantity(string(self)).compareTo(quantity('1024')) <= 0",message="cpu must be more than 0 and at most 1024 cores, for example 250m"
	// +kubebuilder:validation:Pattern=`^([0-9]{1,4}(\.[0-9]{1,3})?|[0-9]{1,7}m)$`
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// memory in bytes, or with a suffix: k, M, G, T, Ki, Mi, Gi or Ti.
	// Example: 256Mi.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Mi')) >= 0 && quantity(string(self)).compareTo(quantity('1Ti')) <= 0",message="memory must be at least 16Mi and at most 1Ti, for example 256Mi"
	// +kubebuilder:validation:Pattern=`^([0-9]{1,13}|[0-9]{1,4}(\.[0-9]{1,3})?[GT]i?|[0-9]{1,7}(\.[0-9]{1,3})?[MK]i|[0-9]{1,9}[kM])$`
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// NetworkPolicy says who may reach the pods. Only incoming traffic is
// restricted: what the pods call (DNS, the API server, a database, the
// messengers, the webhook receiver) cannot be named by address in advance.
type NetworkPolicy struct {
	// ingressFrom lists who may call the API: usually the ingress controller
	// and the client backends. At most 16 peers, as in a NetworkPolicy.
	// Default: unset, all may call the API, and nothing else of the pod.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	IngressFrom []networkingv1.NetworkPolicyPeer `json:"ingressFrom,omitempty"`

	// metricsFrom lists who may read the metrics: usually Prometheus. At most
	// 16 peers, as in a NetworkPolicy. Default: unset, none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MetricsFrom []networkingv1.NetworkPolicyPeer `json:"metricsFrom,omitempty"`
}
