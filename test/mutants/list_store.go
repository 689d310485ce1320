package main

// stepped focuses the conformance suite with a clock that is stepped, which takes the least time.
const stepped = "by a clock that is stepped "

// memoryMutants break the contract of stores, in the store that shows soonest whether the conformance suite notices.
var memoryMutants = []Mutant{
	{
		Name:    "memory-forms-of-a-number-count-apart",
		Promise: "docs/security.md#threats-and-what-stands-against-them: a limit counts a number, however it is written",
		Symbol:  "verification.(*Admissions).Add", Old: "phone.Canonical(c.Phone)", New: "c.Phone",
		Suite: "memory", Test: "rates",
	},
	{
		Name: "memory-open-event-evicted", Promise: "docs/operations.md#limits-that-fit-each-other: a full store drops no event that is due",
		Symbol: "memory.(*room).placeRecord", Old: "case at.IsZero():", New: "case false:",
		Suite: "memory", Test: "storage cap",
	},
	{
		Name: "memory-lease-survives-a-write", Promise: "docs/architecture.md#the-loops: what is claimed is free again when it was written",
		Symbol: "memory.(*project).writeState", Old: "rec.leasedUntil = time.Time{}", New: "",
		Suite: "memory", Test: "leases",
	},
	{
		Name: "memory-claim-without-an-epoch", Promise: "docs/faults.md: what an older claim began is not recorded",
		Symbol: "memory.(*project).claimDue", Old: "rec.request.Epoch++", New: "",
		Suite: "memory", Test: "leases",
	},
	{
		Name:    "memory-deletes-what-changed",
		Promise: "docs/architecture.md#the-domain-and-its-adapters: a step is taken on the present state alone",
		Symbol:  "memory.(*Store).Delete", Old: "case rec.request.Version != version:", New: "case false:",
		Suite: "memory", Test: "deletion|races",
	},
	{
		Name: "memory-forms-of-a-declined-number-apart", Promise: "docs/adr/0029-session-proof.md: the cool-down is by canonical number",
		Symbol: "verification.(*Admissions).AddState", Old: "phone.Canonical(r.Phone)", New: "r.Phone",
		Suite: "memory", Test: "declines",
	},
	{
		Name: "memory-decline-evicted", Promise: "docs/errors.md#not-me: a full store ends no cool-down",
		Symbol: "verification.(*Request).EvictableAt", Old: "&& cooled.After(at)", New: "&& cooled.IsZero()",
		Suite: "memory", Test: "declines keep their request",
	},
}

