package main

// loopMutants break what advances requests, who may do so, and by which clock.
//
//nolint:gochecknoglobals // a table
var loopMutants = []Mutant{
	{
		Name: "claim-counts-as-a-read-for-long", Promise: "reliability.md 4: nothing is sent after it was delivered",
		Symbol: "request.ClaimFresh", Old: "= time.Second", New: "= time.Minute",
		Suite: "requests", Test: "TestClaims_are",
	},
	{
		Name: "unrecorded-attempts-forgotten-with-the-term", Promise: "reliability.md 3: repetitions need a fault of the sender",
		Symbol: "server.newTermLoops", Old: "return o.Request.Run(", New: "return request.New(o.Request.Options).Run(",
		Suite: "server", Test: "TestTerm_recordsWhatTheTermBeforeCouldNot",
	},
	{
		Name: "expiry-without-the-epoch", Promise: "design.md 4: due work is claimed with a lease and an epoch",
		Symbol: "request.(*Controller).updateClaimed", Old: "if r.Epoch != epoch {", New: "if r.Epoch < epoch {",
		Suite: "requests", Test: "TestReconcile_expiresNothing",
	},
	{
		Name: "advance-without-the-epoch", Promise: "design.md 4: due work is claimed with a lease and an epoch",
		Symbol: "request.(*Controller).advanceRequest", Old: "item.Claimed && v.Epoch != item.Epoch", New: "false",
		Suite: "requests", Test: "TestReconcile_expiresNothing",
	},
	{
		Name: "sending-without-the-epoch", Promise: "design.md 4: due work is claimed with a lease and an epoch",
		Symbol: "request.(*Controller).readIfDue", Old: "item.Claimed && r.Epoch != item.Epoch", New: "false",
		Suite: "requests", Test: "TestReconcile|TestClaims",
	},
	{
		Name: "attempt-lost-with-the-term", Promise: "reliability.md 3: what was sent is recorded",
		Symbol: "request.(*Controller).recordAttempt",
		Old:    "context.WithTimeout(context.WithoutCancel(ctx), RecordTimeout)",
		New:    "context.WithTimeout(ctx, RecordTimeout)",
		Suite:  "requests", Test: "TestReconcile|TestRun",
	},
	{
		Name: "attempt-lost-with-a-failing-store", Promise: "hazards.md F2: sent again with the same webhook-id, and no more than needed",
		Symbol: "request.(*Controller).deliverEvent", Old: "c.unsaved.put(item.ID, attempt)", New: "",
		Suite: "requests", Test: "TestReconcile_anAttempt",
	},
	{
		Name: "panic-in-a-reconcile-ends-the-process", Promise: "hazards.md A13: a poison affects only itself",
		Symbol: "request.(*Controller).Run", Old: "RecoverPanic: new(true)", New: "RecoverPanic: new(false)",
		Suite: "requests", Test: "TestRun",
	},
	{
		Name: "lease-given-up-before-its-work-ended", Promise: "design.md 2: the work of a term ends before its lease is given up",
		Symbol: "leader.(*term).electionContext", Old: "if t.running == nil {", New: "if true {",
		Suite: "lease", Test: "TestElector",
	},
	{
		Name: "renewal-noted-at-the-end-of-the-write", Promise: "hazards.md F6: fencing by the lease",
		Symbol: "leader.(*watchedLock).recordRenewal", Old: "l.renewed = asked", New: "l.renewed = time.Now()",
		Also:  []Edit{{Symbol: "leader.(*watchedLock).recordRenewal", Old: "asked := time.Now()", New: ""}},
		Suite: "lease", Test: "TestElector",
	},
	{
		Name: "lease-firm-for-its-whole-duration", Promise: "hazards.md F6: fencing by the lease",
		Symbol: "leader.(*Elector).HeldSafely", Old: "c.Times.Duration/2", New: "2*c.Times.Duration",
		Suite: "lease", Test: "TestElector",
	},
	{
		Name: "lease-firm-after-it-was-lost", Promise: "hazards.md F6: fencing by the lease",
		Symbol: "leader.(*watchedLock).clearRenewal", Old: "l.renewed = time.Time{}", New: "",
		Suite: "lease", Test: "TestElector",
	},
	{
		Name: "store-clock-unheeded", Promise: "adr 13: the time is the store's",
		Symbol: "server.(*storeClock).Now", Old: "c.Clock.Now().Add(c.Offset())", New: "c.Clock.Now()",
		Suite: "server", Test: "TestStoreClock",
	},
	{
		Name: "clock-tolerance-ten-times-as-wide", Promise: "adr 13: the time is the store's",
		Symbol: "server.clockTolerance", Old: "= time.Second", New: "= 10 * time.Second",
		Suite: "server", Test: "TestStoreClock",
	},
	{
		Name: "sent-by-what-was-remembered", Promise: "adr 6: a live read before sending",
		Symbol: "request.(*Controller).deliverEvent", Old: "if !v.isFresh(c.Clock.Now()) {", New: "if false {",
		Suite: "requests", Test: "TestReconcile_asksTheStoreAfresh|TestClaims",
	},
	{
		Name: "unsaved-attempt-under-the-old-claim", Promise: "hazards.md F3: never stuck",
		Symbol: "request.(*Controller).saveUnsaved", Old: "if item.Epoch > attempt.Epoch {", New: "if false {",
		Suite: "requests", Test: "TestReconcile_anAttempt",
	},
	{
		Name:    "claim-from-before-the-attempt-was-recorded",
		Promise: "hazards.md F2: sent again with the same webhook-id, and no more than needed",
		Symbol:  "request.(*Controller).saveUnsaved", Old: "c.handed.take(item)", New: "",
		Suite: "requests", Test: "TestReconcile_anAttempt",
	},
	{
		Name: "attempt-forgotten-with-its-claim", Promise: "hazards.md F2: sent again with the same webhook-id, and no more than needed",
		Symbol: "request.(*Controller).recordAttempt",
		Old:    "case errors.Is(err, verification.ErrLeaseLost):",
		New:    "case errors.Is(err, verification.ErrLeaseLost):\n\t\tc.unsaved.drop(id)",
		Suite:  "requests", Test: "TestReconcile_anAttempt",
	},
	{
		Name: "refused-request-tried-for-ever", Promise: "hazards.md A13: a poison affects only itself",
		Symbol: "request.(*Controller).Reconcile",
		Old:    "c.refusals.add(item.ID) >= maxRefusals",
		New:    "c.refusals.add(item.ID) >= 1000*maxRefusals",
		Suite:  "requests", Test: "TestReconcile_leavesAlone",
	},
	{
		Name: "failing-store-skips", Promise: "hazards.md F14: a failing store never skips anything",
		Symbol: "request.(*Controller).Reconcile",
		Old:    "errors.Is(err, verification.ErrContent) && c.refusals.add(item.ID) >= maxRefusals",
		New:    "c.refusals.add(item.ID) >= maxRefusals",
		Suite:  "requests", Test: "TestReconcile_neverSkips",
	},
	{
		Name: "deletion-unpaced", Promise: "design.md 4: churn about 20 changes/s",
		Symbol: "request.(*Controller).deletionDelay", Old: "if wait > 0 {", New: "if wait < 0 {",
		Suite: "requests", Test: "TestReconcile_pacesDeletion",
	},
	{
		Name: "paused-delivery-hurries", Promise: "hazards.md F24: attempts not consumed",
		Symbol: "request.waitFor", Old: "return verification.PausedRecheck", New: "return 0",
		Suite: "requests", Test: "TestReconcile_waitsWhile|TestReconcile_countsOnlyAttempts",
	},
	{
		Name: "busy-receiver-claims-events", Promise: "design.md 6: a slow or dead receiver delays nothing but itself",
		Symbol: "request.(*Controller).claimPolicy", Old: "*events = verification.EventsPaused", New: "",
		Suite: "requests", Test: "TestClaims_leaveEvents",
	},
	{
		Name: "claims-more-than-it-can-begin", Promise: "hazards.md trap 2: what waits in a queue uses up its lease",
		Symbol: "request.(*Controller).claimOnce", Old: "if free < claimBatch/2 {", New: "if free < -claimBatch {",
		Suite: "requests", Test: "TestClaims_claimNothing",
	},
	{
		Name: "redelivery-granted-again", Promise: "design.md 6: the handled value is persisted",
		Symbol: "request.(*RedeliveryController).reconcileOnce", Old: "|| annotation == c.handled", New: "",
		Suite: "requests", Test: "TestRedelivery",
	},
	{
		Name: "redelivery-not-persisted", Promise: "design.md 6: the handled value is persisted",
		Symbol: "request.(*RedeliveryController).reconcileOnce",
		Old:    "if err := c.Observed(ctx, mark); err != nil {",
		New:    "if err := ctx.Err(); err != nil {",
		Suite:  "requests", Test: "TestRedelivery",
	},
	{
		Name: "redelivery-dropped-with-the-store-down", Promise: "design.md 6: redeliver sends a VERIFIED request's event once more",
		Symbol: "request.describeRedelivery",
		Old:    `return false, "", fmt.Errorf("make event due: %w", answer)`,
		New:    `return false, fmt.Sprint(answer), nil`,
		Suite:  "requests", Test: "TestRedelivery|TestDescribeRedelivery",
	},
	{
		Name: "polls-the-token-of-another-bot", Promise: "platforms.md: to fetch updates is to take them from other consumers",
		Symbol: "callback.(*polling).isAllowed",
		Old:    "&& bytes.Equal(p.account.BotToken.Current(), account.BotToken.Current())",
		New:    "&& account != nil && !bytes.Equal(nil, []byte{1, 2})",
		Suite:  "callbacks", Test: "TestPolling",
	},
}

