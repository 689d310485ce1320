package main

// adversaryMutants let an attacker gain from a victim who opens what the attacker passed on.
//
//nolint:gochecknoglobals // a table
var adversaryMutants = []Mutant{
	{
		Name: "adversary-message-verifies", Promise: "proof.md 17 B2: a message from the number verifies nothing at level Session",
		Symbol: "verification.(*Request).acceptProof", Old: "if r.Terms.Level == LevelSession {",
		New: "if r.Terms.Level == LevelSession && r.ID[5] != 'a' {", Suite: "adversary", Test: `^ *S1 `,
	},
	{
		Name: "adversary-page-verifies", Promise: "proof.md 17 B2: digits that are entered on a page which was passed on verify nothing",
		Symbol: "verification.(*Service).CheckSessionCode", Old: "err := r.CheckSessionCode(", New: "err := r.ConfirmSession(",
		Suite: "adversary", Test: `^ *S1 `,
	},
	{
		Name: "adversary-return-link-leads-anyone-on", Promise: "proof.md 17 B3: a return link leads on in the browser that opened the messenger alone",
		Symbol: "page.(*Handler).serveReturn", Old: `len(v.marks) == 0 || entered == ""`, New: `entered == ""`,
		Suite: "adversary", Test: `^ *S5 `,
	},
	{
		Name: "adversary-sixth-try", Promise: "proof.md 17 B4: five tries in all",
		Symbol: "verification.(*Request).countWrongCode", Old: "r.WrongCodes >= MaxConfirmTries", New: "r.WrongCodes > MaxConfirmTries",
		Suite: "adversary", Test: `^ *S6 `,
	},
	{
		Name: "adversary-not-me-goes-unheard", Promise: "proof.md 17 B2: Not me ends a request",
		Symbol: "verification.(*Request).DeclineProven", Old: "r.endBecause(HintDeclined, now, wanted)", New: "r.addHint(HintDeclined, now)",
		Suite: "adversary", Test: `^ *S7 `,
	},
	{
		Name: "adversary-no-cool-down", Promise: "proof.md 17 B11: no request begins for a number after Not me",
		Symbol: "verification.UntilCooledDown", Old: "if cooldown <= 0 ||", New: "if cooldown >= 0 ||",
		Suite: "adversary", Test: `^ *S8 `,
	},
}
