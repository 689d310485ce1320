package main

// pageMutants break the page at the level Session.
//
//nolint:gochecknoglobals // a table
var pageMutants = []Mutant{
	{
		Name: "page-gives-the-code-to-who-holds-it-open", Promise: "proof.md 13: holding the page open never yields the return code",
		Symbol: "page.(*Handler).servePage", Old: "h.write(v,",
		New:   "if len(v.marks) > 0 && v.request.IsProven() {\n\t\th.leadBack(v)\n\t\treturn\n\t}\n\th.write(v,",
		Suite: "page", Test: "TestSession_anOpenPageYieldsNothing",
	},
	{
		Name: "page-return-link-in-any-browser", Promise: "proof.md 17: the return link in a second browser is not verified",
		Symbol: "page.(*Handler).serveReturn", Old: "len(v.marks) == 0 || ", New: "",
		Suite: "page", Test: "TestSession_returnLink",
	},
	{
		Name: "page-return-link-with-another-mark", Promise: "proof.md 17: the return link with another request's cookie is not verified",
		Symbol: "page.markName", Old: ` + id + "\x00"`, New: "",
		Suite: "page", Test: "TestSession_returnLinkIsRefused",
	},
	{
		Name: "page-return-link-takes-digits", Promise: "proof.md 17: digits have five tries in all",
		Symbol: "verification.CodeSpace.IsReturnCode", Old: "[]byte(space.SessionCodes(secret, r).Return.Reveal()))",
		New: "[]byte(space.SessionCodes(secret, r).Return.Reveal())) |\n\t\t\t" +
			"subtle.ConstantTimeCompare([]byte(text), []byte(space.SessionCodes(secret, r).Digits.Reveal()))",
		Suite: "page", Test: "TestSession_returnLinkIsRefused",
	},
	{
		Name: "page-checks-many-codes-at-once", Promise: "proof.md 17 B4: five tries in all",
		Symbol: "page.(*Handler).serveConfirm", Old: "; busy {", New: `; busy && v.id == "" {`,
		Suite: "page", Test: "TestSession_entersOneCodeAtATime",
	},
	{
		Name: "page-checks-without-a-count", Promise: "proof.md 17 B4: five tries in all",
		Symbol: "verification.(*Service).CheckSessionCode", Old: "wrong && ", New: "false && wrong && ",
		Suite: "page", Test: "TestSession_comparesOneGuessThatIsNotCounted",
	},
	{
		Name: "page-return-link-after-the-end", Promise: "proof.md 17: the return link after expiry is not verified",
		Symbol: "page.(*Handler).isReturnCode", Old: "r.Phase != verification.Pending || !r.IsProven()", New: "!r.IsProven()",
		Suite: "page", Test: "TestSession_returnLinkEnds",
	},
	{
		Name: "page-return-link-after-its-time", Promise: "proof.md 13: what was proven in the last two minutes may be confirmed for two minutes more",
		Symbol: "page.(*Handler).isReturnCode", Old: " || !now.Before(r.EndsAt())", New: "",
		Suite: "page", Test: "TestSession_lastsAsLong",
	},
	{
		Name: "page-return-link-before-the-proof", Promise: "proof.md 13: VERIFIED happens only after code and number matched",
		Symbol: "page.(*Handler).isReturnCode", Old: " || !r.IsProven()", New: "",
		Suite: "page", Test: "TestSession_digitsBeforeAndAfter",
	},
	{
		Name: "page-return-link-at-a-replica-that-lags", Promise: "proof.md 13: another replica says the same",
		Symbol: "page.(*Handler).serveReturn", Old: "h.confirmEnd(ctx, v)", New: "ctx.Err()",
		Suite: "page", Test: "TestSession_returnLinkAsksTheStore",
	},
	{
		Name: "page-keeps-a-code-of-return-url", Promise: "proof.md 13: a redirect to returnURL with a 128-bit code",
		Symbol: "page.(*Handler).returnLink", Old: `append(own, "code")`, New: "append(own, own...)",
		Suite: "page", Test: "TestSession_digitsLeadBack",
	},
	{
		Name: "page-digits-in-the-query", Promise: "proof.md 17: page: nothing in a referrer",
		Symbol: "page.readCode", Old: "v.r.PostForm.Get", New: "v.r.Form.Get",
		Suite: "page", Test: "TestSession_wrongDigitsCount",
	},
	{
		Name: "page-form-without-bound", Promise: "security.md: what a message costs is bounded",
		Symbol: "page.readCode", Old: "v.r.Body, maxForm", New: "v.r.Body, 1000*maxForm",
		Suite: "page", Test: "TestSession_wrongDigitsCount",
	},
	{
		Name: "page-counts-digits-it-did-not-ask-for", Promise: "proof.md 13: digits are typed into the page, which then redirects",
		Symbol: "page.(*Handler).serveConfirm", Old: `h.returnLink(v, h.Clock.Now()) == ""`, New: "v.settings.Page == nil",
		Suite: "page", Test: "TestSession_withoutAWayBack",
	},
	{
		Name: "page-forms-of-other-sites", Promise: "proof.md 17: page: clickjacking and forms of others do nothing",
		Symbol: "page.(*Handler).isOfOwnPage", Old: "err != nil", New: "err != nil && v.request.ID == \"\"",
		Suite: "page", Test: "TestSession_formsOfOtherSites",
	},
	{
		Name: "page-forms-at-the-level-possession", Promise: "proof.md 13: Possession is today",
		Symbol: "page.(*Handler).hasSession", Old: "v.request.Terms.Level != verification.LevelSession", New: `v.request.ID == ""`,
		Suite: "page", Test: "TestSession_isNoneAtTheLevelPossession",
	},
	{
		Name: "page-cancels-by-a-look", Promise: "proof.md 17: a preview or a scanner changes nothing",
		Symbol: "page.(*Handler).operationOf", Old: "return h.serveCancel, http.MethodPost", New: "return h.serveCancel, http.MethodGet",
		Suite: "page", Test: "TestSession_cancelEnds",
	},
	{
		Name: "page-progress-without-the-proof", Promise: "proof.md 12: a replica that learns late sets nothing back",
		Symbol: "page.progressOf", Old: "progress++", New: "_ = progress",
		Suite: "page", Test: "TestProgressOf_neverFalls",
	},
	{
		Name: "page-names-the-messenger-of-init", Promise: "proof.md 12: states name their messenger",
		Symbol: "page.methodOf", Old: " || r.IsProven()", New: "",
		Suite: "page", Test: "TestSession_namesTheMessengerOfTheProof",
	},
	{
		Name: "page-ends-before-the-request", Promise: "proof.md 13: what was proven in the last two minutes may be confirmed for two minutes more",
		Symbol: "page.nextCheck", Old: "r.EndsAt()", New: "r.ExpiresAt",
		Suite: "page", Test: "TestSession_lastsAsLong",
	},
	{
		Name: "page-forms-lead-nowhere", Promise: "proof.md 13: digits are typed into the page, which then redirects",
		Symbol: "page.(*Handler).newView", Old: "formTargets(s.Page)", New: `[]string{"'self'"}`,
		Suite: "page", Test: "TestSession_formsLeadWhere",
	},
	{
		Name: "page-loads-while-the-user-types", Promise: "proof.md 12: it works without a script",
		Symbol: "view.(*document).writeHead", Old: "case v.isFinal(), d.asksDigits():", New: "case v.isFinal():",
		Suite: "page view", Test: "TestRender_asksForDigits",
	},
	{
		Name: "page-sends-a-form-again", Promise: "proof.md 17: digits have five tries in all",
		Symbol: "view.(*document).writeHead", Old: "case v.Answer:", New: "case v.Answer && v.PageURL == \"\":",
		Suite: "page view", Test: "TestRender_doesNotSendAFormAgain",
	},
	{
		Name: "page-without-cancel", Promise: "proof.md 13: decline in an equal place",
		Symbol: "view.(*document).writeCancel", Old: "!v.Session || v.isFinal()", New: "!v.Session || v.State == Ready || v.isFinal()",
		Suite: "page view", Test: "TestRender_cancelsWhatIsPending",
	},
}
