package main

// whatsappAccountMutants break what follows from WhatsApp's prices and subscriptions.
//
//nolint:gochecknoglobals // a table
var whatsappAccountMutants = []Mutant{
	{
		Name: "replies-success-answered-on-trouble", Promise: "platforms.md 1: OnTrouble suppresses the reply to success",
		Symbol: "messenger.SendPolicy.allowsReply", Old: "o != OutcomeVerified", New: "o != OutcomeNoCode",
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
}
