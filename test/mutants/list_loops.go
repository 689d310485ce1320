package main

// loopMutants break what advances requests, who may do so, and by which clock.
var loopMutants = []Mutant{
	{
		Name: "sent-by-what-was-remembered", Promise: "docs/adr/0006-live-read-before-sending.md: what is sent was read live",
		Symbol: "request.(*Controller).deliverEvent", Old: "if !v.isFresh(c.Clock.Now()) {", New: "if false {",
		Suite: "requests", Test: "TestReconcile_asksTheStoreAfresh|TestClaims_areReadAgain",
	},
	{
		Name:    "unrecorded-attempts-forgotten-with-the-term",
		Promise: "docs/architecture.md#the-loops: a term begins with the attempts that could not be recorded before",
		Symbol:  "server.newTermLoops", Old: "return o.Request.Run(", New: "return request.New(o.Request.Options).Run(",
		Suite: "server", Test: "TestTerm_recordsWhatTheTermBeforeCouldNot",
	},
	{
		Name: "sending-without-the-epoch", Promise: "docs/faults.md: what an older claim began is not sent",
		Symbol: "request.(*Controller).readIfDue", Old: "item.Claimed && r.Epoch != item.Epoch", New: "false",
		Suite: "requests", Test: "TestReconcile_|TestClaims_",
	},
	{
		Name: "attempt-lost-with-the-term", Promise: "docs/reliability.md#what-holds: what was sent is recorded",
		Symbol: "request.(*Controller).recordAttempt",
		Old:    "context.WithTimeout(context.WithoutCancel(ctx), RecordTimeout)",
		New:    "context.WithTimeout(ctx, RecordTimeout)",
		Suite:  "requests", Test: "TestReconcile_recordsAnAttemptAfterTheEnd",
	},
	{
		Name: "attempt-lost-with-a-failing-store", Promise: "docs/reliability.md#what-holds: what was sent is recorded",
		Symbol: "request.(*Controller).deliverEvent", Old: "c.unsaved.put(item.ID, attempt)", New: "",
		Suite: "requests", Test: "TestReconcile_anAttempt",
	},
	{
		Name: "attempt-forgotten-with-its-claim", Promise: "docs/reliability.md#what-holds: what was sent is recorded",
		Symbol: "request.(*Controller).recordAttempt",
		Old:    "case errors.Is(err, verification.ErrLeaseLost):",
		New:    "case errors.Is(err, verification.ErrLeaseLost):\n\t\tc.unsaved.drop(id)",
		Suite:  "requests", Test: "TestReconcile_anAttempt",
	},
	{
		Name: "claim-outlives-its-record", Promise: "docs/requests.md#redeliver: one worker makes the attempt that follows",
		Symbol: "request.(*Controller).deliverEvent", Old: "err == nil && item.Claimed", New: "false",
		Suite: "requests", Test: "TestReconcile_aClaimEndsWithItsRecord",
	},
	{
		Name:    "panic-in-a-reconcile-ends-the-process",
		Promise: "docs/security.md#threats-and-what-stands-against-them: content that passes the bounds affects itself alone",
		Symbol:  "request.(*Controller).Run", Old: "RecoverPanic: new(true)", New: "RecoverPanic: new(false)",
		Suite: "requests", Test: "TestRun_aPanic",
	},
	{
		Name: "failing-store-skips", Promise: "docs/reliability.md#what-holds: every event is delivered, or given up by the schedule",
		Symbol: "request.(*Controller).Reconcile",
		Old:    "errors.Is(err, verification.ErrContent) && c.refusals.add(item.ID) >= maxRefusals",
		New:    "c.refusals.add(item.ID) >= maxRefusals",
		Suite:  "requests", Test: "TestReconcile_neverSkips",
	},
	{
		Name: "redelivery-not-persisted", Promise: "docs/requests.md#redeliver: a redelivery is one, whichever replica leads",
		Symbol: "request.(*RedeliveryController).reconcileOnce",
		Old:    "if err := c.Observed(ctx, mark); err != nil {",
		New:    "if err := ctx.Err(); err != nil {",
		Suite:  "requests", Test: "TestRedelivery_isGrantedOnce",
	},
	{
		Name: "lease-given-up-before-its-work-ended", Promise: "docs/architecture.md#the-loops: terms follow one another",
		Symbol: "leader.(*term).electionContext", Old: "if t.running == nil {", New: "if true {",
		Suite: "lease", Test: "TestElector_keepsTheLease",
	},
	{
		Name:    "renewal-noted-at-the-end-of-the-write",
		Promise: "docs/architecture.md#the-loops: an event is sent only while the lease is firm",
		Symbol:  "leader.(*watchedLock).recordRenewal", Old: "l.renewed = asked", New: "_, l.renewed = asked, time.Now()",
		Suite: "lease", Test: "TestElector_holdsSafely",
	},
	{
		Name: "lease-firm-after-it-was-lost", Promise: "docs/architecture.md#the-loops: an event is sent only while the lease is firm",
		Symbol: "leader.(*watchedLock).clearRenewal", Old: "l.renewed = time.Time{}", New: "",
		Suite: "lease", Test: "TestElector",
	},
	{
		Name: "sender-without-its-gate", Promise: "docs/architecture.md#the-loops: an event is sent only while the lease is firm",
		Symbol: "server.(*server).newRequestLoop",
		Old:    "MaySend: maySend,",
		New:    "MaySend: func() bool { return maySend() || true },",
		Suite:  "server", Test: "TestRequestLoop_sendsOnlyThroughItsGate",
	},
	{
		Name:    "sent-though-the-lease-was-lost-in-the-dial",
		Promise: "docs/architecture.md#the-loops: an event is sent only while the lease is firm",
		Symbol:  "webhook.(*gatedReader).Read", Old: "if !r.message.maySend() {", New: "if false {",
		Suite: "webhook", Test: "TestSend_leaseLostDuringTheDial",
	},
	{
		Name: "store-clock-unheeded", Promise: "docs/adr/0013-the-time-is-the-stores.md: what compares with a stored time goes by the store",
		Symbol: "server.(*storeClock).Now", Old: "c.Clock.Now().Add(c.Offset())", New: "c.Clock.Now()",
		Suite: "server", Test: "TestStoreClock",
	},
	{
		Name:    "loops-on-the-machines-clock",
		Promise: "docs/adr/0013-the-time-is-the-stores.md: what compares with a stored time goes by the store",
		Symbol:  "server.(*server).newRequestLoop",
		Old:     "ClaimLease: s.options.ClaimLease, Clock: s.clock,",
		New:     "ClaimLease: s.options.ClaimLease, Clock: s.dependencies.Clock,",
		Suite:   "server", Test: "TestRequestLoop_goesByTheStoreClock",
	},
	{
		Name: "front-ends-with-what-is-behind-it", Promise: "docs/faults.md: replicas are replaced, and no request fails",
		Symbol: "server.RunBehind", Old: "context.WithCancel(context.WithoutCancel(ctx))", New: "context.WithCancel(ctx)",
		Suite: "server", Test: "TestRunBehind_endsTheFrontFirst",
	},
	{
		Name: "notification-lost-while-one-waits", Promise: "docs/errors.md#status: a wait ends when the status changes",
		Symbol: "verification.(*Notifier).Subscribe", Old: "make(chan struct{}, 1)", New: "make(chan struct{})",
		Suite: "domain", Test: "TestNotifier",
	},
}