// wiringMutants break how the parts of a server are put together.
//
//nolint:gochecknoglobals // a table
var wiringMutants = []Mutant{
	{
		Name: "front-ends-with-what-is-behind-it", Promise: "design.md 6: a pod that ends answers what it has taken",
		Symbol: "server.RunBehind", Old: "context.WithCancel(context.WithoutCancel(ctx))", New: "context.WithCancel(ctx)",
		Suite: "server", Test: "TestRunBehind",
	},
	{
		Name: "guard-without-the-api-server", Promise: "design.md 6: the API server is refused",
		Symbol: "server.(*WebhookOptions).guardConfig",
		Old:    "config.APIServer, err = findAPIServerAddresses(ctx, apiServerURL)",
		New:    "_, err = findAPIServerAddresses(ctx, apiServerURL)",
		Suite:  "server", Test: "TestGuardConfig|TestRequestLoop",
	},
	{
		Name: "guard-without-own-addresses", Promise: "design.md 6: own pod and host addresses are refused",
		Symbol: "server.(*WebhookOptions).guardConfig",
		Old:    "config.Own, err = findOwnAddresses(); err",
		New:    "_, err = findOwnAddresses(); err",
		Suite:  "server", Test: "TestGuardConfig|TestRequestLoop",
	},
	{
		Name: "guard-without-the-addresses-of-its-interfaces", Promise: "design.md 6: own pod and host addresses are refused",
		Symbol: "server.findOwnAddresses", Old: "own = append(own, prefix.Addr())", New: "_ = prefix",
		Suite: "server", Test: "TestGuardConfig|TestRequestLoop",
	},
	{
		Name: "guard-without-webhook-deny", Promise: "design.md 6: --webhook-deny",
		Symbol: "server.(*WebhookOptions).guardConfig",
		Old:    "config.Allow, config.Deny, err = o.Rules(); err",
		New:    "config.Allow, _, err = o.Rules(); err",
		Suite:  "server", Test: "TestGuardConfig|TestRequestLoop",
	},
	{
		Name: "guard-without-webhook-allow", Promise: "design.md 6: --webhook-allow",
		Symbol: "server.(*WebhookOptions).guardConfig",
		Old:    "config.Allow, config.Deny, err = o.Rules(); err",
		New:    "_, config.Deny, err = o.Rules(); err",
		Suite:  "server", Test: "TestGuardConfig|TestRequestLoop",
	},
	{
		Name: "loop-without-the-guards-addresses", Promise: "design.md 6: own pod, host and API server are refused",
		Symbol: "server.(*server).newRequestLoop",
		Old:    "s.dependencies.NewGuard(addresses)",
		New:    "s.dependencies.NewGuard(webhook.GuardConfig{Allow: addresses.Allow})",
		Suite:  "server", Test: "TestGuardConfig|TestRequestLoop",
	},
	{
		Name: "devs-guard-in-serve", Promise: "design.md 6: loopback is refused always",
		Symbol: "server.Dependencies.withDefaults",
		Old:    "d.NewGuard = webhook.NewGuard",
		New:    "d.NewGuard = webhook.NewDevGuard",
		Suite:  "server", Test: "TestDependencies",
	},
	{
		Name: "sender-without-its-gate", Promise: "hazards.md F6: an old leader sends nothing",
		Symbol: "server.(*server).newRequestLoop",
		Old:    "MaySend: maySend,",
		New:    "MaySend: func() bool { return maySend() || true },",
		Suite:  "server", Test: "TestRequestLoop",
	},
	{
		Name: "loops-on-the-machines-clock", Promise: "adr 13: the time is the store's",
		Symbol: "server.(*server).newRequestLoop",
		Old:    "ClaimLease: s.options.ClaimLease, Clock: s.clock,",
		New:    "ClaimLease: s.options.ClaimLease, Clock: s.dependencies.Clock,",
		Suite:  "server", Test: "TestRequestLoop",
	},
	{
		Name: "sender-on-the-machines-clock", Promise: "adr 13: the time is the store's",
		Symbol: "server.(*server).newRequestLoop",
		Old:    "Registerer: s.registry, Clock: s.clock,",
		New:    "Registerer: s.registry, Clock: s.dependencies.Clock,",
		Suite:  "server", Test: "TestRequestLoop",
	},
	{
		Name: "api-on-the-machines-clock", Promise: "adr 13: the time is the store's",
		Symbol: "server.(*server).newAPI", Old: "Clock: s.clock,", New: "Clock: s.dependencies.Clock,",
		Suite: "server", Test: "TestAPI",
	},
}
