package project

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// hostRequest is a project's request for the hosts of its exposure.
type hostRequest struct {
	exposure

	present []string      // hosts of its existing exposures, and those that it was given
	answers bool          // one of its pods answers
	delay   time.Duration // how long new hosts wait, because their holders may be unread
}

// hostDecision is the result for the hosts that a project wants. Those in no list wait until a pod answers.
type hostDecision struct {
	open   []string // its exposures may answer to these
	shared []string // these too, but a project of another namespace has them as well
	denied []string // these are granted to other namespaces
	held   []string // another project has these
	opened bool     // one of the open hosts is new to the project
	// delayed are new hosts that no grant covers, and delay is how long they wait.
	delayed []string
	delay   time.Duration
}

// decideHosts decides on each host by the existing exposures, which only the operator creates. A project that has an exposure for
// a host keeps it, and none gets one before a pod answers, so a project that never served cannot hold a host. An Ingress without
// a host does not exclude projects of other namespaces, because they may have different addresses.
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
		case request.answers && request.delay > 0 && host != render.EveryHost && len(permissions.findHostOwners(host)) == 0:
			d.delayed, d.delay = append(d.delayed, host), request.delay
		case request.answers:
			d.open = append(d.open, host)
			if elsewhere {
				d.shared = append(d.shared, host)
			}
		}
	}
	return d
}

// findRivals reports whether a project of another namespace answers to a host, and whether one of the same namespace, or of one
// that shares the host by grant, answers to it at the same paths.
func findRivals(request *hostRequest, host string, others []exposure, permissions *Permissions) (elsewhere, beside bool) {
	for i := range others {
		other := &others[i]
		own := other.owner == request.owner || other.namespace == request.namespace && other.project == request.project
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

// hosts decides on hosts for one project at a time, so that two never get the same one. It holds what each project was given,
// because the cache may not show the exposure yet, or not any more if it was deleted by mistake.
type hosts struct {
	mu    sync.Mutex
	given map[types.UID]exposure
}

// requestHosts decides on the hosts that a project wants. Exposures are read under the lock, as in turns.
func (h *hosts) requestHosts(
	ctx context.Context, reader client.Reader, routes bool, request *hostRequest, p *Permissions,
) (hostDecision, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	request.present = append(request.present, h.given[request.owner].hosts...)
	var others []exposure
	for _, host := range request.hosts {
		rivals, err := listExposures(ctx, reader, routes, host)
		if err == nil && !slices.Contains(request.present, host) { // a project that has a host keeps it, also if another was given it
			rivals, err = h.addGiven(ctx, reader, host, rivals)
		}
		if err != nil {
			return hostDecision{}, fmt.Errorf("list rivals for host %s: %w", host, err)
		}
		others = append(others, rivals...)
	}
	decision := decideHosts(request, others, p)
	decision.opened = slices.ContainsFunc(decision.open, func(host string) bool { return !slices.Contains(request.present, host) })
	// The project may have been deleted since its reconciliation began; after that nothing else would drop its hosts.
	project, err := findProject(ctx, reader, client.ObjectKey{Namespace: request.namespace, Name: request.project}, request.owner)
	if err != nil {
		return hostDecision{}, fmt.Errorf("check own project: %w", err)
	}
	delete(h.given, request.owner)
	if project != nil && len(decision.open) > 0 {
		if h.given == nil {
			h.given = map[types.UID]exposure{}
		}
		given := request.exposure
		given.hosts = decision.open
		h.given[request.owner] = given
	}
	return decision, nil
}

// addGiven adds the projects that were given a host to those whose exposures answer to it.
func (h *hosts) addGiven(ctx context.Context, reader client.Reader, host string, rivals []exposure) ([]exposure, error) {
	for uid, given := range h.given {
		if !slices.Contains(given.hosts, host) {
			continue
		}
		p, err := findProject(ctx, reader, client.ObjectKey{Namespace: given.namespace, Name: given.project}, uid)
		if err != nil {
			return nil, fmt.Errorf("check holder of host: %w", err)
		}
		// A host that the spec no longer names is free, even if the spec is refused and so nothing is applied.
		if p != nil && slices.Contains(collectHosts(p, true), host) {
			rivals = append(rivals, given)
		}
	}
	return rivals, nil
}

// releaseHosts takes back the hosts of a project that was deleted, or whose exposures could not be created.
func (h *hosts) releaseHosts(project types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.given, project)
}

// unreadDelay is how long after its start the operator gives no new hosts away if it could not read a namespace: a project there may
// have them. If the namespace comes back, the process ends sooner, after ten minutes.
const unreadDelay = 11 * time.Minute

// newHostRequest returns the hosts that a project asks for.
func (c *Controller) newHostRequest(seen *observed) *hostRequest {
	p := seen.project
	r := &hostRequest{
		exposure: exposure{
			namespace: p.Namespace, project: p.Name, owner: p.UID, hosts: collectHosts(p, seen.routes), paths: render.Paths(p),
		},
		answers: isAvailable(seen.children.Deployment()) && !p.Suspended(),
	}
	if len(c.LeftOut) > 0 {
		r.delay = max(0, c.began.Add(unreadDelay).Sub(c.Clock.Now()))
	}
	for _, object := range seen.children.Exposures() {
		if own, ok := readExposure(object, p); ok {
			r.present = append(r.present, own.hosts...)
		}
	}
	return r
}

// explainHosts returns the blocker for a decision on hosts; nil if the project got its hosts, or only waits for its pods.
func explainHosts(d hostDecision) *blocker {
	switch {
	case len(d.denied) > 0:
		return &blocker{stalls, verifyv1.ReasonNotPermitted, fmt.Sprintf("spec.expose: the host name %s is granted to another "+
			"namespace by the cluster's administrator (operator flag %s)", quoteValue(d.denied[0]), hostGrantFlag)}
	case len(d.held) > 0:
		return &blocker{stalls, verifyv1.ReasonHostInUse, fmt.Sprintf("spec.expose: another project already answers to the host name "+
			"%s; use another one, or ask the cluster's administrator to grant it (operator flag %s)", quoteValue(d.held[0]), hostGrantFlag)}
	case len(d.delayed) > 0:
		return &blocker{waits, verifyv1.ReasonProgressing, fmt.Sprintf("spec.expose: the host name %s waits for eleven minutes after the "+
			"operator's start, because a namespace cannot be read whose projects may answer to it; the cluster's administrator can "+
			"grant it (operator flag %s); helm upgrade fails until a missing namespace is created, or taken out of watchNamespaces",
			quoteValue(d.delayed[0]), hostGrantFlag)}
	default:
		return nil
	}
}
