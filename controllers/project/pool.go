package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// poolIndex is the index of projects by the pool that they name.
const poolIndex = "phoneproof.dev/pool"

// candidate is a project that names a pool.
type candidate struct {
	// project has its defaults.
	project *verifyv1.VerificationProject
	// action is that of a project with pods of its own, if it were not suspended.
	action action
}

// poolDecision is which projects a pool's pods serve.
type poolDecision struct {
	// members are those, the one whose pod fields count first.
	members []*verifyv1.VerificationProject
	// suspended is set if all members are suspended.
	suspended bool
	// conflicts are why others do not join, or what is wrong with a member, by the name of the project.
	conflicts map[string]string
	// keep is set if no project may decide how the pods are: they stay as they are.
	keep bool
}

// decidePool decides by the projects that name a pool, the oldest first, and those that its pods serve now, which are members already.
// As with pods of its own, a refused spec keeps a project from joining, but does not stop a member. Nor does a suspension end
// a membership, or a member's decision: the pods themselves stop serving the project, and those of the others stay as they are.
func decidePool(pool string, candidates []candidate, served map[string]int32) poolDecision {
	isMember := func(c candidate) bool { return served[c.project.Name] != 0 }
	mayJoin := func(c candidate) bool { return c.action == carryOut && !c.project.Suspended() }
	first := slices.IndexFunc(candidates, func(c candidate) bool { return c.action == carryOut && isMember(c) })
	if first < 0 {
		first = slices.IndexFunc(candidates, mayJoin)
	}
	if first < 0 {
		return poolDecision{keep: keepsPods(candidates, isMember)}
	}
	decider := candidates[first].project
	d := poolDecision{members: []*verifyv1.VerificationProject{decider}, conflicts: map[string]string{}}
	var joining []*verifyv1.VerificationProject
	for i, c := range candidates {
		if i == first || c.action == stop {
			continue
		}
		fits := samePods(decider, c.project)
		if !fits {
			d.conflicts[c.project.Name] = fmt.Sprintf("spec.server and spec.networkPolicy must be those of the project %s in the pool %s; "+
				"make them equal, or use another pool", decider.Name, pool)
		}
		switch {
		case isMember(c):
			d.members = append(d.members, c.project)
		case fits && mayJoin(c):
			joining = append(joining, c.project)
		}
	}
	d.admitJoining(pool, joining)
	d.suspended = !slices.ContainsFunc(d.members, func(p *verifyv1.VerificationProject) bool { return !p.Suspended() })
	return d
}

// admitJoining adds the projects for which the pods have room. There may be more members than that, if the one that decides has lowered the
// memory limit.
func (d *poolDecision) admitJoining(pool string, joining []*verifyv1.VerificationProject) {
	decider := d.members[0]
	most := render.MaxMembers(&decider.Spec.Server)
	if len(d.members) > most {
		d.conflicts[decider.Name] = fmt.Sprintf("spec.server.resources: the memory limit has room for %d projects of the pool %s, which has %d; raise it",
			most, pool, len(d.members))
	}
	for _, p := range joining {
		if len(d.members) < most {
			d.members = append(d.members, p)
			continue
		}
		d.conflicts[p.Name] = fmt.Sprintf("spec.server.pool: the pool %s has %d projects, and its pods have no room for more; "+
			"use another pool, or raise the memory limit of spec.server.resources in all of them (100 projects are the most)", pool, len(d.members))
	}
}

// keepsPods reports whether a pool keeps its pods though no project may decide how they are: members go on with a refused spec, and none
// must be ended.
func keepsPods(candidates []candidate, isMember func(candidate) bool) bool {
	members := slices.DeleteFunc(slices.Clone(candidates), func(c candidate) bool { return !isMember(c) })
	return len(members) > 0 && !slices.ContainsFunc(members, func(c candidate) bool { return c.action == stop })
}

// samePods reports whether two projects of a pool want the same pods.
func samePods(a, b *verifyv1.VerificationProject) bool {
	return equality.Semantic.DeepEqual(a.Spec.Server, b.Spec.Server) && equality.Semantic.DeepEqual(a.Spec.NetworkPolicy, b.Spec.NetworkPolicy)
}

