package main

// steppedPostgres focuses the conformance suite with a clock that is stepped, which takes the least time.
const steppedPostgres = "by a clock that is stepped "

// memoryMutants break the rules of the store contract, in the store that shows soonest whether the conformance suite notices.
//
//nolint:gochecknoglobals // a table
var memoryMutants = []Mutant{
	{
		Name: "memory-rate-one-too-many", Promise: "design.md 4: exact in SQL and memory",
		Symbol: "verification.Rate.BlockingPlace", Old: "last + 1 - int64(r.Requests)", New: "last - int64(r.Requests)",
		Suite: "memory", Test: "rates",
	},
	{
		Name: "memory-forms-of-a-number-count-apart", Promise: "design.md 4: per canonical phone number",
		Symbol: "verification.(*Admissions).Add", Old: "phone.Canonical(c.Phone)", New: "c.Phone",
		Suite: "memory", Test: "rates",
	},
	{
		Name: "memory-window-one-microsecond-short", Promise: "design.md 4: sliding count of requests created in (now - period, now]",
		Symbol: "verification.(*window).firstAfter", Old: "t.UnixMicro()+1", New: "t.UnixMicro()+2",
		Suite: "memory", Test: "windows",
	},
	{
		Name: "memory-creation-overwritten", Promise: "design.md 3: what Create decided never changes",
		Symbol: "verification.(*Request).sameCreation", Old: "r.ExpiresAt.Equal(other.ExpiresAt)", New: "true",
		Suite: "memory", Test: "refuses a mutation of what Create decided",
	},
	{
		Name: "memory-open-event-evicted", Promise: "design.md 4: an undelivered event is never dropped",
		Symbol: "memory.(*room).placeRecord", Old: "case at.IsZero():", New: "case false:",
		Suite: "memory", Test: "storage cap",
	},
	{
		Name: "memory-lease-survives-a-write", Promise: "design.md 4: a lease and an epoch",
		Symbol: "memory.(*project).writeState", Old: "rec.leasedUntil = time.Time{}", New: "",
		Suite: "memory", Test: "leases",
	},
	{
		Name: "memory-claim-without-an-epoch", Promise: "design.md 4: a lease and an epoch",
		Symbol: "memory.(*project).claimDue", Old: "rec.request.Epoch++", New: "",
		Suite: "memory", Test: "leases",
	},
	{
		Name: "memory-older-binding-comes-back", Promise: "design.md 3: one live binding per (account, sender), the latest wins",
		Symbol: "memory.(*project).updateBindings",
		Old:    "c.Kind == verification.ContactShare && !slices.Contains(before, c)",
		New:    "slices.Contains(after, c)",
		Suite:  "memory", Test: "contacts",
	},
	{
		Name: "memory-deletes-what-changed", Promise: "hazards.md F18: no step is taken on a state that is gone",
		Symbol: "memory.(*Store).Delete", Old: "case rec.request.Version != version:", New: "case false:",
		Suite: "memory", Test: "deletion|races",
	},
}

