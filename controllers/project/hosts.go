package project

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/apply"
	"github.com/phoneproof/phoneproof/internal/render"
)

// exposure is what leads from outside to the pods of a project: an Ingress or an HTTPRoute, which have the same name.
type exposure struct {
	namespace, name string
	owner           types.UID
	hosts           []string
	paths           []string
}

// hostRequest is a project that wants to answer to the hosts of its exposure.
type hostRequest struct {
	exposure

	present []string // hosts that its exposures answer to already
	answers bool     // one of its pods answers
}

// hostDecision is what becomes of the hosts that a project wants. Those in no list wait until a pod answers.
type hostDecision struct {
	open   []string // its exposures may answer to these
	shared []string // these too, and a project of another namespace does as well
	denied []string // these are granted to other namespaces
	held   []string // these stay with another project that answers to them
	opened bool     // one of the open hosts is new to the project
}

// decideHosts decides about each host by the exposures that there are, which only the operator makes. Who has an exposure for a host
// keeps it, and nobody gets one before a pod answers: a host cannot be held by a project that never served. An Ingress without a
// host keeps nobody of another namespace from having one: they may lead to different addresses.
func decideHosts(request *hostRequest, others []exposure, permissions *Permissions) hostDecision {
	var d hostDecision
	for _, host := range request.hosts {
		elsewhere, beside := findRivals(request, host, others, permissions)
		switch {
		case !permissions.mayUseHost(request.namespace, host):
			d.denied = append(d.denied, host)
		case slices.Contains(request.present, host):
			d.open = append(d.open, host)
			if elsewhere {
				d.shared = append(d.shared, host)
			}
		case elsewhere && host != render.EveryHost || beside:
			d.held = append(d.held, host)
		case request.answers:
			d.open = append(d.open, host)
			if elsewhere {
				d.shared = append(d.shared, host)
			}
		}
	}
	return d
}

// findRivals reports whether a project of another namespace answers to a host, and whether one of the same namespace, or of one that
// shares the host by grant, answers to it at the same paths.
func findRivals(request *hostRequest, host string, others []exposure, permissions *Permissions) (elsewhere, beside bool) {
	for i := range others {
		other := &others[i]
		own := other.owner == request.owner || other.namespace == request.namespace && other.name == request.name
		if own || !slices.Contains(other.hosts, host) || !permissions.mayUseHost(other.namespace, host) {
			continue
		}
		if other.namespace == request.namespace || permissions.shareHost(other.namespace, request.namespace, host) {
			beside = beside || slices.ContainsFunc(other.paths, func(path string) bool { return slices.Contains(request.paths, path) })
			continue
		}
		elsewhere = true
	}
	return elsewhere, beside
}

// hosts decides about hosts one project at a time, so that two never get the same one. Kept here is what each was given last:
// the cache may not show it yet, and an exposure that was deleted by mistake is made again.
type hosts struct {
	mu    sync.Mutex
	given map[types.UID]exposure
}

// request decides about the hosts that a project wants. Exposures are read under the lock, as in turns.
func (h *hosts) request(
	ctx context.Context, reader client.Reader, routes bool, request *hostRequest, p *Permissions,
) (hostDecision, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	former := h.given[request.owner].hosts
	delete(h.given, request.owner)
	if len(request.hosts) == 0 {
		return hostDecision{}, nil
	}
	projects, err := listProjects(ctx, reader)
	if err != nil {
		return hostDecision{}, err
	}
	// A project may have been deleted since its reconciliation began, after which nothing else would drop what it was given.
	maps.DeleteFunc(h.given, func(uid types.UID, _ exposure) bool { return projects[uid] == nil })
	all, err := listExposures(ctx, reader, routes, projects)
	if err != nil {
		return hostDecision{}, err
	}
	for i := range all {
		if all[i].owner == request.owner {
			request.present = append(request.present, all[i].hosts...)
		}
	}
	decision := decideHosts(request, slices.AppendSeq(all, maps.Values(h.given)), p)
	decision.opened = slices.ContainsFunc(decision.open, func(host string) bool {
		return !slices.Contains(former, host) && !slices.Contains(request.present, host)
	})
	if len(decision.open) > 0 {
		if h.given == nil {
			h.given = map[types.UID]exposure{}
		}
		given := request.exposure
		given.hosts = decision.open
		h.given[request.owner] = given
	}
	return decision, nil
}

// forget takes back what was given to a project: it is gone, or its exposures could not be made.
func (h *hosts) forget(project types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.given, project)
}

// listProjects reads all projects from the cache, by their UID. They must not be changed.
func listProjects(ctx context.Context, reader client.Reader) (map[types.UID]*verifyv1.VerificationProject, error) {
	var list verifyv1.VerificationProjectList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	projects := make(map[types.UID]*verifyv1.VerificationProject, len(list.Items))
	for i := range list.Items {
		projects[list.Items[i].UID] = &list.Items[i]
	}
	return projects, nil
}

