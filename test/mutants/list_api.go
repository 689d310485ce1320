package main

// apiMutants break promises to client backends.
//
//nolint:gochecknoglobals // a table
var apiMutants = []Mutant{
	{
		Name: "deleted-secret-still-accepted", Promise: "security.md: a secret that is deleted is not accepted any more",
		Symbol: "settings.secretState.applyReading", Old: "return h.rejectValue(u, reason, now)",
		New:   "if reason == ReasonMissing && h.secret.Usable() {\n\t\t\treturn h\n\t\t}\n\t\treturn h.rejectValue(u, reason, now)",
		Suite: "settings", Test: "TestSecrets_exactly_when",
	},
	{
		Name: "deleted-webhook-secret-still-signs", Promise: "security.md: a secret that is deleted is not accepted any more",
		Symbol: "settings.kind.isMistake", Old: "reason == ReasonNotBase64 ||", New: "reason == ReasonNotBase64 || reason == ReasonMissing ||",
		Suite: "settings", Test: "TestSecrets",
	},
	{
		Name: "malformed-api-key-leaves-the-one-before", Promise: "security.md: a key that is replaced by nonsense is revoked",
		Symbol: "settings.secretState.rejectValue", Old: "!u.kind.isMistake(reason) || ", New: "",
		Suite: "settings", Test: "TestSecrets_malformedAPIKey",
	},
	{
		Name: "any-text-is-an-app-secret", Promise: "security.md: a stranger cannot guess what signs messages from WhatsApp",
		Symbol: "settings.acceptAppSecret", Old: "!appSecretForm.Match(value), ", New: "",
		Suite: "settings", Test: "TestSecrets_appSecret",
	},
	{
		Name: "init-store-without-time-limit", Promise: "hazards.md F9: a store that hangs is a 503 within two seconds",
		Symbol: "httpapi.(*exchange).startVerification", Old: ", storeTimeout)", New: ", 1000*storeTimeout)",
		Suite: "http api", Test: "TestStore_isAsked",
	},
	{
		Name: "status-store-without-time-limit", Promise: "hazards.md F9: a store that hangs is a 503 within two seconds",
		Symbol: "httpapi.(*exchange).readRequest", Old: ", storeTimeout)", New: ", 1000*storeTimeout)",
		Suite: "http api", Test: "TestStore_isAsked",
	},
	{
		Name: "replay-with-the-full-expires-in", Promise: "design.md 3: the original answer with the remaining expiresIn",
		Symbol: "httpapi.(*exchange).expiresIn", Old: "if !initiated.Existing {", New: "if true {",
		Suite: "http api", Test: "TestInit_retryAnswers",
	},
	{
		Name: "verified-at-is-now", Promise: "design.md 3: all times that matter are persisted",
		Symbol: "httpapi.appendResult",
		Old:    "appendTime(body, request.VerifiedAt)",
		New:    "appendTime(body, now)",
		Suite:  "http api", Test: "TestStatus_answersWhatWasStored",
	},
	{
		Name: "status-answers-the-claimed-number-as-actual", Promise: "design.md 3: actualPhoneNumber is the number the messenger reported",
		Symbol: "httpapi.appendResult",
		Old:    "body = append(body, request.Actual.E164()...)",
		New:    "body = append(body, request.Phone.E164()...)",
		Suite:  "http api", Test: "TestStatus_answersWhatWasStored",
	},
	{
		Name: "status-answers-the-number-in-another-form", Promise: "design.md 3: stored and answered as E.164, as it was given",
		Symbol: "httpapi.(*exchange).answerStatus",
		Old:    "body = append(body, request.Phone.E164()...)",
		New:    "body = append(append(body, '+'), verification.NumberPrefix(request.Phone, 15)...)",
		Suite:  "http api", Test: "TestStatus_answersWhatWasStored",
	},
	{
		Name: "api-key-scope-unchecked", Promise: "design.md 5: keys with scopes, 403 insufficient_scope",
		Symbol: "httpapi.(*exchange).authorize", Old: "if !key.Has(scope) {", New: "if false {",
		Suite: "http api", Test: "TestAuth",
	},
	{
		Name: "two-authorization-headers", Promise: "hazards.md 25: two Authorization headers",
		Symbol: "httpapi.bearerToken", Old: "case len(values) > 1:", New: "case len(values) > 100:",
		Suite: "http api", Test: "TestAuth_bearerHeader",
	},
	{
		Name: "key-checked-after-the-body", Promise: "hazards.md A17: checksum rejects before any store read",
		Symbol: "httpapi.(*exchange).initiate",
		Old:    "x.authorize(settings.ScopeInit)",
		New:    "x.authorize(settings.ScopeStatus)",
		Suite:  "http api", Test: "TestAuth",
	},
	{
		Name: "key-not-checked-after-a-wait", Promise: "design.md 5: the key is checked again before answering",
		Symbol: "httpapi.(*exchange).readOrWait",
		Old:    "if _, err := x.authorize(settings.ScopeStatus); err != nil {",
		New:    "if err := x.r.Context().Err(); err != nil {",
		Suite:  "http api", Test: "TestWait_checksTheKeyAgain",
	},
	{
		Name: "body-limit-thousandfold", Promise: "design.md 5: body 8 KiB",
		Symbol: "httpapi.maxBodyBytes", Old: "8 << 10", New: "1000 << 10",
		Suite: "http api", Test: "TestInit_bodyOfEightKibibytes",
	},
	{
		Name: "announced-length-unchecked", Promise: "hazards.md A3: refused by its headers",
		Symbol: "httpapi.(*exchange).readBody", Old: "if x.r.ContentLength > maxBodyBytes {", New: "if false {",
		Suite: "http api", Test: "TestInit_refusesAnAnnounced",
	},
	{
		Name: "compressed-body-read", Promise: "hazards.md 12: gzip-encoded body",
		Symbol: "httpapi.(*exchange).readBody", Old: "len(encodings) > 1 ||", New: "len(encodings) > 100 ||",
		Suite: "http api", Test: "TestInit_headersOfTheBody",
	},
	{
		Name: "status-shows-the-stored-phase", Promise: "design.md 3: EXPIRED is shown from expiresAt + 5 s",
		Symbol: "httpapi.(*exchange).answerStatus", Old: "request.PhaseAt(now)", New: "request.Phase",
		Suite: "http api", Test: "TestStatus_ofEachPhase|TestWait_endsWhenTheRequestExpires",
	},
	{
		Name: "status-unlimited", Promise: "hazards.md A10: status enumeration",
		Symbol: "httpapi.(*exchange).limitStatus",
		Old:    "if !limited ||",
		New:    "if !limited || true ||",
		Suite:  "http api", Test: "TestStatus_isLimited",
	},
	{
		Name: "retries-unlimited", Promise: "hazards.md A9: init flood",
		Symbol: "httpapi.(*exchange).chargeRetry",
		Old:    "x.api.retries.Charge(key, rate, x.api.clock.Now())",
		New:    "_, _ = key, rate",
		Suite:  "http api", Test: "TestRetries",
	},
	{
		Name: "suspended-project-starts", Promise: "design.md 9: suspended",
		Symbol: "httpapi.(*exchange).refuseStart", Old: "case x.settings.Suspended:", New: "case false:",
		Suite: "http api", Test: "TestInit_suspended|TestInit_idempotencyKeyWhen",
	},
	{
		Name: "retry-refused-while-suspended", Promise: "design.md 3: the original answer, whatever the state",
		Symbol: "verification.(*Service).refuseUnlessStored", Old: "if !in.HasIdempotencyKey {", New: "if true {",
		Suite: "http api", Test: "TestInit_suspended|TestInit_idempotencyKeyWhen",
	},
	{
		Name: "subject-not-required", Promise: "adr 20: an authentication without a subject would not be limited",
		Symbol: "httpapi.(*exchange).refuseStart",
		Old:    `case initiation.Subject == "" && initiation.Limits.PerSubject.Limited():`,
		New:    "case false:",
		Suite:  "http api", Test: "TestInit_floodOfOneSubject|TestInit_retryOfBefore",
	},
	{
		Name: "duplicate-field-accepted", Promise: "hazards.md 6: duplicate keys",
		Symbol: "httpapi.decodeObject", Old: "if ok && isKnown(", New: "if !ok && isKnown(",
		Suite: "http api", Test: "TestInit_invalidJSON|TestInit_fields|TestDecode",
	},
	{
		Name: "null-for-the-body-accepted", Promise: "hazards.md 5: JSON and trailing garbage",
		Symbol: "httpapi.decodeObject", Old: "trimmed[0] != '{'", New: "false && trimmed[0] == 0",
		Suite: "http api", Test: "TestInit_invalidJSON|TestDecode",
	},
	{
		Name: "own-number-verified", Promise: "proof.md 11: the project's own business number is refused",
		Symbol: "httpapi.(*exchange).readInitiation", Old: "if x.settings.IsOwnNumber(number) {", New: "if false {",
		Suite: "http api", Test: "TestInit_ownNumber",
	},
	{
		Name: "own-number-in-another-form-verified", Promise: "proof.md 11: the project's own business number is refused",
		Symbol: "settings.(*Settings).IsOwnNumber", Old: "phone.Same(own, n)", New: "own == n",
		Suite: "http api", Test: "TestInit_ownNumber",
	},
	{
		Name: "metadata-key-twice-accepted", Promise: "proof.md 11: metadata is answered as documented",
		Symbol: "httpapi.(*metadataField).UnmarshalJSON", Old: "len(duplicates) > 0", New: "len(duplicates) > 1000",
		Suite: "http api", Test: "TestInit_metadata",
	},
	{
		Name: "metadata-counted-in-characters", Promise: "proof.md 11: metadata of 1 KiB",
		Symbol: "httpapi.readMetadata", Old: "size += len(key) + len(field.value)", New: "size += len(key) + len([]rune(field.value))",
		Suite: "http api", Test: "TestInit_metadata",
	},
	{
		Name: "half-a-surrogate-pair-replaced", Promise: "proof.md 11: reference and metadata are returned as they were given",
		Symbol: "httpapi.hasHalfPair", Old: "== utf8.RuneError {", New: "== 0 {",
		Suite: "http api", Test: "TestInit_reference|TestInit_metadata|TestInit_invalidJSON",
	},
	{
		Name: "status-without-metadata", Promise: "proof.md 11: status returns reference and metadata",
		Symbol: "httpapi.appendClientData", Old: "if len(request.Metadata) == 0 {", New: "if true {",
		Suite: "http api", Test: "TestStatus_answersTheClientsData",
	},
	{
		Name: "internal-error-shown", Promise: "design.md 5: nothing internal leaks",
		Symbol: "httpapi.publicError", Old: "return errInternal, err", New: `return newError(codeInternal, "", err.Error()), err`,
		Suite: "http api", Test: "TestStatus_unknownError",
	},
	{
		Name: "wait-without-a-bound-per-key", Promise: "design.md 5: at most 100 waits per key",
		Symbol: "httpapi.maxWaitsPerKey", Old: "= 100", New: "= 100000",
		Suite: "http api", Test: "TestWait_isShared",
	},
	{
		Name: "body-kept-in-the-pool", Promise: "reliability.md 4: no memory of a number",
		Symbol: "httpapi.readBodyAs",
		Old:    "clear(buffer[:]) // It held a phone number or a code, and the client may have sent anything.",
		New:    "",
		Suite:  "http api", Test: "TestInit_clearsTheBody|TestConfirm_clearsTheBody",
	},
	{
		Name: "expired-key-accepted", Promise: "design.md 5: each key with an optional expiry",
		Symbol: "settings.Keys.Find", Old: "case hasLapsed(k.keys[found].ExpiresAt, now):", New: "case false:",
		Suite: "settings", Test: "TestKeysFind",
	},
	{
		Name: "replaced-key-accepted-for-ever", Promise: "design.md 2: previous values stay accepted in memory for ten minutes",
		Symbol: "settings.Keys.Find", Old: "found < 0 || hasLapsed(k.keys[found].until, now)", New: "found < 0",
		Suite: "settings", Test: "TestKeysFind|TestFromProject_rotated",
	},
	{
		Name: "mixed-simulator-account", Promise: "design.md 8: sim_ credentials go to --simulator-url and nowhere else",
		Symbol: "settings.refuseMixed",
		Old:    "next[fieldAccessToken] = secretState{ref: token.ref, reason: ReasonMixedSimulator}",
		New:    "",
		Suite:  "settings", Test: "TestSecrets_mixed",
	},
	{
		Name: "key-hash-printed", Promise: "reliability.md 4: no log holds a secret",
		Symbol: "settings.Key.Format", Old: "io.WriteString(state, k.Name)", New: "io.WriteString(state, fmt.Sprintf(\"%s %x\", k.Name, k.Hash))",
		Suite: "settings", Test: "TestSettings_print",
	},
	{
		Name: "broken-edit-takes-effect", Promise: "hazards.md A13: a poison CR affects only itself",
		Symbol: "settings.(*Live).SetProject", Old: "l.rejectProject(err) return err", New: "l.rejectProject(err)",
		Suite: "settings", Test: "TestLive_refuses|TestFile_broken",
	},
	{
		Name: "checksum-of-keys-unchecked", Promise: "hazards.md A17: checksum rejects before any store read",
		Symbol: "settings.CheckFormat", Old: "if key[i] != base62[sum%uint32(len(base62))] {", New: "if false {",
		Suite: "settings", Test: "TestCheckFormat|TestAPIKey|TestNewAPIKey|TestKeysFind",
	},
	{
		Name: "not-ready-while-the-store-is-down", Promise: "hazards.md F9: readiness off",
		Symbol: "health.NewProbesHandler",
		Old:    `writeText(w, http.StatusServiceUnavailable, "not ready")`,
		New:    `writeText(w, http.StatusOK, "not ready")`,
		Suite:  "health", Test: "TestReadyz",
	},
}

