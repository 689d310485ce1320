package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// Children are the objects that a project wants. A nil one is not wanted, and is deleted if it is ours.
type Children struct {
	ServiceAccount          *corev1ac.ServiceAccountApplyConfiguration
	RoleBinding             *rbacv1ac.RoleBindingApplyConfiguration
	NetworkPolicy           *networkingv1ac.NetworkPolicyApplyConfiguration
	Service                 *corev1ac.ServiceApplyConfiguration
	Deployment              *appsv1ac.DeploymentApplyConfiguration
	PodDisruptionBudget     *policyv1ac.PodDisruptionBudgetApplyConfiguration
	HorizontalPodAutoscaler *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration
	Ingress                 *networkingv1ac.IngressApplyConfiguration
	HTTPRoute               *unstructured.Unstructured
}

// Project returns the children of a project, built anew for each call, because applying a configuration modifies it. The project
// must have its defaults and a UID.
func Project(p *verifyv1.VerificationProject, o Options) Children {
	return Children{
		ServiceAccount:          ServiceAccount(p),
		RoleBinding:             RoleBinding(p, o),
		NetworkPolicy:           NetworkPolicy(p),
		Service:                 Service(p),
		Deployment:              Deployment(p, o),
		PodDisruptionBudget:     PodDisruptionBudget(p),
		HorizontalPodAutoscaler: HorizontalPodAutoscaler(p),
		Ingress:                 Ingress(p),
		HTTPRoute:               HTTPRoute(p, o),
	}
}

// List returns the wanted children in the order in which they are applied: what a pod needs before the pods.
func (c Children) List() []runtime.ApplyConfiguration {
	var list []runtime.ApplyConfiguration
	add := func(wanted bool, child runtime.ApplyConfiguration) {
		if wanted {
			list = append(list, child)
		}
	}
	add(c.ServiceAccount != nil, c.ServiceAccount)
	add(c.RoleBinding != nil, c.RoleBinding)
	add(c.NetworkPolicy != nil, c.NetworkPolicy)
	add(c.Service != nil, c.Service)
	add(c.Deployment != nil, c.Deployment)
	add(c.PodDisruptionBudget != nil, c.PodDisruptionBudget)
	add(c.HorizontalPodAutoscaler != nil, c.HorizontalPodAutoscaler)
	add(c.Ingress != nil, c.Ingress)
	add(c.HTTPRoute != nil, client.ApplyConfigurationFromUnstructured(c.HTTPRoute))
	return list
}
