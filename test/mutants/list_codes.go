package main

// codeMutants send a code twice, too early or for a number that no one may learn about, or take digits that they must not.
var codeMutants = []Mutant{
	{
		Name: "code-sent-by-a-retry", Promise: "docs/reliability.md#see-it: C2",
		Symbol: "verification.(*Service).createAndSend", Old: "if !created.Existing {", New: "if n.ID != \"\" {",
		Suite: "domain", Test: "TestInitiate_sendsOnceForItsOwnCreate",
	},
	{
		Name: "code-sent-before-its-commit", Promise: "docs/reliability.md#see-it: C1",
		Symbol: "verification.(*Service).createAndSend", Old: "created, err := s.store.Create(ctx, n, limits)",
		New:   "slot.StartSending(NewRequest(n, time.Now()))\n\tslot = noSlot{}\n\tcreated, err := s.store.Create(ctx, n, limits)",
		Suite: "domain", Test: "TestInitiate_sends",
	},
	{
		Name: "code-sent-again-by-the-client", Promise: "docs/reliability.md#see-it: C2",
		Symbol: "whatsapp.(*Client).sendTemplate", Old: "if err != nil || len(answer.Contacts) != 1 {",
		New: "if err != nil {\n\t\terr = c.callGraph(ctx, account, call{operation: sendCode, method: http.MethodPost, path: \"/messages\", body: m}, &answer)\n\t}\n" +
			"\tif err != nil || len(answer.Contacts) != 1 {",
		Suite: "whatsapp", Test: "TestSendTemplate_isNeverRetried",
	},
	{
		Name: "code-tries-of-the-page-apart", Promise: "docs/security.md#what-holds-at-which-level: three tries in all, on the page and in confirm",
		Symbol: "verification.(*Request).CheckSessionCode", Old: "r.countWrongCode(now, wanted)",
		New:   "if !r.DeliversCode() {\n\t\tr.countWrongCode(now, wanted)\n\t}",
		Suite: "domain", Test: "TestDelivered_threeTriesInAll",
	},
	{
		Name: "code-tries-of-each-ticket", Promise: "docs/security.md#what-holds-at-which-level: three tries in all, on the page and in confirm",
		Symbol: "page.(*Handler).serveConfirm", Old: "ctx, cancel := storeContext(v)",
		New: "if _, known := h.checking.LoadOrStore(v.path, nil); !known && v.request.DeliversCode() {\n" +
			"\t\th.answerForm(v, http.StatusUnprocessableEntity, view.WrongDigits)\n\t\treturn\n\t}\n\tctx, cancel := storeContext(v)",
		Suite: "page more", Test: "TestCode_newTicketKeepsTries",
	},
	{
		Name: "code-five-tries", Promise: "docs/security.md#what-holds-at-which-level: three tries in all for a request",
		Symbol: "verification.(*Request).MaxTries", Old: "return MaxDeliveredTries", New: "return MaxConfirmTries",
		Suite: "domain more", Test: "TestDelivered_threeTriesInAll",
	},
	{
		Name: "code-tries-stop-at-one", Promise: "docs/security.md#what-holds-at-which-level: three tries in all for a request",
		Symbol: "verification.(*Request).countWrongCode", Old: "r.WrongCodes++", New: "r.WrongCodes = max(r.WrongCodes, 1)",
		Suite: "domain more", Test: "TestDelivered_threeTriesInAll",
	},
	{
		Name: "code-chat-digits-before-the-proof", Promise: "docs/security.md#what-holds-at-which-level: the chat's digits before a message proved the number",
		Symbol: "verification.CodeSpace.matchCode", Old: "case entered.kind != kindDelivered && !r.IsProven(), ", New: "case ",
		Suite: "domain", Test: "TestDelivered_chatDigitsBeforeProof",
	},
	{
		Name: "code-of-three-digits", Promise: "docs/security.md#what-holds-at-which-level: 3 in 100,000,000 for each code",
		Symbol: "verification.NewCodeSpace", Old: "deliveredDigits: deliveredDigits", New: "deliveredDigits: 3",
		Suite: "domain more", Test: "TestDelivered|TestSessionCodes",
	},
	{
		Name: "code-that-went-astray", Promise: "docs/security.md#what-holds-at-which-level: a code that the messenger sent to another number",
		Symbol: "verification.CodeSpace.matchCode", Old: "found == 0 || isAstray ", New: "found == 0 || isAstray && r.ID == \"\" ",
		Suite: "domain more", Test: "TestDelivered_otherNumberNeverConfirms",
	},
	{
		Name: "code-not-in-the-idempotency-key", Promise: "docs/security.md#what-holds-at-which-level: a second code by a retry",
		Symbol: "verification.bodyHash", Old: "Deliver: terms.Deliver,", New: "",
		Suite: "domain more", Test: "TestBodyHash_deliver",
	},
	{
		Name: "delivery-that-clients-find", Promise: "docs/security.md#what-holds-at-which-level: a delivery that verifies a number",
		Symbol: "verification.(*Request).IsVisibleTo", Old: " && !r.IsDelivery()", New: "",
		Suite: "domain", Test: "TestDelivery_nothingFindsIt",
	},
	{
		Name: "delivery-code-without-the-key", Promise: "docs/security.md#what-holds-at-which-level: an identity server's code in a store",
		Symbol: "verification.CodeSpace.fingerprintOf", Old: "in.KeyHash[:]", New: "space.key[:]",
		Suite: "domain", Test: "TestDelivery_hidesTheCode",
	},
	{
		Name: "delivery-as-an-oracle", Promise: "docs/security.md#what-holds-at-which-level: guessing an identity server's code",
		Symbol: "httpapi.(*exchange).limitDeliveries", Old: "if in.Test || ", New: "if !in.Test || ",
		Suite: "http api", Test: "TestDeliver_isNoOracle",
	},
	{
		Name: "old-message-for-each-key", Promise: "docs/security.md#codes-that-come-back: a message of before the request",
		Symbol: "verification.bodyHash", Old: "onceKey.MatchString(in.IdempotencyKey)", New: `in.IdempotencyKey != ""`,
		Suite: "domain", Test: "TestReceive_aMessengerThatIsBehind",
	},
	{
		Name: "code-shows-who-has-whatsapp", Promise: "docs/security.md#what-holds-at-which-level: learning who has WhatsApp",
		Symbol: "whatsapp.notSentReasons", Old: `131042: "payment",`, New: `131042: "payment", codeUndeliverable: "undeliverable",`,
		Suite: "whatsapp", Test: "TestJudgeCode",
	},
	{
		Name: "code-unknown-as-sent", Promise: "docs/reliability.md#see-it: C3",
		Symbol: "whatsapp.judgeCode", Old: "return verification.CodeResult{Reason: messenger.CodeNoAnswer}",
		New:   "return verification.CodeResult{State: verification.CodeSent, Reason: messenger.CodeNoAnswer}",
		Suite: "whatsapp", Test: "TestJudgeCode",
	},
	{
		Name:    "code-status-frees-an-echo",
		Promise: "docs/security.md#threats-and-what-stands-against-them: one question per number and day",
		Symbol:  "whatsapp.(*batch).receiveStatus", Old: "err = b.receiveCodeStatus(ctx, s, reference)",
		New:   "err = errors.Join(b.receiveCodeStatus(ctx, s, reference), b.receiveMessageStatus(ctx, s))",
		Suite: "whatsapp", Test: "TestStatuses_codeTouchesNoOtherCounts",
	},
	{
		Name: "code-evicted-by-links", Promise: "docs/security.md#what-holds-at-which-level: pumping",
		Symbol: "verification.(*Request).afterRest", Old: "r.DeliversCode() && !r.Test", New: "r.DeliversCode() && r.Test",
		Suite: "memory", Test: "keep a request with a code for a day",
	},
	{
		Name: "code-counted-for-each-form-of-a-number", Promise: "docs/security.md#what-holds-at-which-level: in whatever form it is written",
		Symbol: "verification.(*Admissions).addCodeWaits", Old: "phone.Canonical(c.Phone)", New: "phone.Number(c.Phone)",
		Suite: "memory", Test: "send a number one code a minute",
	},
	{
		Name: "code-share-of-all-keys", Promise: "docs/security.md#what-holds-at-which-level: a key its share of maxPerDay",
		Symbol: "v1alpha1.(*VerificationProjectSpec).EffectiveCodeShare", Old: "s.countDeliverKeys()", New: "1",
		Suite: "settings", Test: "TestFromProject_codes",
	},
	{
		Name: "code-of-telegram-is-whatsapps", Promise: "docs/security.md#what-holds-at-which-level: each kind is derived for a purpose of its own",
		Symbol: "verification.CodeSpace.DeliveredCode", Old: "purpose = purposeGateway", New: "purpose = purposeDelivered",
		Suite: "domain more", Test: "TestDelivered_hasAPurposeOfItsOwn",
	},
	{
		Name: "code-of-telegram-is-the-chats", Promise: "docs/security.md#what-holds-at-which-level: each kind is derived for a purpose of its own",
		Symbol: "verification.CodeSpace.DeliveredCode", Old: "binary.BigEndian.Uint64(space.deriveBytes(secret, r, purpose)) % codes",
		New:   "binary.BigEndian.Uint64(space.deriveBytes(secret, r, map[Method]string{WhatsApp: purpose, Telegram: purposeDigits}[r.Method])) % codes",
		Suite: "domain more", Test: "TestDelivered_hasAPurposeOfItsOwn",
	},
	{
		Name: "code-shows-who-has-telegram", Promise: "docs/security.md#what-holds-at-which-level: learning who has WhatsApp or Telegram",
		Symbol: "telegram.judgeGateway", Old: "failure.Class == messenger.CallCredentials:",
		New:   "failure.Class == messenger.CallCredentials || reasonOf(failure.Code) == GatewayBalance:",
		Suite: "telegram", Test: "TestGateway_results",
	},
	{
		Name: "code-through-telegram-checked-twice", Promise: "docs/channels.md#codes-through-telegram: one question about it",
		Symbol: "telegram.(*Gateway).checkCode", Old: "delete(g.open, requestID)", New: "",
		Suite: "telegram", Test: "TestGateway_checksAfterRedemption",
	},
	{
		Name: "code-limits-of-both-messengers-in-one", Promise: "docs/channels.md#codes-through-telegram: each messenger's own",
		Symbol: "verification.Counted.codeGroups", Old: "{c.Method, c.KeyName}", New: "{WhatsApp, c.KeyName}",
		Suite: "memory", Test: "count the codes of each messenger apart",
	},
	{
		Name: "code-to-a-number-for-each-messenger", Promise: "docs/channels.md#codes-through-telegram: a number's count over both messengers",
		Symbol: "verification.(*Admissions).addCodeWaits", Old: "for _, rate := range codeNumberRates {",
		New:   "for _, rate := range codeNumberRates[:map[Method]int{Telegram: 3}[c.Method]] {",
		Suite: "memory", Test: "count the codes of each messenger apart",
	},
	{
		Name: "chaos-code-sent-by-a-retry", Promise: "docs/reliability.md#see-it: C2",
		Symbol: "verification.(*Service).createAndSend", Old: "if !created.Existing {", New: "if n.ID != \"\" {",
		Suite: "chaos codes", Test: `^ *C2 `,
	},
	{
		Name: "chaos-code-sent-before-its-commit", Promise: "docs/reliability.md#see-it: C1",
		Symbol: "postgres.(*creationBatch).writeAdmitted", Old: "batch.Queue(sqlCommit)",
		New: "for _, call := range admitted {\n\t\tselect {\n\t\tcase call.done <- struct{}{}:\n\t\tdefault:\n\t\t}\n\t}\n" +
			"\tbatch.Queue(sqlCommit)",
		Suite: "chaos codes", Test: `^ *C1 `,
	},
	{
		Name: "chaos-code-sent-again-by-the-client", Promise: "docs/reliability.md#see-it: C2",
		Symbol: "whatsapp.(*Client).sendTemplate", Old: "if err != nil || len(answer.Contacts) != 1 {",
		New: "if err != nil {\n\t\terr = c.callGraph(ctx, account, call{operation: sendCode, method: http.MethodPost, path: \"/messages\", body: m}, &answer)\n\t}\n" +
			"\tif err != nil || len(answer.Contacts) != 1 {",
		Suite: "chaos codes", Test: `^ *C2 `,
	},
}