// membership is the result of a pool's reconciliation; nil for a project with pods of its own.
type membership struct {
	// deployment is the pool's as it was before; nil if there was none.
	deployment *appsv1.Deployment
	// ports are those of the members that the Deployment names, and conflicts those of a poolDecision, by the name of the project.
	ports     map[string]int32
	conflicts map[string]string
	// exposed are the ports that the projects' Services led to before.
	exposed map[string]int32
	result  apply.Result
	// rolled is set if the pod template was changed just now, and held if that waits for a turn.
	rolled, held bool
	err          error
}

// deploymentOf returns the pool's Deployment if its pods serve the project, or are about to; nil otherwise. While new pods are started for
// a project that was not available, those that answer may be former ones, which do not serve it.
func (m *membership) deploymentOf(p *verifyv1.VerificationProject) *appsv1.Deployment {
	if m.portOf(p) == 0 || render.MemberPorts(m.deployment)[p.Name] == 0 {
		return nil
	}
	if rolloutOf(m.deployment) == rolledOut || meta.IsStatusConditionTrue(p.Status.Conditions, verifyv1.ConditionAvailable) {
		return m.deployment
	}
	starting := m.deployment.DeepCopy()
	starting.Status.AvailableReplicas = 0
	return starting
}

// portOf returns the port of a project's API in the pods; zero if they do not serve it. While the Deployment cannot be seen, a Service
// leads where it did: there may be pods.
func (m *membership) portOf(p *verifyv1.VerificationProject) int32 {
	switch {
	case m == nil || p.Suspended():
		return 0
	case m.deployment == nil && m.ports[p.Name] == 0:
		return m.exposed[p.Name]
	default:
		return m.ports[p.Name]
	}
}

// conflictOf returns why a project does not join the pool, or could not join again; empty if nothing is in the way.
func (m *membership) conflictOf(p *verifyv1.VerificationProject) string {
	if m == nil {
		return ""
	}
	return m.conflicts[p.Name]
}

// isHeld reports whether the pool waits for a turn to get new pods.
func (m *membership) isHeld() bool { return m != nil && m.held }

// addObstacles adds to a project's result what keeps its pool's children from being applied.
func (m *membership) addObstacles(result apply.Result) apply.Result {
	if m != nil {
		result.Conflicts = append(result.Conflicts, m.result.Conflicts...)
		result.Rejections = append(result.Rejections, m.result.Rejections...)
	}
	return result
}

// addOutcome adds what became of the pool to the outcome of a project.
func (m *membership) addOutcome(done *outcome) {
	if m != nil {
		done.rolled = done.rolled || m.rolled
		done.err = errors.Join(done.err, m.err)
	}
}

// errPoolBusy is returned while another worker reconciles the pool, or its result is not in the cache yet.
var errPoolBusy = errors.New("the pool is being reconciled")

// isPoolBusy reports whether another worker reconciles the project's pool now.
func (c *Controller) isPoolBusy(project *verifyv1.VerificationProject) bool {
	_, busy := c.busyPools.Load(client.ObjectKey{Namespace: project.Namespace, Name: project.Spec.Server.Pool})
	return busy
}

// awaitPool requeues a project whose pool is busy, each of them at another time.
func awaitPool() reconcile.Result { return reconcile.Result{RequeueAfter: wait.Jitter(settling, 9)} }

// reconcilePool brings what the projects of a pool share closer to their specs. One worker at a time does so for each pool, because what
// one assigns depends on what the other one has assigned; others do not wait for it, but get errPoolBusy.
func (c *Controller) reconcilePool(ctx context.Context, namespace, name string) (*membership, error) {
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if _, busy := c.busyPools.LoadOrStore(key, true); busy {
		return nil, errPoolBusy
	}
	defer c.busyPools.Delete(key)
	projects, err := c.listPool(ctx, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("list projects of the pool: %w", err)
	}
	candidates, err := c.observeCandidates(ctx, projects)
	if err != nil {
		return nil, fmt.Errorf("observe projects of the pool: %w", err)
	}
	owner, err := c.poolOwner(ctx, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("list owners of the pool: %w", err)
	}
	children, err := c.applier.Observe(ctx, owner)
	if err != nil {
		return nil, fmt.Errorf("observe children of the pool: %w", err)
	}
	deployment := children.Deployment()
	m := &membership{deployment: deployment, ports: render.MemberPorts(deployment)}
	if m.exposed, err = c.readExposedPorts(ctx, projects); err != nil {
		return nil, fmt.Errorf("read ports of Services: %w", err)
	}
	d := decidePool(name, candidates, m.ports)
	m.conflicts = d.conflicts
	if d.keep {
		return m, nil
	}
	pool := newPool(name, d, deployment, m.exposed)
	c.applyPool(ctx, m, pool, apply.Request{Owner: owner, Observed: children, Wanted: render.PoolChildren(pool, c.Render)})
	if apierrors.IsConflict(m.err) {
		return nil, errPoolBusy // the cache does not know yet what was applied for another project
	}
	return m, nil
}