// operatorMutants break what the operator creates for a project.
//
//nolint:gochecknoglobals // a table
var operatorMutants = []Mutant{
	{
		Name: "pods-run-as-root", Promise: "design.md 2: pods meet the restricted Pod Security Standard",
		Symbol: "render.podSpec", Old: "WithRunAsNonRoot(true)", New: "WithRunAsNonRoot(false)",
		Suite: "render", Test: "TestProject_goldens",
	},
	{
		Name: "suspended-pods-run", Promise: "design.md 10: suspend applies 0",
		Symbol: "render.Replicas", Old: "case p.Suspended():", New: "case false:",
		Suite: "render", Test: "TestReplicas",
	},
	{
		Name: "secrets-not-optional", Promise: "design.md 2: mounted as projected volumes (optional: true)",
		Symbol: "render.secretsVolume", Old: "WithOptional(true)", New: "WithOptional(false)",
		Suite: "render", Test: "TestProject_goldens",
	},
	{
		Name: "rollout-is-short-of-a-pod", Promise: "hazards.md F5: a rolling restart fails no client",
		Symbol: "render.Deployment",
		Old:    "WithMaxUnavailable(intstr.FromInt32(0))",
		New:    "WithMaxUnavailable(intstr.FromInt32(1))",
		Suite:  "render", Test: "TestProject_goldens",
	},
	{
		Name: "metrics-reachable-by-all", Promise: "design.md 5: health and metrics on their own port",
		Symbol: "render.NetworkPolicy", Old: "if len(settings.MetricsFrom) > 0 {", New: "if true {",
		Suite: "render", Test: "TestProject_goldens",
	},
	{
		Name: "confirm-without-its-scope", Promise: "proof.md 13: confirm needs the scope Init",
		Symbol: "httpapi.(*exchange).serveConfirm", Old: "settings.ScopeInit", New: "settings.ScopeStatus",
		Suite: "http api", Test: "TestConfirm_badBodies",
	},
	{
		Name: "confirm-without-a-rate", Promise: "proof.md 13: short-lived, one-time, rate limits",
		Symbol: "httpapi.(*exchange).serveConfirm", Old: "x.limitStatus(key.Name); err != nil", New: "x.limitRetries(key.Name); err != nil",
		Suite: "http api", Test: "TestConfirm_countsAsARead",
	},
	{
		Name: "confirm-store-without-time-limit", Promise: "hazards.md F9: a store that hangs is a 503 within two seconds",
		Symbol: "httpapi.(*exchange).confirmRequest", Old: ", storeTimeout)", New: ", 1000*storeTimeout)",
		Suite: "http api", Test: "TestConfirm_storeTimeout",
	},
	{
		Name: "confirm-takes-the-second-of-two-codes", Promise: "design.md 3: all readers of a body read the same values",
		Symbol: "httpapi.decodeConfirm", Old: "name == fieldRequestID || name == fieldCode", New: "name == fieldRequestID",
		Suite: "http api", Test: "TestConfirm_badBodies",
	},
	{
		Name: "confirm-counts-without-a-secret", Promise: "proof.md 13: five tries in all",
		Symbol: "verification.(*Service).enterCode", Old: "r.checkConfirmation(now) == nil && len(secrets(r)) == 0", New: "false",
		Suite: "http api", Test: "TestConfirm_secretIsGone",
	},
	{
		Name: "init-lowers-the-level", Promise: "proof.md 13: init may raise it",
		Symbol: "httpapi.(*exchange).readInitiation", Old: "if x.settings.Level == verification.LevelSession {", New: "if false {",
		Suite: "http api", Test: "TestInit_storesTheTerms",
	},
	{
		Name: "init-takes-session-without-replies", Promise: "proof.md 13: the reply brings the digits",
		Symbol: "httpapi.(*exchange).readTerms", Old: "!x.settings.AllowsSession()", New: "false",
		Suite: "http api", Test: "TestInit_storesTheTerms",
	},
	{
		Name: "init-takes-any-browser", Promise: "proof.md 13: no free text of a caller enters a message",
		Symbol: "httpapi.(*exchange).readTerms", Old: `verification.BrowserName(terms.Browser) == ""`, New: `terms.Browser == ""`,
		Suite: "http api", Test: "TestInit_badTerms",
	},
	{
		Name: "init-takes-any-purpose", Promise: "proof.md 13: no free text of a caller enters a message",
		Symbol: "httpapi.(*exchange).readTerms", Old: "body.Purpose.given && !found", New: `!found && terms.Purpose == "" && body.Purpose.given`,
		Suite: "http api", Test: "TestInit_badTerms",
	},
	{
		Name: "retry-recognized-by-the-projects-level", Promise: "design.md 3: a retry gets the answer of its first try",
		Symbol: "httpapi.(*exchange).readInitiation", Old: "RequestedTerms: requested", New: "RequestedTerms: terms",
		Suite: "http api", Test: "TestInit_idempotencyKeyWithTerms",
	},
	{
		Name: "status-ends-before-the-confirmation", Promise: "proof.md 13: what was proven in the last two minutes may be confirmed for two minutes more",
		Symbol: "httpapi.(*exchange).answerStatus", Old: "request.EndsAt()", New: "request.ExpiresAt",
		Suite: "http api", Test: "TestConfirm_shortlyBeforeTheEnd",
	},
	{
		Name: "attention-says-session", Promise: "proof.md 13: VERIFIED happens only when the client redeems a code",
		Symbol: "webhook.eventBody", Old: "e.Kind == verification.EventSuccess && assurance !=", New: "assurance !=",
		Suite: "webhook", Test: "TestNewEvent_ofEachKind",
	},
	{
		Name: "proof-of-an-echo-has-the-id-of-its-question", Promise: "design.md 6: an id of its own for each event",
		Symbol: "webhook.eventID", Old: "r.IsProven()", New: "false",
		Suite: "webhook", Test: "TestEventID_distinguishesTheProof",
	},
}
