package main

// requestMutants break promises to who lists, cancels and redelivers requests.
//
//nolint:gochecknoglobals // a table
var requestMutants = []Mutant{
	{
		Name: "list-by-any-key", Promise: "proof.md 16: keys need the scope Read to list requests",
		Symbol: "httpapi.(*exchange).serveList", Old: "settings.ScopeRead", New: "settings.ScopeStatus|settings.ScopeInit|settings.ScopeRead",
		Suite: "http api", Test: "TestRequests_needTheirScopes",
	},
	{
		Name: "request-by-any-key", Promise: "proof.md 16: keys need the scope Read to read a request with its attempts",
		Symbol: "httpapi.(*exchange).serveRequest", Old: "settings.ScopeRead", New: "settings.ScopeStatus|settings.ScopeInit|settings.ScopeRead",
		Suite: "http api", Test: "TestRequests_needTheirScopes",
	},
	{
		Name: "redeliver-by-a-reader", Promise: "proof.md 16: keys need the scope Redeliver to have events sent again",
		Symbol: "httpapi.(*exchange).serveRedeliver", Old: "settings.ScopeRedeliver", New: "settings.ScopeRead|settings.ScopeRedeliver",
		Suite: "http api", Test: "TestRequests_needTheirScopes",
	},
	{
		Name: "manual-request-by-a-guessed-name", Promise: "security.md: a key with Init or Redeliver alone guesses no name of a manual request",
		Symbol: "httpapi.(*exchange).serveChange", Old: "!verification.IsRequestID(body.ID.value) && !key.Has(settings.ScopeRead)", New: "false",
		Suite: "http api", Test: "TestChanges_ofManualRequestsNeedRead",
	},
	{
		Name: "cursor-of-other-filters", Promise: "proof.md 16: a cursor holds for the same filters alone",
		Symbol: "httpapi.checkCursor", Old: "project, f.Phase, f.Reference,", New: `project, "", "",`,
		Suite: "http api", Test: "TestList_refusesParameters",
	},
	{
		Name: "cursor-of-another-project", Promise: "proof.md 16: a cursor holds for one project alone",
		Symbol: "httpapi.checkCursor", Old: "project, f.Phase,", New: `"", f.Phase,`,
		Suite: "http api", Test: "TestList_refusesParameters",
	},
	{
		Name: "cursor-made-up", Promise: "security.md: nothing of a cursor reaches a store that a store never holds",
		Symbol: "httpapi.decodeCursor", Old: " && verification.IsStoredID(position.ID)", New: "",
		Suite: "http api", Test: "TestList_refusesParameters",
	},
	{
		Name: "list-counts-as-one-read", Promise: "proof.md 16: a list counts as ten reads",
		Symbol: "httpapi.(*exchange).limitLists", Old: "range reads - 1", New: "range reads * 0",
		Suite: "http api", Test: "TestLists_areLimited",
	},
	{
		Name: "lists-unlimited-where-inits-are", Promise: "security.md: a leaked Read key cannot load the store",
		Symbol: "httpapi.listRate", Old: "Burst: minStatusRate * statusBurstTime.Seconds()", New: "Burst: 1e12",
		Suite: "http api", Test: "TestLists_areLimited",
	},
	{
		Name: "cancel-of-a-verified-request", Promise: "proof.md 16: a verified request stays verified",
		Symbol: "verification.(*Request).CancelByClient",
		Old:    "case r.Phase == Verified:\n\t\treturn ErrFinal", New: "case false:\n\t\treturn ErrFinal",
		Suite: "domain", Test: "TestCancelByClient",
	},
	{
		Name: "cancel-after-the-end", Promise: "proof.md 16: what has ended otherwise is not canceled",
		Symbol: "verification.(*Request).CancelByClient", Old: "r.Phase == Expired || r.hasLapsed(now)", New: "false",
		Suite: "domain", Test: "TestCancelByClient",
	},
	{
		Name: "attempts-forgotten-by-a-redelivery", Promise: "proof.md 16: attempts outlive a redelivery and a later event",
		Symbol: "verification.(*Request).Apply", Old: "next.archiveAttempt(r)", New: "",
		Suite: "domain", Test: "TestApply_keepsAttempts",
	},
	{
		Name: "attempts-without-bound", Promise: "proof.md 16: the last ten attempts are kept",
		Symbol: "verification.(*Request).archiveAttempt", Old: "r.TrimAttempts(MaxAttempts)", New: "",
		Suite: "domain", Test: "TestApply_keepsAttempts",
	},
	{
		Name: "claim-outlives-its-record", Promise: "proof.md 16: a redelivery during an attempt is one more attempt, by one worker",
		Symbol: "request.(*Controller).deliverEvent", Old: "err == nil && item.Claimed", New: "false",
		Suite: "requests", Test: "TestReconcile_aClaimEndsWithItsRecord",
	},
	{
		Name: "redelivery-ends-the-lease", Promise: "proof.md 16: a redelivery during an attempt is one more attempt, by one worker",
		Symbol: "verification.(*Request).HasSameWork", Old: "return r.Phase == next.Phase &&",
		New:   "return r.Phase == next.Phase && r.Redelivered == next.Redelivered &&",
		Suite: "domain", Test: "TestRecordAttempt_duringARedelivery",
	},
}