// sessionMutants break what stores do for session proof, each in the store that shows it soonest.
//
//nolint:gochecknoglobals // a table
var sessionMutants = []Mutant{
	{
		Name: "memory-forms-of-a-declined-number-apart", Promise: "proof.md 13: Not me cools the number down",
		Symbol: "verification.(*Admissions).AddState", Old: "phone.Canonical(r.Phone)", New: "r.Phone",
		Suite: "memory", Test: "declines",
	},
	{
		Name: "memory-cooldown-one-microsecond-short", Promise: "proof.md 13: Not me cools the number down",
		Symbol: "verification.UntilCooledDown", Old: "declined.Add(cooldown).Sub(now)", New: "declined.Add(cooldown).Sub(now)-time.Microsecond",
		Suite: "memory", Test: "declines end to the instant",
	},
	{
		Name: "memory-decline-evicted", Promise: "proof.md 13: Not me cools the number down",
		Symbol: "verification.(*Request).EvictableAt", Old: "&& cooled.After(at)", New: "&& cooled.IsZero()",
		Suite: "memory", Test: "declines keep their request",
	},
	{
		Name: "memory-decline-outlives-its-request", Promise: "proof.md 13: Not me cools the number down",
		Symbol: "memory.(*project).removeRecord", Old: "p.admitted.RemoveState(rec.request.ID)", New: "",
		Suite: "memory", Test: "declines end with",
	},
	{
		Name: "postgres-late-proof-ends-early", Promise: "proof.md 13: what was proven in the last two minutes is confirmed for two more",
		Symbol: "postgres.sqlDue", Old: "THEN $8::interval ELSE", New: "THEN '0' ELSE",
		Suite: "postgres", Test: steppedPostgres + "session hands out the end",
	},
	{
		Name: "postgres-decline-of-a-lost-race", Promise: "proof.md 13: Not me by the proven sender cools the number down",
		Symbol: "postgres.sqlInsertDecline", Old: "AND id = $2 AND version = $3", New: "AND id = $2 AND $3::bigint IS NOT NULL",
		Suite: "postgres", Test: "Declines are stored",
	},
	{
		Name: "objects-wrong-code-counted-for-two", Promise: "proof.md 17: five tries in all",
		Symbol: "kubernetes.originOf", Old: "a.intended.WrongCodes == a.origin.request.WrongCodes", New: "true",
		Suite: "objects", Test: "Faults counts no wrong code too few",
	},
	{
		Name: "objects-code-checked-by-a-cached-state", Promise: "proof.md 13: Not me ends the request",
		Symbol: "kubernetes.(*Store).updateObject", Old: "case errors.As(err, &no) && fresh:", New: "case errors.As(err, &no):",
		Suite: "objects", Test: "Faults checks a session code",
	},
	{
		Name: "objects-own-decline-counts-late", Promise: "proof.md 13: Not me cools the number down",
		Symbol: "kubernetes.(*creationLimits).addWritten", Old: "l.addState(e)", New: "",
		Suite: "objects unit", Test: "TestLedger_coolsDown",
	},
}