// readExposedPorts returns the ports that the Services of projects lead to. A project that no pod serves may still have such a Service.
func (c *Controller) readExposedPorts(ctx context.Context, projects []verifyv1.VerificationProject) (map[string]int32, error) {
	ports := map[string]int32{}
	for i := range projects {
		p := &projects[i]
		var service corev1.Service
		err := c.client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: render.Name(p.Name)}, &service, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read Service of project %s: %w", p.Name, err)
		}
		if err == nil && len(service.Spec.Ports) > 0 && metav1.IsControlledBy(&service, p) {
			ports[p.Name] = service.Spec.Ports[0].TargetPort.IntVal
		}
	}
	return ports, nil
}

// newPool returns the pool with the ports of its members, by those in its present Deployment, and those that Services lead to.
func newPool(name string, d poolDecision, present *appsv1.Deployment, exposed map[string]int32) render.Pool {
	var names []string
	for _, p := range d.members {
		names = append(names, p.Name)
	}
	known := maps.Clone(exposed)
	maps.Copy(known, render.MemberPorts(present))
	pool := render.Pool{Name: name, Suspended: d.suspended}
	ports, last := render.AssignPorts(names, known, render.LastPort(present))
	for _, p := range d.members {
		pool.Members = append(pool.Members, render.Member{Project: p, Port: ports[p.Name]})
	}
	pool.LastPort = last
	return pool
}

// applyPool applies what a pool wants. A rollout that none of its projects asked for waits for its turn, as one of a project does.
func (c *Controller) applyPool(ctx context.Context, m *membership, pool render.Pool, request apply.Request) {
	rolls, err := apply.Rolls(request.Observed, request.Wanted)
	if err != nil {
		m.err = fmt.Errorf("compare pod template: %w", err)
		return
	}
	steady := !slices.ContainsFunc(pool.Members, func(m render.Member) bool { return !isSteady(m.Project) })
	asked := !steady || !maps.Equal(pool.Ports(), m.ports)
	if rolls && !asked && !pool.Suspended && !arePodsEdited(m.deployment) {
		first := client.ObjectKeyFromObject(pool.Members[0].Project)
		taken, err := c.turns.takeTurn(ctx, c.client, first, m.deployment, c.MaxUnreadyRollouts, c.Clock.Now())
		if err != nil {
			m.err = fmt.Errorf("take turn: %w", err)
			return
		}
		m.held = !taken
	}
	request.HoldDeployment = m.held
	m.result, m.err = c.applier.Apply(ctx, request)
	if m.err == nil && !m.held && !isDeploymentUnset(m.result) {
		m.ports = pool.Ports()
	}
	m.rolled = rolls && isDeploymentApplied(m.result, m.deployment.Name)
	if rolls && !m.held && !m.rolled {
		c.turns.giveBack(m.deployment.UID)
		c.addQueued(ctx, c.queue)
	}
	if restored := slices.Concat(m.result.Applied, m.result.Deleted); steady && len(restored) > 0 {
		for _, member := range pool.Members {
			c.pace.recordCorrection(member.Project, c.Clock.Now())
		}
		c.Log.Info("children corrected", "pool", pool.Name, "children", restored)
	}
}

// listPool returns the projects that name a pool, with those that are being deleted.
func (c *Controller) listPool(ctx context.Context, namespace, pool string) ([]verifyv1.VerificationProject, error) {
	var list verifyv1.VerificationProjectList
	err := c.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{poolIndex: pool}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list projects by pool: %w", err)
	}
	return list.Items, nil
}

