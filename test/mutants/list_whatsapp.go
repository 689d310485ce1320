package main

// whatsappAccountMutants break what follows from WhatsApp's prices and subscriptions.
//
//nolint:gochecknoglobals // a table
var whatsappAccountMutants = []Mutant{
	{
		Name: "replies-success-answered-on-trouble", Promise: "platforms.md 1: OnTrouble suppresses the reply to success",
		Symbol: "messenger.allowsReply", Old: "o != OutcomeVerified", New: "o != OutcomeNoCode",
		Suite: "replies", Test: "TestReplier_policyOf",
	},
	{
		Name: "replies-suppressed-uncounted", Promise: "platforms.md 1: suppressed replies are counted",
		Symbol: "messenger.(*Replier).PolicyOf", Old: "r.countReply(ReplySuppressed)", New: "",
		Suite: "replies", Test: "TestReplier_policyOf",
	},
	{
		Name: "whatsapp-refused-tap-answered-always", Promise: "platforms.md 1: Never suppresses every outcome reply",
		Symbol: "whatsapp.(*delivery).refuseTap", Old: "!= messenger.NoReply", New: "!= messenger.ReplyToStranger",
		Suite: "whatsapp", Test: "TestHook_sendPolicy",
	},
	{
		Name: "whatsapp-billed-at-each-status", Promise: "platforms.md 1: billed messages are counted once",
		Symbol: "whatsapp.(*statusCounter).countStatus", Old: "billed && c.counted.TryStart(now, statusDelivered, s.ID)", New: "billed",
		Suite: "whatsapp", Test: "TestHook_billedMessages",
	},
	{
		Name: "whatsapp-free-messages-billed", Promise: "platforms.md 1: what Meta bills is counted",
		Symbol: "whatsapp.(*status).billedCategory",
		Old:    `case "false": return "", false`, New: `case "false": return knownCategory(p.Category), true`,
		Suite: "whatsapp", Test: "TestHook_billedMessages",
	},
	{
		Name: "whatsapp-odd-status-spoils-others", Promise: "hazards.md A13: a poison affects only itself",
		Symbol: "whatsapp.decodeStatuses", Old: "if json.Unmarshal(raw, &s) == nil {", New: "if json.Unmarshal(raw, &s) != nil { break } else {",
		Suite: "whatsapp", Test: "TestDecode_odd",
	},
	{
		Name: "callback-subscribes-what-is-by-hand", Promise: "platforms.md 1: nothing is subscribed without registerWebhook",
		Symbol: "callback.decideSubscription", Old: "case p.byHand:", New: "case false:",
		Suite: "callbacks", Test: "TestDecideSubscription|TestSubscription_byHand",
	},
	{
		Name: "callback-unchecked-subscription-is-unready", Promise: "platforms.md 1: what cannot be checked makes no project unready",
		Symbol: "callback.decideSubscription", Old: "return do, trueVerdict(", New: "return do, falseVerdict(",
		Suite: "callbacks", Test: "TestSubscription_unchecked",
	},
	{
		Name: "callback-any-app-is-ours", Promise: "platforms.md 1: the app of the token is subscribed",
		Symbol: "callback.includesApp", Old: `appID == "" && len(apps) > 0`, New: "len(apps) > 0",
		Suite: "callbacks", Test: "TestGraph_readSubscription",
	},
	{
		Name: "callback-subscription-asked-too-early", Promise: "design.md 5: never before the platform allows",
		Symbol: "callback.(*Controller).checkSubscription", Old: "max(retryAfter(m.failures), found.wait)", New: "retryAfter(m.failures)",
		Suite: "callbacks", Test: "TestSubscription_unanswered",
	},
	{
		Name: "silence-judged-by-what-is-not-stored", Promise: "platforms.md 1: Silent is true",
		Symbol: "projectstatus.(*silence).judgeSilence", Old: "now.Sub(s.began) >= silentAfter-retention", New: "true",
		Suite: "status", Test: "TestSilence_judge",
	},
	{
		Name: "silence-by-one-request", Promise: "platforms.md 1: Silent is true",
		Symbol: "projectstatus.expiriesToReport", Old: "= 3", New: "= 2",
		Suite: "status", Test: "TestSilence_judge",
	},
	{
		Name: "heard-without-contacts", Promise: "platforms.md 1: a bound sender is a sign of a message",
		Symbol: "verification.(*Request).HeardAt", Old: "c.BoundAt.After(heard)", New: "false",
		Suite: "domain", Test: "TestRequest_heardAt|TestActivity",
	},
	{
		Name: "postgres-activity-of-all-projects", Promise: "design.md 4: projects are apart",
		Symbol: "postgres.sqlActivity", Old: "WHERE project = $1 AND work = 3 AND", New: "WHERE $1 <> '' AND work = 3 AND",
		Suite: "postgres", Test: "Activity reads neither",
	},
	{
		Name: "whatsapp-each-refusal-answered", Promise: "proof.md 11: a refused message is answered with the write that stores its hint",
		Symbol: "whatsapp.(*delivery).replyToRefusal", Old: "receipt.Hinted && ", New: "",
		Suite: "whatsapp", Test: "TestRefused_texts|TestRefused_junk",
	},
	{
		Name: "session-codes-not-sent-again", Promise: "proof.md 13: if the reply cannot be sent: 5xx, the platform delivers again",
		Symbol: "whatsapp.(*delivery).sendPrompt", Old: "d.hook.prompted.Undo(question, requestID)", New: "",
		Suite: "whatsapp", Test: "TestSession_replyFails",
	},
	{
		Name: "session-codes-at-every-copy", Promise: "proof.md 13: copies at one replica are answered once",
		Symbol: "whatsapp.(*delivery).giveSessionCodes", Old: "d.sendPrompt(ctx, button.ID, r.ID,", New: "d.sendPrompt(ctx, newNonce(), r.ID,",
		Suite: "whatsapp", Test: "TestSession_replyFails|TestSession_again",
	},
	{
		Name: "session-not-me-with-any-token", Promise: "proof.md 13: only a tap on the button below the codes counts",
		Symbol: "whatsapp.(*delivery).receiveNotMe", Old: "if !d.isNotMeToken(tap, from, r.CreatedAt) {", New: "if d == nil {",
		Suite: "whatsapp", Test: "TestSession_notMeBy",
	},
	{
		Name: "session-not-me-of-any-number-by-user-id", Promise: "proof.md 13: Not me by the proven sender",
		Symbol: "whatsapp.(*delivery).receiveNotMe",
		Old:    "return phone.Same(r.Actual, from.number)",
		New:    "return phone.Same(r.Actual, from.number) || r.Actual != from.number",
		Suite:  "whatsapp", Test: "TestSession_notMeByTheProverAlone",
	},
	{
		Name: "session-not-me-of-an-unbound-sender", Promise: "proof.md 13: Not me by the proven sender",
		Symbol: "whatsapp.(*delivery).receiveNotMe", Old: "return !r.BoundAt(binding).IsZero()", New: "return r.BoundAt(binding).IsZero()",
		Suite: "whatsapp", Test: "TestSession_notMeByTheProverAlone",
	},
	{
		Name: "session-button-of-an-earlier-request", Promise: "proof.md 13: a button counts for its own request",
		Symbol: "whatsapp.notMeToken", Old: "strconv.FormatInt(createdAt.UnixMicro(), 10)", New: "strconv.FormatInt(createdAt.UnixMicro()*0, 10)",
		Suite: "whatsapp", Test: "TestNotMeToken",
	},
	{
		Name: "session-button-of-another-prover", Promise: "proof.md 13: Not me by the proven sender",
		Symbol: "whatsapp.notMeToken", Old: "proverKey +", New: "proverKey[:0] +",
		Suite: "whatsapp", Test: "TestNotMeToken|TestSession_notMeBy",
	},
	{
		Name: "session-button-of-a-former-secret", Promise: "design.md 7: both secrets count during the rotation",
		Symbol: "whatsapp.(*delivery).isNotMeToken", Old: "AppSecret.Accepted(d.now) {", New: "AppSecret.Accepted(d.now)[:1] {",
		Suite: "whatsapp", Test: "TestSession_rotatedSecret",
	},
	{
		Name: "session-not-me-too-late-unanswered-on-trouble", Promise: "proof.md 13: Not me after VERIFIED says what to do",
		Symbol: "whatsapp.(*delivery).replyTooLateToDecline",
		Old:    "PolicyOf(d.settings.Replies.Send, messenger.OutcomeDeclined, from.sentAt)",
		New:    "PolicyOf(d.settings.Replies.Send, messenger.OutcomeVerified, from.sentAt)",
		Suite:  "whatsapp", Test: "TestSession_notMeTooLate",
	},
	{
		Name: "session-link-to-anywhere", Promise: "proof.md 17 B5: the return link is for URLs that the page allows",
		Symbol: "settings.(*Settings).SessionMessage", Old: "s.Page.AllowsReturn(r.ReturnURL)", New: "r.ReturnURL != \"\"",
		Suite: "settings", Test: "TestSessionMessage",
	},
	{
		Name: "session-message-too-long", Promise: "proof.md 13: the code and the warning are never cut",
		Symbol: "settings.(*Settings).SessionMessage",
		Old:    "utf8.RuneCountInString(text) > characters",
		New:    "utf8.RuneCountInString(text) > characters+1000",
		Suite:  "settings", Test: "TestSessionMessage",
	},
	{
		Name: "declined-counted-at-each-copy", Promise: "proof.md 13: a request is declined once",
		Symbol: "verification.(*Service).applyTransition", Old: "if changed {", New: "if id != \"\" {",
		Suite: "domain", Test: "TestDeclineProven_isCountedOnce",
	},
	{
		Name: "not-me-taken-away-by-an-end", Promise: "proof.md 13: Not me by the proven sender cools the number down",
		Symbol: "verification.(*Request).DeclineProven", Old: "case !r.DeclinedAt().IsZero():",
		New:   "case !r.DeclinedAt().IsZero() || r.Phase == Expired:",
		Suite: "domain", Test: "TestDeclineProven_afterItsEnd",
	},
}