// postgresMutants break what only a database can break.
//
//nolint:gochecknoglobals // a table
var postgresMutants = []Mutant{
	{
		Name: "postgres-window-one-microsecond-short", Promise: "design.md 4: sliding count of requests created in (now - period, now]",
		Symbol: "postgres.(*placeWindow).retryAfter", Old: "rate.UntilLeft(leaves, now)", New: "rate.UntilLeft(leaves, now)-time.Microsecond",
		Suite: "postgres", Test: steppedPostgres + "windows",
	},
	{
		Name: "postgres-key-admission-swept-too-early", Promise: "design.md 4: sliding count of requests created in (now - period, now]",
		Symbol: "postgres.sqlCountKeys", Old: "u.at + $6::interval", New: "u.at + $6::interval - interval '1 microsecond'",
		Suite: "postgres", Test: steppedPostgres + "windows",
	},
	{
		Name: "postgres-group-admission-swept-too-early", Promise: "design.md 4: sliding count of requests created in (now - period, now]",
		Symbol: "postgres.placeDemand.queueWrite", Old: "Add(d.rates[i].Period)", New: "Add(d.rates[i].Period-time.Microsecond)",
		Suite: "postgres", Test: steppedPostgres + "windows",
	},
	{
		Name: "postgres-commit-error-of-creation-swallowed", Promise: "reliability.md 1: a 200 of init means that the request is stored",
		Symbol: "postgres.(*creationBatch).writeAdmitted",
		Old:    "batch.Queue(sqlCommit) return wrapStep(\"write requests\", c.SendBatch(ctx, batch).Close())",
		New:    "batch.Queue(sqlCommit)\n\t_ = c.SendBatch(ctx, batch).Close()\n\treturn nil",
		Suite:  "postgres", Test: "acknowledges nothing whose commit fails",
	},
	{
		Name:    "postgres-commit-error-of-update-swallowed",
		Promise: "reliability.md 1: a 200 to a messenger means that what its messages prove is stored",
		Symbol:  "postgres.(*Store).updateAll",
		Old:     "return wrapStep(\"write changes\", c.SendBatch(ctx, batch).Close())",
		New:     "_ = c.SendBatch(ctx, batch).Close()\n\t\treturn nil",
		Suite:   "postgres", Test: "acknowledges nothing whose commit fails",
	},
	{
		Name: "postgres-acknowledged-before-the-commit", Promise: "design.md 4: each acknowledged only after commit",
		Symbol: "postgres.(*creationBatch).writeAdmitted",
		Old:    "batch.Queue(sqlCommit) return wrapStep(\"write requests\", c.SendBatch(ctx, batch).Close())",
		New: "if err := c.SendBatch(ctx, batch).Close(); err != nil {\n\t\treturn err\n\t}\n" +
			"\tgo func() { _, _ = c.Exec(context.WithoutCancel(ctx), sqlCommit) }()\n\treturn nil",
		Suite: "postgres", Test: "acknowledges nothing whose commit fails",
	},
	{
		Name: "postgres-stale-decision-written", Promise: "hazards.md F6: an old leader writes nothing stale",
		Symbol: "postgres.sqlUpdate",
		Old:    "AND clock_timestamp() < $5::timestamptz",
		New:    "AND $5::timestamptz IS NOT NULL",
		Suite:  "postgres", Test: "decides anew after the sleep",
	},
	{
		Name: "postgres-declined-by-a-leased-state", Promise: "hazards.md F18: no answer comes from a state that is gone",
		Symbol: "postgres.(*Store).Update", Old: "if err != nil && leased {", New: "if false {",
		Suite: "postgres", Test: "A change after a claim",
	},
	{
		Name: "postgres-lost-race-written", Promise: "design.md 3: one compare-and-set",
		Symbol: "postgres.sqlUpdate", Old: "AND version = $3 AND", New: "AND $3::bigint IS NOT NULL AND",
		Suite: "postgres", Test: steppedPostgres + "(races|update)",
	},
	{
		Name: "postgres-binding-of-a-lost-race", Promise: "design.md 3: a shared contact completes that binding only",
		Symbol: "postgres.sqlBind",
		Old:    "AND id = $2 AND version = $3",
		New:    "AND id = $2 AND $3::bigint IS NOT NULL",
		Suite:  "postgres", Test: "leaves the sender's earlier binding",
	},
	{
		Name: "postgres-rate-one-too-many", Promise: "design.md 4: exact in SQL and memory",
		Symbol: "postgres.(*keyWindow).retryAfter",
		Old:    "w.currentCount() < int64(rate.Requests)",
		New:    "w.currentCount() <= int64(rate.Requests)",
		Suite:  "postgres", Test: steppedPostgres + "rates",
	},
	{
		Name: "postgres-keys-not-locked", Promise: "design.md 4: exact in SQL and memory",
		Symbol: "postgres.sqlLockKeys", Old: "ORDER BY name FOR UPDATE", New: "ORDER BY name",
		Suite: "postgres", Test: steppedPostgres + "rates",
	},
	{
		Name: "postgres-claimed-twice", Promise: "design.md 4: due work claimed with FOR UPDATE SKIP LOCKED, a lease and an epoch",
		Symbol: "postgres.sqlLease",
		Old:    "leased_until = statement_timestamp() + $3::interval",
		New:    "leased_until = statement_timestamp() + 0 * $3::interval",
		Suite:  "postgres", Test: steppedPostgres + "(queue|leases)",
	},
	{
		Name: "postgres-claim-without-an-epoch", Promise: "design.md 4: a lease and an epoch",
		Symbol: "postgres.sqlLease",
		Old:    "epoch = epoch + 1, version = version + 1,",
		New:    "version = version + 1,",
		Suite:  "postgres", Test: steppedPostgres + "leases",
	},
	{
		Name: "postgres-paused-events-claimed", Promise: "hazards.md F24: deliveries are paused, not exhausted",
		Symbol: "postgres.sqlDue", Old: "AND $4::boolean", New: "AND ($4::boolean OR true)",
		Suite: "postgres", Test: steppedPostgres + "queue",
	},
	{
		Name: "postgres-sweep-expires-early", Promise: "design.md 3: EXPIRED is shown from expiresAt + 5 s",
		Symbol: "postgres.workOf", Old: "return workExpire, rest", New: "return workExpire, r.EndsAt()",
		Suite: "postgres", Test: "excludes requests that are still shown as pending",
	},
	{
		Name: "postgres-sweep-forgets-the-rest-of-a-code", Promise: "design.md 3: what is settled is kept for at least ttl + 5 min",
		Symbol: "postgres.sqlSweepLapsed",
		Old:    "WHEN r.body_hash = '' THEN r.since",
		New:    "WHEN $3::interval IS NOT NULL THEN r.since",
		Suite:  "postgres", Test: "Due work (is the same to a sweep|excludes codes)",
	},
	{
		Name: "postgres-synchronous-commit-off", Promise: "design.md 4: synchronous_commit=off is refused",
		Symbol: "postgres.checkServer", Old: `synchronous == "off"`, New: `synchronous == "never"`,
		Suite: "postgres", Test: "is rejected if it acknowledges commits that it may lose",
	},
	{
		Name: "postgres-password-in-the-clear", Promise: "design.md 4: require_auth=scram-sha-256",
		Symbol: "postgres.Address.parse", Old: `if uri.requireAuth == "" {`, New: `if uri.requireAuth == "never" {`,
		Suite: "postgres", Test: "An impostor in the place of the database",
	},
	{
		Name: "postgres-certificate-unchecked", Promise: "design.md 4: an authority is named to have the server checked",
		Symbol: "postgres.setRootCAs",
		Old:    "c.TLSConfig.RootCAs = roots",
		New:    "c.TLSConfig.RootCAs, c.TLSConfig.InsecureSkipVerify, c.TLSConfig.VerifyPeerCertificate = roots, true, nil",
		Suite:  "postgres", Test: "A database with a certificate of a private authority",
	},
	{
		Name: "postgres-no-repetition", Promise: "hazards.md F12: whole-transaction retry with jitter, bounded",
		Symbol: "postgres.isRetryable",
		Old:    "case stateSerialization, stateDeadlock, stateUniqueViolation, stateReadOnly:",
		New:    "case stateUniqueViolation, stateReadOnly:",
		Suite:  "postgres", Test: "every fifth transaction",
	},
	{
		Name: "postgres-other-projects-read", Promise: "design.md 2: stores key by namespace/name",
		Symbol: "postgres.sqlRead",
		Old:    "WHERE project = $1 AND id = u.id LIMIT 1",
		New:    "WHERE $1::text IS NOT NULL AND id = u.id LIMIT 1",
		Suite:  "postgres", Test: steppedPostgres + "creation keeps projects",
	},
	{
		Name: "postgres-one-bad-row-fails-all", Promise: "hazards.md A13: a poison affects only itself",
		Symbol: "postgres.runOrSplit",
		Old:    "case isContentError(err) && len(calls) > 1:",
		New:    "case false && len(calls) > 1:",
		Suite:  "postgres", Test: "one bad row fails alone",
	},
	{
		Name: "postgres-lost-answer-is-a-second-creation", Promise: "hazards.md F10: unknown outcome resolved by re-read on unique key",
		Symbol: "postgres.(*creationBatch).run",
		Old:    "call.out.Request, call.out.Existing, call.err = known.Request, !ours, nil",
		New:    "call.out.Request, call.out.Existing, call.err = known.Request, !ours || true, nil",
		Suite:  "postgres", Test: "recognises a creation whose answer was lost",
	},
	{
		Name: "postgres-key-window-one-microsecond-short", Promise: "design.md 4: sliding count of requests created in (now - period, now]",
		Symbol: "postgres.sqlKeyWindows",
		Old:    "AND at > statement_timestamp() - $3::interval",
		New:    "AND at > statement_timestamp() - $3::interval + interval '1 microsecond'",
		Suite:  "postgres", Test: steppedPostgres + "windows",
	},
}

