package apply

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
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

// allKinds are the kinds of children. Their order does not matter, except that of the last one.
var allKinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind(kindAccount),
	rbacv1.SchemeGroupVersion.WithKind(kindBinding),
	networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
	corev1.SchemeGroupVersion.WithKind(kindService),
	appsv1.SchemeGroupVersion.WithKind(kindDeployment),
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
	autoscalingv2.SchemeGroupVersion.WithKind(kindAutoscaler),
	networkingv1.SchemeGroupVersion.WithKind(kindIngress),
	render.HTTPRouteKind, // last, because a cluster may not have it
}

// listKinds returns the kinds of children that a cluster can have, with or without HTTPRoute.
func listKinds(httpRoutes bool) []schema.GroupVersionKind {
	if httpRoutes {
		return allKinds
	}
	return allKinds[:len(allKinds)-1]
}

// Objects returns an empty object of each kind of children, with or without HTTPRoute, for watches and caches.
func Objects(httpRoutes bool) []client.Object {
	var objects []client.Object
	for _, kind := range listKinds(httpRoutes) {
		objects = append(objects, newObject(kind))
	}
	return objects
}

// newObject returns an empty object of a kind; an unstructured one if the kind has no Go type here.
func newObject(kind schema.GroupVersionKind) client.Object {
	if typed, err := scheme.Scheme.New(kind); err == nil {
		if object, ok := typed.(client.Object); ok {
			return object
		}
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// newList returns an empty list of objects as newObject returns them.
func newList(kind schema.GroupVersionKind) client.ObjectList {
	kind.Kind += "List"
	if typed, err := scheme.Scheme.New(kind); err == nil {
		if list, ok := typed.(client.ObjectList); ok {
			return list
		}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	return list
}