// postgresMutants break what only a database can break.
var postgresMutants = []Mutant{
	{
		Name:    "postgres-commit-error-of-creation-swallowed",
		Promise: "docs/reliability.md#what-holds: a 200 of init means that the request is stored",
		Symbol:  "postgres.(*creationBatch).writeAdmitted",
		Old:     "batch.Queue(sqlCommit) return wrapStep(\"write requests\", c.SendBatch(ctx, batch).Close())",
		New:     "batch.Queue(sqlCommit)\n\t_ = c.SendBatch(ctx, batch).Close()\n\treturn nil",
		Suite:   "postgres", Test: "acknowledges nothing whose commit fails",
	},
	{
		Name: "postgres-acknowledged-before-the-commit", Promise: "docs/reliability.md#what-holds: nothing is acknowledged before its commit",
		Symbol: "postgres.(*creationBatch).writeAdmitted",
		Old:    "batch.Queue(sqlCommit) return wrapStep(\"write requests\", c.SendBatch(ctx, batch).Close())",
		New: "if err := c.SendBatch(ctx, batch).Close(); err != nil {\n\t\treturn err\n\t}\n" +
			"\tgo func() { _, _ = c.Exec(context.WithoutCancel(ctx), sqlCommit) }()\n\treturn nil",
		Suite: "postgres", Test: "acknowledges nothing whose commit fails",
	},
	{
		Name: "postgres-stale-decision-written", Promise: "docs/faults.md: who stood still writes nothing stale",
		Symbol: "postgres.sqlUpdate",
		Old:    "AND clock_timestamp() < $5::timestamptz",
		New:    "AND $5::timestamptz IS NOT NULL",
		Suite:  "postgres", Test: "decides anew after the sleep",
	},
	{
		Name:    "postgres-declined-by-a-leased-state",
		Promise: "docs/adr/0006-live-read-before-sending.md: a claim counts as a read for a moment alone",
		Symbol:  "postgres.(*Store).decideUpdate", Old: "if err != nil && leased {", New: "if false {",
		Suite: "postgres", Test: "A change after a claim",
	},
	{
		Name: "postgres-lost-race-written", Promise: "docs/adr/0004-store-updates-by-closure.md: each write is a compare-and-set",
		Symbol: "postgres.sqlUpdate", Old: "AND version = $3 AND", New: "AND $3::bigint IS NOT NULL AND",
		Suite: "postgres", Test: stepped + "(races|update)",
	},
	{
		Name: "postgres-binding-of-a-lost-race", Promise: "docs/adr/0004-store-updates-by-closure.md: each write is a compare-and-set",
		Symbol: "postgres.sqlBind",
		Old:    "AND id = $2 AND version = $3",
		New:    "AND id = $2 AND $3::bigint IS NOT NULL",
		Suite:  "postgres", Test: "leaves the sender's earlier binding",
	},
	{
		Name: "postgres-keys-not-locked", Promise: "docs/adr/0010-postgresql-group-commit-and-rates.md: rates are exact among replicas",
		Symbol: "postgres.sqlLockKeys", Old: "ORDER BY name FOR UPDATE", New: "ORDER BY name",
		Suite: "postgres", Test: stepped + "rates",
	},
	{
		Name:    "postgres-key-window-one-microsecond-short",
		Promise: "docs/adr/0010-postgresql-group-commit-and-rates.md: a window is exact to the microsecond",
		Symbol:  "postgres.sqlKeyWindows",
		Old:     "AND at > statement_timestamp() - $3::interval",
		New:     "AND at > statement_timestamp() - $3::interval + interval '1 microsecond'",
		Suite:   "postgres", Test: stepped + "windows",
	},
	{
		Name: "postgres-claimed-twice", Promise: "docs/architecture.md#the-loops: a claim keeps others away for a while",
		Symbol: "postgres.sqlLease",
		Old:    "leased_until = statement_timestamp() + $3::interval",
		New:    "leased_until = statement_timestamp() + 0 * $3::interval",
		Suite:  "postgres", Test: stepped + "(queue|leases)",
	},
	{
		Name: "postgres-synchronous-commit-off", Promise: "docs/postgresql.md#the-uri: what a crash would lose is refused",
		Symbol: "postgres.(*Store).checkServer", Old: `commit == "off"`, New: `commit == "never"`,
		Suite: "postgres", Test: "is rejected if it acknowledges commits that it may lose",
	},
	{
		Name: "postgres-commit-cancelled", Promise: "docs/postgresql.md#the-uri: nothing that a synchronous standby lacks is acknowledged",
		Symbol: "postgres.refuseCancels", Old: "c != nil {", New: "c != nil && false {",
		Suite: "postgres", Test: "is shown to have nothing that the standby lacks",
	},
	{
		Name: "postgres-password-in-the-clear", Promise: "docs/postgresql.md#the-uri: no unverified server gets the password",
		Symbol: "postgres.Address.parse", Old: `if uri.requireAuth == "" {`, New: `if uri.requireAuth == "never" {`,
		Suite: "postgres", Test: "An impostor in the place of the database",
	},
	{
		Name: "postgres-certificate-unchecked", Promise: "docs/postgresql.md#a-private-authority: only that authority vouches for the server",
		Symbol: "postgres.setRootCAs",
		Old:    "c.TLSConfig.RootCAs = roots",
		New:    "c.TLSConfig.RootCAs, c.TLSConfig.InsecureSkipVerify, c.TLSConfig.VerifyPeerCertificate = roots, true, nil",
		Suite:  "postgres", Test: "A database with a certificate of a private authority",
	},
	{
		Name: "postgres-no-repetition", Promise: "docs/faults.md: serialization failures are repeated, and no client sees them",
		Symbol: "postgres.isRetryable",
		Old:    "case stateSerialization, stateDeadlock, stateUniqueViolation, stateReadOnly:",
		New:    "case stateUniqueViolation, stateReadOnly:",
		Suite:  "postgres", Test: "every fifth transaction",
	},
	{
		Name: "postgres-other-projects-read", Promise: "docs/security.md#what-tenants-share: a project reads its own rows alone",
		Symbol: "postgres.sqlRead",
		Old:    "WHERE project = $1 AND id = u.id LIMIT 1",
		New:    "WHERE $1::text IS NOT NULL AND id = u.id LIMIT 1",
		Suite:  "postgres", Test: stepped + "creation keeps projects",
	},
	{
		Name: "postgres-one-bad-row-fails-all", Promise: "docs/adr/0010-postgresql-group-commit-and-rates.md: a refused row fails alone",
		Symbol: "postgres.runOrSplit",
		Old:    "case isContentError(err) && len(calls) > 1:",
		New:    "case false && len(calls) > 1:",
		Suite:  "postgres", Test: "one bad row fails alone",
	},
	{
		Name:    "postgres-lost-answer-is-a-second-creation",
		Promise: "docs/adr/0010-postgresql-group-commit-and-rates.md: a transaction whose answer was lost finds what it wrote",
		Symbol:  "postgres.(*creationBatch).run",
		Old:     "call.out.Request, call.out.Existing, call.err = known.Request, !ours, nil",
		New:     "call.out.Request, call.out.Existing, call.err = known.Request, !ours || true, nil",
		Suite:   "postgres", Test: "recognises a creation whose answer was lost",
	},
}

