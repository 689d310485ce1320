package schedule

// The kinds that kill a replica on the way of a code, at a named point. They have a part of the run of their own, before all others.
const (
	KillBeforeCommit Kind = "kill-before-commit" // its request is about to be committed, and never is
	KillAfterCommit  Kind = "kill-after-commit"  // its request is committed, and the replica does not learn it
	KillAfterSend    Kind = "kill-after-send"    // the messenger has the code, and has not answered
	KillBeforeResult Kind = "kill-before-result" // the answer of the messenger is about to be committed, and never is
)

// OfCodes returns the kinds that kill a replica on the way of a code, in the order of the points.
func OfCodes() []Kind {
	return []Kind{KillBeforeCommit, KillAfterCommit, KillAfterSend, KillBeforeResult}
}

// CodeKills returns the kinds of the kills of one store out of count in all runs: few are for an API server, which
// stores fewer codes.
func CodeKills(count int, apiServer bool) []Kind {
	of, kills := OfCodes(), []Kind(nil)
	for n := range count {
		if (n%(13*len(of)) < len(of)) == apiServer {
			kills = append(kills, of[n%len(of)])
		}
	}
	return kills
}