// objectsMutants break what only objects of an API server can break.
//
//nolint:gochecknoglobals // a table
var objectsMutants = []Mutant{
	{
		Name: "objects-all-read-for-a-bound-sender", Promise: "adr 23: what is kept for hours is not read for a sender of now",
		Symbol: "kubernetes.openPhases", Old: "\",status.phase!=Verified,status.phase!=Expired\"", New: "\"\"",
		Suite: "objects", Test: "Faults reads the open requests",
	},
	{
		Name: "objects-final-binding-of-others-unseen", Promise: "design.md 4: a sender is bound to the latest request, at any replica",
		Symbol: "kubernetes.(*Store).findAwaiting", Old: "{openPhases, allPhases}", New: "{openPhases}",
		Suite: "objects", Test: "Faults reads the open requests",
	},
	{
		Name: "objects-lost-write-taken-for-done", Promise: "hazards.md F10: unknown outcome resolved by re-read",
		Symbol: "kubernetes.(*Store).updateObject",
		Old:    "sent = append(sent, unconfirmedWrite{origin: current, intended: intended})",
		New:    "_, after = intended, current\n\t\t\treturn current, after, nil",
		Suite:  "objects", Test: "Faults (never takes|finds out)",
	},
	{
		Name: "objects-write-of-another-taken-for-own", Promise: "hazards.md F10: unknown outcome resolved by re-read",
		Symbol: "kubernetes.originOf",
		Old:    "a.ledTo(current)",
		New:    "a.origin != nil",
		Suite:  "objects", Test: "Faults never takes another's write for its own",
	},
	{
		Name: "objects-decision-with-event-taken-for-anothers", Promise: "hazards.md F10: unknown outcome resolved by re-read",
		Symbol: "kubernetes.(*unconfirmedWrite).ledTo",
		Old:    "return !sameState(decided, withoutDelivery(w.origin.request)) &&",
		New:    "return false && !sameState(decided, withoutDelivery(w.origin.request)) &&",
		Suite:  "objects", Test: "Faults knows its own decision",
	},
	{
		Name: "objects-lost-deletion-taken-for-done", Promise: "hazards.md F10: unknown outcome resolved by re-read",
		Symbol: "kubernetes.(*Store).resolveDeletion", Old: "return failure // it may still happen", New: "return nil",
		Suite: "objects", Test: "Faults never takes a write for done",
	},
	{
		Name: "objects-creation-before-taken-for-own", Promise: "hazards.md F10: unknown outcome resolved by re-read on unique key",
		Symbol: "kubernetes.(*Store).createObject", Old: "e.request.CreatedAt.Equal(now) &&", New: "",
		Suite: "objects", Test: "Faults tells a creation",
	},
	{
		Name: "objects-unknown-creation-not-counted", Promise: "design.md 4: own admissions at once",
		Symbol: "kubernetes.(*Store).createObject", Old: "s.limits.endReservation(n.ID)", New: "s.limits.undoAdmission(a, now)",
		Suite: "objects", Test: "Faults counts a creation whose outcome is unknown",
	},
	{
		Name: "objects-refused-creation-stays-counted", Promise: "design.md 4: a refused creation does not count",
		Symbol: "kubernetes.(*Store).createObject",
		Old:    "case !errors.As(err, &unknown): s.limits.undoAdmission(a, now)",
		New:    "case !errors.As(err, &unknown):",
		Suite:  "objects", Test: "counts no creation that the API server refused",
	},
	{
		Name: "objects-creation-before-the-informer-synced", Promise: "design.md 4: limits count what is stored",
		Symbol: "kubernetes.(*Store).Create", Old: "if !s.HasSynced() {", New: "if false {",
		Suite: "objects unit", Test: "TestStore_startsNothing",
	},
	{
		Name: "objects-counts-before-the-informer-synced", Promise: "design.md 9: metrics tell what is stored",
		Symbol: "kubernetes.(*Store).Stored", Old: "if !s.HasSynced() {", New: "if false {",
		Suite: "objects unit", Test: "TestStore_startsNothing",
	},
	{
		Name: "objects-panic-in-the-handler", Promise: "hazards.md A13: a poison affects only itself",
		Symbol: "kubernetes.recoverHandler",
		Old:    "if failure := recover(); failure != nil {",
		New:    "if failure := any(nil); failure != nil {",
		Suite:  "objects unit", Test: "TestObserved",
	},
	{
		Name: "objects-5xx-taken-for-certain", Promise: "hazards.md F10: unknown outcome resolved by re-read",
		Symbol: "kubernetes.classifyError",
		Old:    "return unknownOutcomeError{unavailableError(doing, refused)} default:",
		New:    "return unavailableError(doing, refused)\n\tdefault:",
		Suite:  "objects", Test: "finds out what became of writes that are stored",
	},
	{
		Name: "objects-lost-answer-taken-for-certain", Promise: "hazards.md F10: unknown outcome resolved by re-read",
		Symbol: "kubernetes.classifyError",
		Old:    "return unknownOutcomeError{unavailableError(doing, err)}",
		New:    "return unavailableError(doing, err)",
		Suite:  "objects", Test: "finds out what became of writes whose answer is lost",
	},
	{
		Name: "objects-peek-answers-what-may-be-behind", Promise: "design.md 4: a cached PENDING is confirmed by one live GET",
		Symbol: "kubernetes.(*Store).ReadFinal", Old: "case known.isFinal():", New: "case known.kind == KindRequest:",
		Suite: "objects", Test: "answers nothing stale while its watch is held back",
	},
	{
		Name: "objects-stale-where-the-get-fails", Promise: "design.md 4: if that GET fails: 503, never stale",
		Symbol: "kubernetes.(*Store).ReadFinal",
		Old:    "return requestOf(s.readObject(ctx, known.Name))",
		New:    "r, err := requestOf(s.readObject(ctx, known.Name))\n\tif err != nil {\n\t\treturn known.toRequest()\n\t}\n\treturn r, nil",
		Suite:  "objects", Test: "The store contract outage",
	},
	{
		Name: "objects-older-taken-for-newer", Promise: "reliability.md 2: no replica shows an older status than one told before",
		Symbol: "kubernetes.isNewer", Old: "err == nil && order > 0", New: "err == nil && order < 0",
		Suite: "objects unit", Test: "TestNewer",
	},
	{
		Name: "objects-status-written-over-another", Promise: "design.md 3: one compare-and-set",
		Symbol: "kubernetes.(*api).putStatus",
		Old:    "Param(\"fieldManager\", fieldManager).Body(encodeJSON(o)))",
		New:    "Param(\"fieldManager\", fieldManager).Body(encodeJSON(func() any { o = o.DeepCopy(); o.ResourceVersion = \"\"; return o }())))",
		Suite:  "objects", Test: "The store contract races",
	},
	{
		Name: "objects-deleted-without-preconditions", Promise: "hazards.md F18: no step is taken on a state that is gone",
		Symbol: "kubernetes.(*api).deleteObject",
		Old:    "Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},",
		New:    "Preconditions: &metav1.Preconditions{UID: &uid},",
		Suite:  "objects", Test: "The store contract (races|deletion)",
	},
	{
		Name: "objects-deleted-requests-do-not-count", Promise: "design.md 4: deleted requests still count in memory",
		Symbol: "kubernetes.(*creationLimits).removeStored",
		Old:    "delete(l.stored, name)",
		New:    "if e := l.stored[name]; e != nil && e.object != nil {\n\t\tl.admitted.Remove(e.countedCreation(), e.request.CreatedAt)\n\t}\n\tdelete(l.stored, name)",
		Suite:  "objects", Test: "The store contract rates count deleted",
	},
	{
		Name: "objects-open-request-evicted", Promise: "design.md 4: an undelivered event is never dropped",
		Symbol: "kubernetes.(*creationLimits).chooseEvictable",
		Old:    "case at.IsZero(): // an event is still to be delivered: the time is unknown",
		New:    "case false:",
		Suite:  "objects", Test: "The store contract storage cap",
	},
	{
		Name: "objects-cap-one-too-many", Promise: "design.md 4: maxStored counts every object of the project",
		Symbol: "kubernetes.(*creationLimits).exceedsCap", Old: "stored > a.limits.MaxStored", New: "stored > a.limits.MaxStored+1",
		Suite: "objects", Test: "The store contract storage cap",
	},
	{
		Name: "objects-text-kept-after-the-end", Promise: "design.md 3: the code is not stored",
		Symbol: "kubernetes.toObject", Old: `s.ExpectedText, s.Link = "", "" // they hold the code`, New: "",
		Suite: "objects", Test: "A request made with kubectl",
	},
	{
		Name: "objects-earlier-binding-stays", Promise: "design.md 3: one live binding per (account, sender), the latest wins",
		Symbol: "kubernetes.(*Store).Update",
		Old:    "err = s.endEarlierBindings(ctx, after, boundSince(before, after))",
		New:    "err = nil",
		Suite:  "objects", Test: "The store contract contacts",
	},
	{
		Name: "objects-earlier-binding-stays-after-a-failure", Promise: "design.md 3: one live binding per (account, sender), the latest wins",
		Symbol: "kubernetes.(*Store).Update",
		Old:    "err = s.endEarlierBindings(ctx, before, sharingContacts(before))",
		New:    "err = nil",
		Suite:  "objects", Test: "ends an earlier binding when the message",
	},
	{
		Name: "objects-answer-shares-memory", Promise: "design.md 4: one conformance suite, by which answers are copies",
		Symbol: "kubernetes.(*entry).toRequest", Old: "return e.request.Clone(), nil", New: "return e.request, nil",
		Suite: "objects", Test: "The store contract state",
	},
	{
		Name: "objects-retry-after-dropped", Promise: "hazards.md F15: back off on Retry-After",
		Symbol: "kubernetes.unavailableError", Old: "known.RetryAfter = refused.retryAfter", New: "",
		Suite: "objects", Test: "passes the API server's Retry-After on",
	},
	{
		Name: "objects-client-retries-429", Promise: "hazards.md F15: no hot loop",
		Symbol: "kubernetes.(*api).callForObject", Old: ".MaxRetries(0)", New: ".MaxRetries(10)",
		Suite: "objects", Test: "passes the API server's Retry-After on",
	},
	{
		Name: "objects-number-in-errors", Promise: "reliability.md 4: no error holds a whole number",
		Symbol: "kubernetes.refusalOf",
		Old:    "r := refusal{code: int(status.Code), reason: status.Reason}",
		New:    "r := refusal{code: int(status.Code), reason: metav1.StatusReason(status.Message)}",
		Suite:  "objects", Test: "tells content that the API server refuses",
	},
	{
		Name: "objects-unknown-reads-unbounded", Promise: "hazards.md A10: status enumeration with guessed ids",
		Symbol: "kubernetes.(*unknownReads).limitRead", Old: "end(errors.Is(err, verification.ErrNotFound))", New: "end(false)",
		Suite: "objects unit", Test: "TestUnknown|Unknown",
	},
}
