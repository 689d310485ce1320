package project

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// exposure exposes the pods of a project: an Ingress, an HTTPRoute, or a Service with annotations.
type exposure struct {
	namespace, project string
	owner              types.UID
	hosts              []string
	paths              []string
}

// hostIndex is the index of exposures by the hosts that they answer to.
const hostIndex = "phoneproof.dev/host"

// indexByHost returns the hosts of an exposure for the index; none for an object that the operator did not create.
func indexByHost(object client.Object) []string {
	owner := projectOf(object)
	if owner == nil || render.Name(owner.Name) != object.GetName() {
		return nil
	}
	hosts, _ := readHosts(object)
	return hosts
}

// collectHosts returns the host names that a project asks for, sorted, those of its HTTPRoute only with routes.
func collectHosts(p *verifyv1.VerificationProject, routes bool) []string {
	hosts := collectAnnotated(p)
	if host := render.IngressHost(p); host != "" {
		hosts = append(hosts, host)
	}
	if routes {
		hosts = append(hosts, render.RouteHosts(p)...)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// listExposures reads the exposures that answer to a host from the cache.
func listExposures(ctx context.Context, reader client.Reader, routes bool, host string) ([]exposure, error) {
	lists := []client.ObjectList{&networkingv1.IngressList{}, &corev1.ServiceList{}}
	if routes {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(render.HTTPRouteKind.GroupVersion().WithKind(render.HTTPRouteKind.Kind + "List"))
		lists = append(lists, list)
	}
	var exposures []exposure
	for _, list := range lists {
		if err := reader.List(ctx, list, client.MatchingFields{hostIndex: host}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T by host: %w", list, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("read %T", item)
			}
			e, ok, err := findExposure(ctx, reader, object)
			if err != nil {
				return fmt.Errorf("find project of exposure: %w", err)
			}
			if ok {
				exposures = append(exposures, e)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read exposures by host: %w", err)
		}
	}
	return exposures, nil
}

// findExposure returns an object as an exposure, with its project from the cache; ok is false if the object belongs to no
// project.
func findExposure(ctx context.Context, reader client.Reader, object client.Object) (e exposure, ok bool, err error) {
	owner := projectOf(object)
	if owner == nil {
		return exposure{}, false, nil
	}
	p, err := findProject(ctx, reader, client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}, owner.UID)
	if p == nil {
		return exposure{}, false, err
	}
	e, ok = readExposure(object, p)
	return e, ok, nil
}

// findProject reads a project from the cache; nil if it was deleted. It must not be changed.
func findProject(
	ctx context.Context, reader client.Reader, key client.ObjectKey, uid types.UID,
) (*verifyv1.VerificationProject, error) {
	var p verifyv1.VerificationProject
	err := reader.Get(ctx, key, &p, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read project %s: %w", key, err)
	case p.UID != uid:
		return nil, nil
	}
	return &p, nil
}

// readExposure returns an object of a project as an exposure. Anyone who may write Ingresses can name a project as the owner, so
// the object must have the operator's name and label, and only hosts count that the project asks for.
func readExposure(object client.Object, p *verifyv1.VerificationProject) (e exposure, ok bool) {
	owner := projectOf(object)
	if owner == nil || owner.UID != p.UID || p.Namespace != object.GetNamespace() || render.Name(p.Name) != object.GetName() ||
		object.GetLabels()[verifyv1.ProjectLabel] != verifyv1.ProjectLabelValue(p.Name) {
		return exposure{}, false
	}
	hosts, paths := readHosts(object)
	asked := collectHosts(p, true)
	hosts = slices.DeleteFunc(hosts, func(host string) bool { return !slices.Contains(asked, host) })
	if _, service := object.(*corev1.Service); service {
		paths = render.Paths(p)
	}
	return exposure{namespace: p.Namespace, project: p.Name, owner: p.UID, hosts: hosts, paths: paths}, true
}

// readHosts returns the host names that an Ingress, HTTPRoute or Service answers to by its rules and annotations, and its paths.
func readHosts(object client.Object) (hosts, paths []string) {
	hosts, paths = readRules(object)
	return append(hosts, readAnnotations(object.GetAnnotations(), findRuleHost(hosts))...), paths
}

// findRuleHost returns the host in the rules of an Ingress, which has at most one; empty if there is none.
func findRuleHost(hosts []string) string {
	if len(hosts) == 0 {
		return ""
	}
	return hosts[0]
}

// readRules returns the hosts and paths in the rules of an Ingress or HTTPRoute.
func readRules(object client.Object) (names, paths []string) {
	switch o := object.(type) {
	case *networkingv1.Ingress:
		return readIngressRules(o)
	case *unstructured.Unstructured:
		return readRouteRules(o)
	}
	return nil, nil
}

func readIngressRules(ingress *networkingv1.Ingress) (names, paths []string) {
	for _, rule := range ingress.Spec.Rules {
		name := rule.Host
		if name == "" {
			name = render.EveryHost
		}
		names = append(names, name)
		if rule.HTTP == nil {
			continue
		}
		for _, path := range rule.HTTP.Paths {
			paths = append(paths, path.Path)
		}
	}
	return names, paths
}

// readRouteRules returns the hosts and paths of an HTTPRoute. Parts that differ from the operator's form are skipped.
func readRouteRules(route *unstructured.Unstructured) (names, paths []string) {
	names, _, _ = unstructured.NestedStringSlice(route.Object, "spec", "hostnames")
	rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")
	for _, rule := range rules {
		fields, _ := rule.(map[string]any)
		matches, _, _ := unstructured.NestedSlice(fields, "matches")
		for _, match := range matches {
			fields, _ := match.(map[string]any)
			path, _, _ := unstructured.NestedString(fields, "path", "value")
			paths = append(paths, path)
		}
	}
	return names, paths
}

// limitExposures removes the hosts that are not open from what is to be applied. A route without any is removed, because it would
// answer to all hosts of its Gateway.
func limitExposures(wanted *render.Children, p *verifyv1.VerificationProject, open []string) {
	isOpen := func(host string) bool { return slices.Contains(open, host) }
	limitAnnotations(wanted.Service.Annotations, "", isOpen)
	if host := render.IngressHost(p); host != "" {
		limitAnnotations(wanted.Ingress.Annotations, host, isOpen)
		if !isOpen(host) {
			wanted.Ingress = nil
		}
	}
	names := render.RouteHosts(p)
	if wanted.HTTPRoute == nil || len(names) == 0 {
		return
	}
	kept := slices.DeleteFunc(names, func(name string) bool { return !isOpen(name) })
	if len(kept) == 0 {
		wanted.HTTPRoute = nil
		return
	}
	render.SetRouteHosts(wanted.HTTPRoute, kept)
}

// isExposure reports whether a child answers to hosts.
func isExposure(ref apply.Ref) bool {
	return ref.Kind == "Ingress" || ref.Kind == "Service" || ref.Kind == render.HTTPRouteKind.Kind
}

// isExposureRefused reports whether an exposure with open hosts could not be created, and no other one was, which the cache may not
// show yet.
func isExposureRefused(result apply.Result) bool {
	refused := slices.Concat(result.Conflicts, result.Waiting)
	for _, rejection := range result.Rejections {
		refused = append(refused, rejection.Ref)
	}
	return slices.ContainsFunc(refused, isExposure) && !slices.ContainsFunc(result.Applied, isExposure)
}
