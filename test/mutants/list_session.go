package main

// sessionMutants let someone else than the client that began a request verify it, or end it.
var sessionMutants = []Mutant{
	{
		Name: "message-verifies-at-level-session", Promise: "docs/security.md#what-holds-at-which-level: the messenger link",
		Symbol: "verification.(*Request).acceptProof", Old: "if r.Terms.Level == LevelSession {", New: "if false {",
		Suite: "domain", Test: "TestSession_isVerifiedByItsCodeAlone",
	},
	{
		Name: "page-verifies", Promise: "docs/security.md#what-holds-at-which-level: pageURL, opened",
		Symbol: "verification.(*Service).CheckSessionCode", Old: "err := r.CheckSessionCode(", New: "err := r.ConfirmSession(",
		Suite: "page", Test: "TestSession_digitsLeadBack",
	},
	{
		Name: "page-gives-the-code-to-who-holds-it-open", Promise: "docs/security.md#what-holds-at-which-level: an open page yields no code",
		Symbol: "page.(*Handler).servePage", Old: "h.write(v,",
		New:   "if len(v.marks) > 0 && v.request.IsProven() {\n\t\th.leadBack(v)\n\t\treturn\n\t}\n\th.write(v,",
		Suite: "page", Test: "TestSession_anOpenPageYieldsNothing",
	},
	{
		Name:    "page-return-link-in-any-browser",
		Promise: "docs/security.md#what-holds-at-which-level: the return link, opened in another browser",
		Symbol:  "page.(*Handler).serveReturn", Old: "len(v.marks) == 0 || ", New: "",
		Suite: "page", Test: "TestSession_returnLink",
	},
	{
		Name: "page-return-link-with-another-mark", Promise: "docs/security.md#what-holds-at-which-level: codes of another request",
		Symbol: "page.markName", Old: ` + id + "\x00"`, New: "",
		Suite: "page", Test: "TestSession_returnLinkIsRefused",
	},
	{
		Name:    "page-checks-without-a-count",
		Promise: "docs/security.md#what-holds-at-which-level: five tries are counted before they are answered",
		Symbol:  "verification.(*Service).CheckSessionCode", Old: "wrong && ", New: "false && wrong && ",
		Suite: "page", Test: "TestSession_comparesOneGuessThatIsNotCounted",
	},
	{
		Name: "page-return-link-at-a-replica-that-lags", Promise: "docs/security.md#what-holds-at-which-level: the return link after the end",
		Symbol: "page.(*Handler).serveReturn", Old: "h.confirmEnd(ctx, v)", New: "ctx.Err()",
		Suite: "page", Test: "TestSession_returnLinkAsksTheStore",
	},
	{
		Name: "page-forms-of-other-sites", Promise: "docs/page.md#what-a-stranger-can-do-with-it: forms of other sites do nothing",
		Symbol: "page.(*Handler).isOfOwnPage", Old: "err != nil", New: "err != nil && v.request.ID == \"\"",
		Suite: "page", Test: "TestSession_formsOfOtherSites",
	},
	{
		Name: "page-cancels-by-a-look", Promise: "docs/security.md#what-holds-at-which-level: no GET changes anything",
		Symbol: "page.(*Handler).operationOf", Old: "return h.serveCancel, http.MethodPost", New: "return h.serveCancel, http.MethodGet",
		Suite: "page", Test: "TestSession_cancelEnds",
	},
	{
		Name: "code-redeemed-twice", Promise: "docs/security.md#what-holds-at-which-level: a code is redeemed once",
		Symbol: "verification.(*Request).checkConfirmation", Old: "case r.Phase == Verified:", New: "case false:",
		Suite: "domain", Test: "TestSession_isVerifiedByItsCodeAlone",
	},
	{
		Name: "anyone-declines", Promise: "docs/security.md#what-holds-at-which-level: Not me by another person than the prover",
		Symbol: "verification.(*Request).DeclineProven", Old: "|| !isProver(r)", New: "",
		Suite: "domain", Test: "TestSession_notMeOfTheProverEndsIt",
	},
	{
		Name: "session-codes-of-an-earlier-request", Promise: "docs/security.md#what-holds-at-which-level: each request has codes of its own",
		Symbol: "verification.CodeSpace.deriveBytes", Old: "r.CreatedAt.UnixMicro()", New: "0",
		Suite: "domain", Test: "TestSessionCodes_depend",
	},
	{
		Name:    "session-codes-not-sent-again",
		Promise: "docs/channels.md#assurance-session-what-the-user-gets: a message whose codes could not be sent is delivered again",
		Symbol:  "whatsapp.(*delivery).sendPrompt", Old: "d.hook.prompted.Undo(question, requestID)", New: "",
		Suite: "whatsapp", Test: "TestSession_replyFails",
	},
	{
		Name:    "session-not-me-with-any-token",
		Promise: "docs/security.md#what-holds-at-which-level: Not me by another person than the prover",
		Symbol:  "whatsapp.(*delivery).receiveNotMe", Old: "if !d.isNotMeToken(tap, from, r.CreatedAt) {", New: "if d == nil {",
		Suite: "whatsapp", Test: "TestSession_notMeByOthers",
	},
	{
		Name:    "session-button-of-another-prover",
		Promise: "docs/security.md#what-holds-at-which-level: Not me by another person than the prover",
		Symbol:  "whatsapp.notMeToken", Old: "proverKey +", New: "proverKey[:0] +",
		Suite: "whatsapp", Test: "TestNotMeToken",
	},
	{
		Name: "session-link-to-anywhere", Promise: "docs/security.md#what-holds-at-which-level: only what returnURLs lists",
		Symbol: "settings.(*Settings).SessionMessage", Old: "s.Page.AllowsReturn(r.ReturnURL)", New: "r.ReturnURL != \"\"",
		Suite: "settings", Test: "TestSessionMessage",
	},
	{
		Name: "attack-page-verifies", Promise: "docs/security.md#what-holds-at-which-level: the messenger link",
		Symbol: "verification.(*Service).CheckSessionCode", Old: "err := r.CheckSessionCode(", New: "err := r.ConfirmSession(",
		Suite: "adversary", Test: "TestAttacks/relayed_link",
	},
	{
		Name:    "attack-return-link-in-any-browser",
		Promise: "docs/security.md#what-holds-at-which-level: the return link, opened in another browser",
		Symbol:  "page.(*Handler).serveReturn", Old: "len(v.marks) == 0 || ", New: "",
		Suite: "adversary", Test: "TestAttacks/stolen_codes",
	},
	{
		Name: "attack-sixth-try", Promise: "docs/security.md#what-holds-at-which-level: five tries in all for a request",
		Symbol: "verification.(*Request).countWrongCode", Old: ">= r.MaxTries()", New: "> r.MaxTries()",
		Suite: "adversary", Test: "TestAttacks/guess",
	},
}
