package apply

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// Kinds with rules of their own.
const (
	kindAccount    = "ServiceAccount"
	kindBinding    = "RoleBinding"
	kindDeployment = "Deployment"
	kindAutoscaler = "HorizontalPodAutoscaler"
	kindService    = "Service"
	kindIngress    = "Ingress"
	kindHTTPRoute  = "HTTPRoute"
)

// kind describes one kind of children.
type kind struct {
	gvk       schema.GroupVersionKind
	newObject func() client.Object
	newList   func() client.ObjectList
	// extract returns the fields of an object that FieldOwner owns, with their values.
	extract func(client.Object) (map[string]any, error)
}

// listKinds returns the kinds of children that the cluster can have now. Their order does not matter.
func (a *Applier) listKinds() []kind {
	if a.HTTPRoutes() {
		return allKinds
	}
	return allKinds[:len(allKinds)-1]
}

// Objects returns an empty object of each kind of children, with or without HTTPRoute, for watches and caches.
func Objects(httpRoutes bool) []client.Object {
	a := Applier{Options{HTTPRoutes: func() bool { return httpRoutes }}}
	var objects []client.Object
	for _, k := range a.listKinds() {
		objects = append(objects, k.newObject())
	}
	return objects
}

var allKinds = []kind{
	builtinKind[corev1.ServiceAccount, corev1.ServiceAccountList](corev1.SchemeGroupVersion, kindAccount,
		corev1ac.ExtractServiceAccount),
	builtinKind[rbacv1.RoleBinding, rbacv1.RoleBindingList](rbacv1.SchemeGroupVersion, kindBinding,
		rbacv1ac.ExtractRoleBinding),
	builtinKind[networkingv1.NetworkPolicy, networkingv1.NetworkPolicyList](networkingv1.SchemeGroupVersion, "NetworkPolicy",
		networkingv1ac.ExtractNetworkPolicy),
	builtinKind[corev1.Service, corev1.ServiceList](corev1.SchemeGroupVersion, kindService,
		corev1ac.ExtractService),
	builtinKind[appsv1.Deployment, appsv1.DeploymentList](appsv1.SchemeGroupVersion, kindDeployment,
		appsv1ac.ExtractDeployment),
	builtinKind[policyv1.PodDisruptionBudget, policyv1.PodDisruptionBudgetList](policyv1.SchemeGroupVersion, "PodDisruptionBudget",
		policyv1ac.ExtractPodDisruptionBudget),
	builtinKind[autoscalingv2.HorizontalPodAutoscaler, autoscalingv2.HorizontalPodAutoscalerList](
		autoscalingv2.SchemeGroupVersion, kindAutoscaler, autoscalingv2ac.ExtractHorizontalPodAutoscaler),
	builtinKind[networkingv1.Ingress, networkingv1.IngressList](networkingv1.SchemeGroupVersion, kindIngress,
		networkingv1ac.ExtractIngress),
	httpRouteKind(), // last, because a cluster may not have it
}

// builtinKind returns a kind of Kubernetes itself. O and L are the structs of object and list.
func builtinKind[O, L any, PO interface {
	*O
	client.Object
}, PL interface {
	*L
	client.ObjectList
}, C any](version schema.GroupVersion, name string, extract func(PO, string) (C, error)) kind {
	return kind{
		gvk:       version.WithKind(name),
		newObject: func() client.Object { return PO(new(O)) },
		newList:   func() client.ObjectList { return PL(new(L)) },
		extract: func(object client.Object) (map[string]any, error) {
			child, ok := object.(PO)
			if !ok {
				return nil, fmt.Errorf("unexpected type %T for %s", object, name)
			}
			owned, err := extract(child, string(FieldOwner))
			if err != nil {
				return nil, fmt.Errorf("extract owned fields: %w", err)
			}
			return toContent(owned)
		},
	}
}

func httpRouteKind() kind {
	return kind{
		gvk: render.HTTPRouteKind,
		newObject: func() client.Object {
			route := &unstructured.Unstructured{}
			route.SetGroupVersionKind(render.HTTPRouteKind)
			return route
		},
		newList: func() client.ObjectList {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(render.HTTPRouteKind.GroupVersion().WithKind(render.HTTPRouteKind.Kind + "List"))
			return list
		},
		extract: extractHTTPRoute,
	}
}