// inboundMutants lose what messengers bring, or say too much of it.
var inboundMutants = []Mutant{
	{
		Name:    "telegram-acknowledged-before-stored",
		Promise: "docs/reliability.md#what-holds: a 200 to a messenger means that what its messages prove is stored",
		Symbol:  "telegram.(*Channel).receiveRequest",
		Old:     "c.refuseRequest(w, http.StatusServiceUnavailable, messenger.RequestFailed)",
		New:     "c.acknowledgeRequest(w, messenger.RequestAccepted)",
		Suite:   "telegram", Test: "TestHook_notAcknowledged",
	},
	{
		Name:    "whatsapp-acknowledged-before-stored",
		Promise: "docs/reliability.md#what-holds: a 200 to a messenger means that what its messages prove is stored",
		Symbol:  "whatsapp.(*Hook).receiveWebhook",
		Old:     "return requestRedelivery(w, messenger.RequestFailed)",
		New:     "w.WriteHeader(http.StatusOK)\n\t\treturn messenger.RequestFailed",
		Suite:   "whatsapp", Test: "TestHook_storeDown",
	},
	{
		Name: "store-failure-taken-for-unknown", Promise: "docs/reliability.md#what-holds: while the store cannot commit, the answer is 503",
		Symbol: "verification.(*Service).applyTransition",
		Old:    `return Receipt{}, fmt.Errorf("apply message: %w", err)`,
		New:    "_ = fmt.Sprint(err)\n\t\treturn Receipt{Outcome: OutcomeUnknown}, nil",
		Suite:  "domain", Test: "TestReceive_withTheStoreDown",
	},
	{
		Name:    "telegram-offset-before-the-store",
		Promise: "docs/channels.md#polling: a message is confirmed once it and all before it are stored",
		Symbol:  "telegram.(*Poller).confirmUpdates", Old: "inFront = inFront && u.done", New: "",
		Suite: "telegram", Test: "TestPoll",
	},
	{
		Name:    "polls-the-token-of-another-bot",
		Promise: "docs/channels.md#polling: before the first fetch the token is known to be that of the bot",
		Symbol:  "callback.(*polling).isAllowed",
		Old:     "&& bytes.Equal(p.account.BotToken.Current(), account.BotToken.Current())",
		New:     "&& account != nil && !bytes.Equal(nil, []byte{1, 2})",
		Suite:   "callbacks", Test: "TestPolling_onlyTheBotsOwnToken",
	},
	{
		Name: "replies-lost-at-the-end", Promise: "docs/faults.md: replicas are replaced, and nothing is lost",
		Symbol: "messenger.(*ReplyQueue).sendReplies", Old: `case reply := <-q.waiting:
				q.sendWithTimeout(ending, reply)
			default:
				return`, New: `default:
				return`,
		Suite: "replies", Test: "TestReplyQueue_sendsWhatWaits",
	},
}

