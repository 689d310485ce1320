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

	present []string      // hosts of its existing exposures
	former  []string      // hosts that it was given before
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
		case request.mayBeUnread(host) && len(permissions.findHostOwners(host)) == 0:
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

// mayBeUnread reports whether an unread namespace may have a host that the project could get now.
func (r *hostRequest) mayBeUnread(host string) bool {
	return r.answers && r.delay > 0 && host != render.EveryHost && !slices.Contains(r.former, host)
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

// hosts decides on hosts for one project at a time, so that two never get the same one. It holds the last result of each project,
// because the cache may not show it yet, and an exposure that was deleted by mistake is created again.
type hosts struct {
	mu    sync.Mutex
	given map[types.UID]exposure
	// holders are the projects that were given each host.
	holders map[string]map[types.UID]bool
}

// requestHosts decides on the hosts that a project wants. Exposures are read under the lock, as in turns. Lost are the hosts that
// the project was given before and no longer gets.
func (h *hosts) requestHosts(
	ctx context.Context, reader client.Reader, routes bool, request *hostRequest, p *Permissions,
) (decision hostDecision, lost []string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	former := h.removeGiven(request.owner)
	request.former = former
	var others []exposure
	for _, host := range request.hosts {
		rivals, err := h.listRivals(ctx, reader, routes, host)
		if err != nil {
			return hostDecision{}, former, fmt.Errorf("list rivals for host %s: %w", host, err)
		}
		others = append(others, rivals...)
	}
	decision = decideHosts(request, others, p)
	decision.opened = slices.ContainsFunc(decision.open, func(host string) bool {
		return !slices.Contains(former, host) && !slices.Contains(request.present, host)
	})
	// The project may have been deleted since its reconciliation began; after that nothing else would drop its hosts.
	key := client.ObjectKey{Namespace: request.namespace, Name: request.project}
	project, err := findProject(ctx, reader, key, request.owner)
	lost = subtractHosts(former, decision.open)
	if err != nil {
		return decision, lost, fmt.Errorf("check own project: %w", err)
	}
	if project != nil && len(decision.open) > 0 {
		h.recordGiven(&request.exposure, decision.open)
	}
	return decision, lost, nil
}

// listRivals returns the exposures that answer to a host, and the given ones that the cache does not show yet.
func (h *hosts) listRivals(ctx context.Context, reader client.Reader, routes bool, host string) ([]exposure, error) {
	rivals, err := listExposures(ctx, reader, routes, host)
	if err != nil {
		return nil, fmt.Errorf("list exposures: %w", err)
	}
	for uid := range h.holders[host] {
		given := h.given[uid]
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

// recordGiven records the hosts that a project was given. The caller holds the lock.
func (h *hosts) recordGiven(e *exposure, open []string) {
	if h.given == nil {
		h.given, h.holders = map[types.UID]exposure{}, map[string]map[types.UID]bool{}
	}
	given := *e
	given.hosts = open
	h.given[e.owner] = given
	for _, host := range open {
		if h.holders[host] == nil {
			h.holders[host] = map[types.UID]bool{}
		}
		h.holders[host][e.owner] = true
	}
}

// removeGiven takes back the hosts of a project, and returns them. The caller holds the lock.
func (h *hosts) removeGiven(project types.UID) []string {
	former := h.given[project].hosts
	delete(h.given, project)
	for _, host := range former {
		delete(h.holders[host], project)
		if len(h.holders[host]) == 0 {
			delete(h.holders, host)
		}
	}
	return former
}

// releaseHosts takes back the hosts of a project that was deleted, or whose exposures could not be created, and returns them.
func (h *hosts) releaseHosts(project types.UID) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.removeGiven(project)
}

// subtractHosts returns the hosts of one list that are not in another.
func subtractHosts(hosts, others []string) []string {
	return slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return slices.Contains(others, host) })
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
			"grant it (operator flag %s)", quoteValue(d.delayed[0]), hostGrantFlag)}
	default:
		return nil
	}
}
