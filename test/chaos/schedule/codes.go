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

// CodeKill is a kill on the way of a code, through WhatsApp or Telegram.
type CodeKill struct {
	Kind     Kind
	Telegram bool
}

// CodeKills returns the kills of one store out of count in all runs. A round has each kind once: one round in 17 is for an API server,
// which stores fewer codes, and one in five is of codes through Telegram.
func CodeKills(count int, apiServer bool) []CodeKill {
	of, kills := OfCodes(), []CodeKill(nil)
	for n := range count {
		if round := n / len(of); (round%17 == 0) == apiServer {
			kills = append(kills, CodeKill{of[n%len(of)], round%5 == 2})
		}
	}
	return kills
}