// observeCandidates returns the projects of a pool, the oldest first, without those that are being deleted.
func (c *Controller) observeCandidates(ctx context.Context, projects []verifyv1.VerificationProject) ([]candidate, error) {
	var candidates []candidate
	for i := range projects {
		if !projects[i].DeletionTimestamp.IsZero() {
			continue
		}
		found, err := c.newCandidate(ctx, &projects[i])
		if err != nil {
			return nil, fmt.Errorf("observe project %s: %w", projects[i].Name, err)
		}
		candidates = append(candidates, found)
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(a.project.CreationTimestamp.Compare(b.project.CreationTimestamp.Time), cmp.Compare(a.project.Name, b.project.Name))
	})
	return candidates, nil
}

// newCandidate returns a project of a pool with what is to be done with it.
func (c *Controller) newCandidate(ctx context.Context, project *verifyv1.VerificationProject) (candidate, error) {
	awake := &observed{project: project.DeepCopy()}
	awake.project.Default()
	awake.project.Spec.Suspend = nil
	for _, name := range listAccounts(&awake.project.Spec) {
		a := account{name: name}
		if err := c.claimAccount(ctx, &a, project); err != nil {
			return candidate{}, fmt.Errorf("claim account %s: %w", name, err)
		}
		awake.accounts = append(awake.accounts, a)
	}
	made := candidate{awake.project, decideAction(awake, &c.Permissions).action}
	made.project.Spec.Suspend = project.Spec.Suspend
	return made, nil
}

// poolOwner returns a pool as an owner of children. Any project of the namespace may own them: the last one of the pool may have been
// deleted and another one been created.
func (c *Controller) poolOwner(ctx context.Context, namespace, pool string) (apply.Owner, error) {
	var all verifyv1.VerificationProjectList
	if err := c.client.List(ctx, &all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return apply.Owner{}, fmt.Errorf("list projects of namespace: %w", err)
	}
	projects := map[types.UID]bool{}
	for i := range all.Items {
		projects[all.Items[i].UID] = true
	}
	return apply.OwnerPool(namespace, pool, projects), nil
}

// leavePool takes a project that is being deleted out of its pool.
func (c *Controller) leavePool(ctx context.Context, project *verifyv1.VerificationProject) error {
	if project.Spec.Server.Pool == "" {
		return nil
	}
	m, err := c.reconcilePool(ctx, project.Namespace, project.Spec.Server.Pool)
	if err != nil {
		return fmt.Errorf("leave pool: %w", err)
	}
	if m.err != nil {
		return fmt.Errorf("leave pool: %w", m.err)
	}
	if render.MemberPorts(m.deployment)[project.Name] != 0 && m.ports[project.Name] == 0 { // it no longer uses its accounts
		c.addSharing(ctx, c.queue, project)
	}
	return nil
}

// addMembers adds the other projects of a project's pool: whether they are served, and how their pods are, depends on each other.
func (c *Controller) addMembers(ctx context.Context, queue queue, object client.Object) {
	if project, ok := object.(*verifyv1.VerificationProject); ok && project.Spec.Server.Pool != "" {
		c.addPool(ctx, queue, project.Namespace, project.Spec.Server.Pool)
	}
}

// poolSpacing is the time between two projects of a pool that are requeued by the same event: each reconciles the whole pool.
const poolSpacing = 20 * time.Millisecond

// addPool adds the projects of a pool.
func (c *Controller) addPool(ctx context.Context, queue queue, namespace, pool string) {
	members, err := c.listPool(ctx, namespace, pool)
	if err != nil {
		c.Log.Error(err, "list projects of a pool failed")
		return
	}
	for i := range members {
		queue.AddAfter(requestFor(&members[i]), settling+time.Duration(i)*poolSpacing)
	}
}

// isPoolChanged reports whether an edit of a project may change what becomes of the others of its pool.
func isPoolChanged(before, after client.Object) bool {
	one, ok := before.(*verifyv1.VerificationProject)
	other, ok2 := after.(*verifyv1.VerificationProject)
	return ok && ok2 && (!samePods(one, other) || one.Suspended() != other.Suspended() ||
		one.DeletionTimestamp.IsZero() != other.DeletionTimestamp.IsZero())
}

// indexByPool returns the pool of a project, for the index.
func indexByPool(object client.Object) []string {
	project, ok := object.(*verifyv1.VerificationProject)
	if !ok || project.Spec.Server.Pool == "" {
		return nil
	}
	return []string{project.Spec.Server.Pool}
}