// objectsMutants break what only objects of an API server can break.
var objectsMutants = []Mutant{
	{
		Name: "objects-lost-write-taken-for-done", Promise: "docs/faults.md: no write is taken for done that is not",
		Symbol: "kubernetes.(*Store).updateObject",
		Old:    "sent = append(sent, unconfirmedWrite{origin: current, intended: intended})",
		New:    "_, after = intended, current\n\t\t\treturn current, after, nil",
		Suite:  "objects", Test: "Faults (never takes|finds out)",
	},
	{
		Name: "objects-write-of-another-taken-for-own", Promise: "docs/faults.md: every caller gets the result of its own write",
		Symbol: "kubernetes.originOf",
		Old:    "a.ledTo(current)",
		New:    "a.origin != nil",
		Suite:  "objects", Test: "Faults never takes another's write for its own",
	},
	{
		Name: "objects-creation-before-taken-for-own", Promise: "docs/faults.md: every caller gets the result of its own write",
		Symbol: "kubernetes.(*entry).isCreationOf", Old: "e.request.CreatedAt.Equal(now) &&", New: "",
		Suite: "objects", Test: "Faults tells a creation",
	},
	{
		Name: "objects-lost-answer-taken-for-certain", Promise: "docs/faults.md: a write whose answer is lost is looked for",
		Symbol: "kubernetes.classifyError",
		Old:    "return unknownOutcomeError{unavailableError(doing, err)}",
		New:    "return unavailableError(doing, err)",
		Suite:  "objects", Test: "finds out what became of writes whose answer is lost",
	},
	{
		Name:    "objects-unknown-creation-not-counted",
		Promise: "docs/adr/0022-keys-share-the-store.md: a creation counts until it is known to have failed",
		Symbol:  "kubernetes.(*Store).createObject", Old: "s.limits.endReservation(n.ID)", New: "s.limits.undoAdmission(a, now)",
		Suite: "objects", Test: "Faults counts a creation whose outcome is unknown",
	},
	{
		Name: "objects-creation-before-the-informer-synced", Promise: "docs/adr/0022-keys-share-the-store.md: limits count what is stored",
		Symbol: "kubernetes.(*Store).Create", Old: "if !s.HasSynced() {", New: "if false {",
		Suite: "objects unit", Test: "TestStore_startsNothing",
	},
	{
		Name:    "objects-deleted-requests-do-not-count",
		Promise: "docs/adr/0022-keys-share-the-store.md: a deleted request counts until its period is over",
		Symbol:  "kubernetes.(*creationLimits).removeStored",
		Old:     "delete(l.stored, name)",
		New: "if e := l.stored[name]; e != nil && e.object != nil {\n\t\tl.admitted.Remove(e.countedCreation(), e.request.CreatedAt)\n\t}\n\t" +
			"delete(l.stored, name)",
		Suite: "objects", Test: "The store contract rates count deleted",
	},
	{
		Name:    "objects-panic-in-the-handler",
		Promise: "docs/security.md#threats-and-what-stands-against-them: content that passes the bounds affects itself alone",
		Symbol:  "kubernetes.recoverHandler",
		Old:     "if failure := recover(); failure != nil {",
		New:     "if failure := any(nil); failure != nil {",
		Suite:   "objects unit", Test: "TestObserved",
	},
	{
		Name: "objects-peek-answers-what-may-be-behind", Promise: "docs/adr/0033-pending-status-read-live.md: a pending status is read live",
		Symbol: "kubernetes.(*Store).ReadFinal",
		Old:    "case known.isFinal() && !known.request.IsCodeOpen():", New: "case known.kind == KindRequest:",
		Suite: "objects", Test: "answers nothing stale while its watch is held back",
	},
	{
		Name: "objects-status-written-over-another", Promise: "docs/adr/0004-store-updates-by-closure.md: each write is a compare-and-set",
		Symbol: "kubernetes.(*api).putStatus",
		Old:    "Param(\"fieldManager\", fieldManager).Body(encodeJSON(o)))",
		New:    "Param(\"fieldManager\", fieldManager).Body(encodeJSON(func() any { o = o.DeepCopy(); o.ResourceVersion = \"\"; return o }())))",
		Suite:  "objects", Test: "The store contract races",
	},
	{
		Name:    "objects-deleted-without-preconditions",
		Promise: "docs/architecture.md#the-domain-and-its-adapters: a step is taken on the present state alone",
		Symbol:  "kubernetes.(*api).deleteObject",
		Old:     "Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},",
		New:     "Preconditions: &metav1.Preconditions{UID: &uid},",
		Suite:   "objects", Test: "The store contract (races|deletion)",
	},
	{
		Name:    "objects-earlier-binding-stays-after-a-failure",
		Promise: "docs/security.md#what-holds-at-both-levels: a second link voids the first request for a contact",
		Symbol:  "kubernetes.(*Store).Update",
		Old:     "err = s.endEarlierBindings(ctx, before, sharingContacts(before))",
		New:     "err = nil",
		Suite:   "objects", Test: "ends an earlier binding when the message",
	},
	{
		Name:    "objects-final-binding-of-others-unseen",
		Promise: "docs/adr/0023-open-requests-are-read-first.md: a sender whom the open requests do not have is looked for among all",
		Symbol:  "kubernetes.(*Store).findAwaiting", Old: "{openPhases, allPhases}", New: "{openPhases}",
		Suite: "objects", Test: "Faults reads the open requests",
	},
	{
		Name: "objects-answer-shares-memory", Promise: "docs/architecture.md#the-domain-and-its-adapters: what a store answers is a copy",
		Symbol: "kubernetes.(*entry).toRequest", Old: "return e.request.Clone(), nil", New: "return e.request, nil",
		Suite: "objects", Test: "The store contract state",
	},
	{
		Name: "objects-text-kept-after-the-end", Promise: "docs/security.md#what-is-stored: no code is kept",
		Symbol: "kubernetes.toObject", Old: `s.ExpectedText, s.Link = "", "" // they hold the code`, New: "",
		Suite: "objects", Test: "A request made with kubectl",
	},
	{
		Name: "objects-number-in-errors", Promise: "docs/reliability.md#what-holds: no error holds a whole number",
		Symbol: "kubernetes.refusalOf",
		Old:    "r := refusal{code: int(status.Code), reason: status.Reason}",
		New:    "r := refusal{code: int(status.Code), reason: metav1.StatusReason(status.Message)}",
		Suite:  "objects", Test: "tells content that the API server refuses",
	},
	{
		Name: "objects-wrong-code-counted-for-two", Promise: "docs/adr/0029-session-proof.md: wrong codes are counted once each",
		Symbol: "kubernetes.originOf", Old: "a.intended.WrongCodes == a.origin.request.WrongCodes", New: "true",
		Suite: "objects", Test: "Faults counts no wrong code too few",
	},
	{
		Name:    "objects-code-checked-by-a-cached-state",
		Promise: "docs/adr/0029-session-proof.md: a code is checked against the present state",
		Symbol:  "kubernetes.(*Store).updateObject", Old: "case errors.As(err, &no) && fresh:", New: "case errors.As(err, &no):",
		Suite: "objects", Test: "Faults checks a session code",
	},
}
