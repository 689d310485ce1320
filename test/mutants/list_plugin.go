package main

// pluginMutants break what kubectl phoneproof finds and hides, and the outcomes that it prints.
//
//nolint:gochecknoglobals // a table
var pluginMutants = []Mutant{
	{
		Name: "unsigned-post-counts-as-unauthorized", Promise: "proof.md 16: doctor tells a scanner's post from a message of Meta",
		Symbol: "whatsapp.(*Hook).receiveWebhook", Old: "return messenger.RequestUnsigned", New: "return messenger.RequestUnauthorized",
		Suite: "whatsapp", Test: "TestHook_countsUnsigned",
	},
	{
		Name: "doctor-believes-strangers", Promise: "proof.md 16: made-up signatures alone are no evidence about the app secret",
		Symbol: "doctor.findOtherAppSecret", Old: "|| counts.Started == 0", New: "",
		Suite: "doctor", Test: "TestAppSecret",
	},
	{
		Name: "doctor-believes-one-post", Promise: "proof.md 16: one made-up signature is no evidence about the app secret",
		Symbol: "doctor.findOtherAppSecret", Old: "counts.Refused < least", New: "counts.Refused == 0",
		Suite: "doctor", Test: "TestAppSecret",
	},
	{
		Name: "doctor-overlooks-accepted-posts", Promise: "proof.md 16: a message that was accepted shows that the app secret is right",
		Symbol: "doctor.findOtherAppSecret", Old: "counts.Accepted > 0 ||", New: "",
		Suite: "doctor", Test: "TestAppSecret",
	},
	{
		Name: "doctor-reads-counts-of-telegram", Promise: "proof.md 16: what arrives from Telegram says nothing about the app secret",
		Symbol: "doctor.parseCounts",
		Old:    `labels["method"] == string(verification.WhatsApp)`,
		New:    `labels["method"] <= string(verification.WhatsApp)`,
		Suite:  "doctor", Test: "TestParseCounts",
	},
	{
		Name: "doctor-finds-pods-that-start", Promise: "proof.md 16: a rollout that is under way is no finding",
		Symbol: "doctor.isNotReady", Old: "&& !isRecent(f, c.LastTransitionTime.Time)", New: "",
		Suite: "doctor", Test: "TestPods_",
	},
	{
		Name: "doctor-settles-by-its-own-clock", Promise: "proof.md 16: times of the cluster are judged by the cluster's clock",
		Symbol: "doctor.isRecent", Old: "f.Now.Add(-f.ServerOffset.Value).Sub(at)", New: "f.Now.Sub(at)",
		Suite: "doctor", Test: "TestPods_",
	},
	{
		Name: "doctor-prints-escapes", Promise: "proof.md 16: texts of others reach no terminal as they are",
		Symbol: "doctor.printable", Old: "unicode.IsGraphic(r) && !unicode.IsSpace(r)", New: "unicode.IsGraphic(r) || true",
		Suite: "doctor", Test: "TestPrintable",
	},
	{
		Name: "report-leaves-numbers-in-groups", Promise: "proof.md 16: report is a redacted support bundle",
		Symbol: "report.(*scrubber).scrub",
		Old:    "if group := s.takeDigits(token, rest); group > 0 {",
		New:    "if group := s.takeDigits(token, rest); group > 0 && false {",
		Suite:  "report", Test: "TestScrub",
	},
	{
		Name: "report-leaves-unknown-words", Promise: "proof.md 16: report is a redacted support bundle",
		Symbol: "report.(*scrubber).scrubToken", Old: `if part != "" && !s.isKnown(part) {`, New: `if part != "" && !s.isKnown(part) && false {`,
		Suite: "report", Test: "TestScrub",
	},
	{
		Name: "redelivery-says-the-former-outcome", Promise: "proof.md 16: redeliver says what became of this event",
		Symbol: "requests.findOutcome", Old: "e.Annotations[verifyv1.RedeliverAnnotation] == mark &&", New: "",
		Suite: "plugin", Test: "TestRedeliver_says",
	},
	{
		Name: "redelivery-without-waiting", Promise: "proof.md 16: redeliver waits for the holder of the lease",
		Symbol: "requests.annotate", Old: "return p.Project.Status.ObservedRedeliver == mark, nil", New: "return true, nil",
		Suite: "plugin", Test: "TestRedeliver_refuses",
	},
	{
		Name: "redelivery-event-without-its-mark", Promise: "proof.md 16: the Event of a redelivery names its annotation",
		Symbol: "request.(*RedeliveryController).reconcileOnce", Old: "c.Tell(project, mark,", New: `c.Tell(project, "",`,
		Suite: "requests", Test: "TestRedelivery_isGrantedOnce",
	},
	{
		Name: "watch-of-a-deleted-request", Promise: "proof.md 16: a watch of a request that is gone ends",
		Symbol: "requests.(*pages).Follow", Old: `last != ""`, New: "false",
		Suite: "plugin", Test: "TestRequests_watchByTheAPIEnds",
	},
	{
		Name: "skipped-requests-by-the-api", Promise: "proof.md 16: a command needs the rights that it declares, and no other",
		Symbol: "requests.newSkippedCommand", Old: "r.openObjects(", New: "r.open(",
		Suite: "plugin", Test: "TestRights/skipped_on_PostgreSQL",
	},
	{
		Name: "skipped-requests-with-undeclared-rights", Promise: "proof.md 16: a command declares the rights that it needs",
		Symbol: "requests.newSkippedCommand", Old: `, plugin.Right{Verbs: "list", Resource: plugin.ResourceRequests}`, New: "",
		Suite: "plugin", Test: "TestRights/skipped",
	},
	{
		Name: "rotation-drops-unknown-fields", Promise: "proof.md 16: rotate changes one API key and nothing else",
		Symbol: "rotate.newLockedPatch", Old: "if len(list) > 0 {", New: "if len(list) > 0 && false {",
		Suite: "plugin", Test: "TestRotate_apiKeyKeepsUnknownFields",
	},
	{
		Name: "rotation-of-another-spec", Promise: "proof.md 16: rotate changes the spec that it has read, or none",
		Symbol: "rotate.newLockedPatch",
		Old:    `append(operations{{Op: "test", Path: "/metadata/generation", Value: read.Generation}}, list...)`,
		New:    "operations(list)",
		Suite:  "plugin", Test: "TestRotate_apiKeyThatMoved",
	},
}
