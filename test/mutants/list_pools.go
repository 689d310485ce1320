package main

// poolMutants break what projects of a pool share, and what they must not.
//
//nolint:gochecknoglobals // a table
var poolMutants = []Mutant{
	{
		Name: "port-of-a-project-that-left", Promise: "adr 0032: no pod answers for another project",
		Symbol: "render.AssignPorts", Old: "for last = nextPort(last); taken[last]; {", New: "for last = firstPoolPort; taken[last]; {",
		Suite: "render", Test: "TestAssignPorts",
	},
	{
		Name: "refused-spec-stops-the-pool", Promise: "adr 0032: one project's mistake is its own",
		Symbol: "render.newPoolWorkload", Old: "return !canMount(ref.Name, ref.Key)", New: "return false",
		Suite: "render", Test: "TestPoolChildren_leaveOutWhatCannotBeMounted",
	},
	{
		Name: "joining-changes-running-pods", Promise: "adr 0032: conflicting pod fields stall the later project",
		Symbol: "project.decidePool", Old: "c.action == carryOut && isMember(c)", New: "mayJoin(c)",
		Suite: "projects", Test: "A decision on a pool",
	},
	{
		Name: "suspension-starts-pods-of-others", Promise: "adr 0032: suspending one never scales the others",
		Symbol: "project.decidePool", Old: "c.action == carryOut && isMember(c)", New: "mayJoin(c) && isMember(c)",
		Suite: "projects", Test: "A decision on a pool",
	},
	{
		Name: "pool-written-by-a-stale-view", Promise: "adr 0032: no pod answers for another project",
		Symbol: "apply.(*run).updateChild", Old: "guarded || r.Owner.shared", New: "guarded",
		Suite: "projects", Test: "A pool",
	},
	{
		Name: "service-of-a-suspended-project-leads-to-the-pool", Promise: "adr 0032: suspend ends the API",
		Symbol: "project.(*membership).portOf", Old: "m == nil || p.Suspended()", New: "m == nil",
		Suite: "projects", Test: "A pool",
	},
	{
		Name: "services-by-a-stale-view-of-the-pool", Promise: "adr 0032: members of a pool cost no writes that are in vain",
		Symbol: "project.(*Controller).reconcilePool", Old: "if apierrors.IsConflict(m.err) {", New: "if apierrors.IsGone(m.err) {",
		Suite: "projects", Test: "Many projects cost a Service each",
	},
}