// listExposures reads the exposures of all projects from the cache.
func listExposures(
	ctx context.Context, reader client.Reader, routes bool, projects map[types.UID]*verifyv1.VerificationProject,
) ([]exposure, error) {
	var exposures []exposure
	var ingresses networkingv1.IngressList
	if err := reader.List(ctx, &ingresses, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Ingresses: %w", err)
	}
	for i := range ingresses.Items {
		names, paths := ingressRules(&ingresses.Items[i])
		if d, ok := exposureOf(&ingresses.Items[i], names, paths, projects); ok {
			exposures = append(exposures, d)
		}
	}
	if !routes {
		return exposures, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(render.HTTPRouteKind.GroupVersion().WithKind(render.HTTPRouteKind.Kind + "List"))
	if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list HTTPRoutes: %w", err)
	}
	for i := range list.Items {
		names, paths := routeRules(&list.Items[i])
		if d, ok := exposureOf(&list.Items[i], names, paths, projects); ok {
			exposures = append(exposures, d)
		}
	}
	return exposures, nil
}

// exposureOf returns the exposure that an object is; ok is false for an object that is no project's. Anyone who may write Ingresses can
// name a project as the owner, so the object must have the name and label that the operator gives, and only hosts count that
// the project asks for.
func exposureOf(
	object client.Object, names, paths []string, projects map[types.UID]*verifyv1.VerificationProject,
) (d exposure, ok bool) {
	owner := projectOf(object)
	if owner == nil {
		return exposure{}, false
	}
	p := projects[owner.UID]
	if p == nil || p.Namespace != object.GetNamespace() || render.Name(p.Name) != object.GetName() ||
		object.GetLabels()[verifyv1.ProjectLabel] != verifyv1.ProjectLabelValue(p.Name) {
		return exposure{}, false
	}
	wanted := append(render.RouteHosts(p), render.IngressHost(p))
	names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(wanted, name) })
	return exposure{namespace: p.Namespace, name: object.GetName(), owner: p.UID, hosts: names, paths: paths}, true
}

// exposedHosts returns the host names that an Ingress or HTTPRoute answers to.
func exposedHosts(object client.Object) []string {
	var names []string
	switch o := object.(type) {
	case *networkingv1.Ingress:
		names, _ = ingressRules(o)
	case *unstructured.Unstructured:
		names, _ = routeRules(o)
	}
	return names
}

func ingressRules(ingress *networkingv1.Ingress) (names, paths []string) {
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

// routeRules reads what an HTTPRoute answers to. What is not in the form that the operator gave it is skipped.
func routeRules(route *unstructured.Unstructured) (names, paths []string) {
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

// requestOf returns what a project asks of the hosts.
func requestOf(seen *observed) *hostRequest {
	p := seen.project
	r := &hostRequest{
		exposure: exposure{namespace: p.Namespace, name: render.Name(p.Name), owner: p.UID, paths: render.Paths(p)},
		answers:  available(seen.children.Deployment()) && !p.Suspended(),
	}
	if host := render.IngressHost(p); host != "" {
		r.hosts = append(r.hosts, host)
	}
	if seen.routes {
		r.hosts = append(r.hosts, render.RouteHosts(p)...)
	}
	slices.Sort(r.hosts)
	r.hosts = slices.Compact(r.hosts)
	return r
}

// limitExposures takes the hosts that are not open from what is to be applied. A route that keeps none goes: without any it would
// answer to all of its Gateway's.
func limitExposures(wanted *render.Children, p *verifyv1.VerificationProject, open []string) {
	if host := render.IngressHost(p); host != "" && !slices.Contains(open, host) {
		wanted.Ingress = nil
	}
	names := render.RouteHosts(p)
	if wanted.HTTPRoute == nil || len(names) == 0 {
		return
	}
	kept := slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(open, name) })
	if len(kept) == 0 {
		wanted.HTTPRoute = nil
		return
	}
	render.SetRouteHosts(wanted.HTTPRoute, kept)
}

// refusedExposure reports whether an exposure that was given could not be made.
func refusedExposure(result apply.Result) bool {
	isExposure := func(ref apply.Ref) bool { return ref.Kind == "Ingress" || ref.Kind == render.HTTPRouteKind.Kind }
	return slices.ContainsFunc(slices.Concat(result.Conflicts, result.Waiting), isExposure) ||
		slices.ContainsFunc(result.Rejections, func(r apply.Rejection) bool { return isExposure(r.Ref) })
}

// hostBlocker returns what a decision about hosts means for the project; nil if it got what it wants, or only waits for its pods.
func hostBlocker(d hostDecision) *blocker {
	switch {
	case len(d.denied) > 0:
		return &blocker{stalls, verifyv1.ReasonNotPermitted, fmt.Sprintf("spec.expose: the host name %s is granted to another "+
			"namespace by the cluster's administrator (operator flag %s)", quoted(d.denied[0]), hostGrantFlag)}
	case len(d.held) > 0:
		return &blocker{stalls, verifyv1.ReasonHostInUse, fmt.Sprintf("spec.expose: another project already answers to the host name "+
			"%s; use another one, or ask the cluster's administrator to grant it (operator flag %s)", quoted(d.held[0]), hostGrantFlag)}
	default:
		return nil
	}
}
