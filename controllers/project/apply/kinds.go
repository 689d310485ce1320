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

// The kinds that are treated apart.
const (
	kindAccount    = "ServiceAccount"
	kindBinding    = "RoleBinding"
	kindDeployment = "Deployment"
	kindAutoscaler = "HorizontalPodAutoscaler"
	kindService    = "Service"
	kindIngress    = "Ingress"
	kindHTTPRoute  = "HTTPRoute"
)

// kind is one kind of children.
type kind struct {
	gvk       schema.GroupVersionKind
	newObject func() client.Object
	newList   func() client.ObjectList
	// extract returns what FieldOwner owns of an object, with its values.
	extract func(client.Object) (map[string]any, error)
}

// kinds are those of all children that the cluster can have now, in no order that matters.
func (a *Applier) kinds() []kind {
	if a.HTTPRoutes() {
		return allKinds
	}
	return allKinds[:len(allKinds)-1]
}

// Objects returns an empty object of each kind of children, with or without HTTPRoute, for watches and caches.
func Objects(httpRoutes bool) []client.Object {
	a := Applier{Options{HTTPRoutes: func() bool { return httpRoutes }}}
	var objects []client.Object
	for _, k := range a.kinds() {
		objects = append(objects, k.newObject())
	}
	return objects
}

var allKinds = []kind{
	builtin[corev1.ServiceAccount, corev1.ServiceAccountList](corev1.SchemeGroupVersion, kindAccount,
		corev1ac.ExtractServiceAccount),
	builtin[rbacv1.RoleBinding, rbacv1.RoleBindingList](rbacv1.SchemeGroupVersion, kindBinding,
		rbacv1ac.ExtractRoleBinding),
	builtin[networkingv1.NetworkPolicy, networkingv1.NetworkPolicyList](networkingv1.SchemeGroupVersion, "NetworkPolicy",
		networkingv1ac.ExtractNetworkPolicy),
	builtin[corev1.Service, corev1.ServiceList](corev1.SchemeGroupVersion, kindService,
		corev1ac.ExtractService),
	builtin[appsv1.Deployment, appsv1.DeploymentList](appsv1.SchemeGroupVersion, kindDeployment,
		appsv1ac.ExtractDeployment),
	builtin[policyv1.PodDisruptionBudget, policyv1.PodDisruptionBudgetList](policyv1.SchemeGroupVersion, "PodDisruptionBudget",
		policyv1ac.ExtractPodDisruptionBudget),
	builtin[autoscalingv2.HorizontalPodAutoscaler, autoscalingv2.HorizontalPodAutoscalerList](
		autoscalingv2.SchemeGroupVersion, kindAutoscaler, autoscalingv2ac.ExtractHorizontalPodAutoscaler),
	builtin[networkingv1.Ingress, networkingv1.IngressList](networkingv1.SchemeGroupVersion, kindIngress,
		networkingv1ac.ExtractIngress),
	httpRoute(), // the last: a cluster may not have it
}

// builtin returns a kind of Kubernetes itself. O and L are the structs of object and list.
func builtin[O, L any, PO interface {
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
				return nil, fmt.Errorf("a %T is not a %s", object, name)
			}
			owned, err := extract(child, string(FieldOwner))
			if err != nil {
				return nil, err
			}
			return content(owned)
		},
	}
}

func httpRoute() kind {
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