// chaosMutants break promises between correct parts of the system.
var chaosMutants = []Mutant{
	{
		Name: "chaos-acknowledged-before-the-commit", Promise: "docs/reliability.md#see-it: I1",
		Symbol: "postgres.(*creationBatch).writeAdmitted", Old: "batch.Queue(sqlCommit)",
		New: "for _, call := range admitted {\n\t\tselect {\n\t\tcase call.done <- struct{}{}:\n\t\tdefault:\n\t\t}\n\t}\n" +
			"\tbatch.Queue(sqlCommit)",
		Suite: "chaos", Test: `^ *I1 `,
	},
	{
		Name: "chaos-every-fourth-event-twice", Promise: "docs/reliability.md#see-it: I5",
		Symbol: "webhook.(*Sender).Send", Old: "return s.runAttempt(",
		New: "if e.id[4]%4 == 0 {\n\t\t_, _ = s.sendMessage(ctx, transport, d.timeout, " +
			"&message{url: u, header: headers, body: e.body.Reveal(), maySend: s.maySend})\n\t}\n\treturn s.runAttempt(",
		Suite: "chaos", Test: `^ *I5 `,
	},
	{
		Name: "chaos-sent-again-after-its-record", Promise: "docs/reliability.md#see-it: I6",
		Symbol: "request.(*Controller).deliverEvent", Old: "return view{Request: r}, wait, err",
		New: "if err == nil && attempt.Delivered && item.ID[5]%10 == 0 {\n\t\tagain := context.WithoutCancel(ctx)\n" +
			"\t\ttime.AfterFunc(2*time.Second, func() { _, _ = c.Sender.Send(again, to, event) })\n\t}\n" +
			"\treturn view{Request: r}, wait, err",
		Suite: "chaos", Test: `^ *I6 `,
	},
	{
		Name: "chaos-number-of-a-neighbour", Promise: "docs/reliability.md#see-it: I1p",
		Symbol: "postgres.(*Store).updateAll", Old: "s.queueUpdate(batch, call)",
		New: "if first := calls[0].in.after.Actual; !first.IsZero() && call.in.before.Phase == verification.Pending &&\n" +
			"\t\t\t\t!call.in.after.Actual.IsZero() {\n\t\t\t\tcall.in.after.Actual = first\n\t\t\t}\n\t\t\ts.queueUpdate(batch, call)",
		Suite: "chaos", Test: `^ *I1p `,
	},
	{
		Name: "chaos-proof-lost-by-a-confirmation", Promise: "docs/reliability.md#see-it: I10",
		Symbol: "verification.(*Request).checkConfirmation", Old: "case !r.IsProven():", New: "case !r.IsProven() || r.ID[5] == 'a':",
		Suite: "chaos", Test: `^ *I10 `,
	},
	{
		Name: "chaos-message-verifies-at-level-session", Promise: "docs/reliability.md#see-it: I1p",
		Symbol: "verification.(*Request).acceptProof", Old: "if r.Terms.Level == LevelSession {",
		New: "if r.Terms.Level == LevelSession && r.ID[5] != 'a' {", Suite: "chaos", Test: `^ *I1p `,
	},
}
