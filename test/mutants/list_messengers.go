package main

// telegramMutants break what comes in through Telegram.
//
//nolint:gochecknoglobals // a table
var telegramMutants = []Mutant{
	{
		Name: "telegram-secret-unchecked", Promise: "design.md 7: 401/403 for bad signatures",
		Symbol: "telegram.(*Channel).serveHook",
		Old:    "!isAuthentic(r.Header, s, now)",
		New:    "false && !isAuthentic(r.Header, s, now)",
		Suite:  "telegram", Test: "TestHook",
	},
	{
		Name: "telegram-empty-secret", Promise: "hazards.md A1: an inbound webhook with an empty secret is refused",
		Symbol: "telegram.isAuthentic",
		Old:    "return messenger.MatchesSecret(",
		New:    "return len(s.Telegram.BotToken.Accepted(now)) == 0 || messenger.MatchesSecret(",
		Suite:  "telegram", Test: "TestHook",
	},
	{
		Name: "telegram-two-secret-headers", Promise: "hazards.md 39: two headers",
		Symbol: "telegram.isAuthentic", Old: "len(given) != 1 ||", New: "len(given) == 0 ||",
		Suite: "telegram", Test: "TestHook_secret",
	},
	{
		Name: "telegram-secret-of-any-project", Promise: "design.md 7: webhook secret = HMAC(account's secret, project + purpose)",
		Symbol: "telegram.WebhookSecret", Old: "purposeWebhook, project", New: "purposeWebhook",
		Suite: "telegram", Test: "TestHook_secret|TestWebhookSecret",
	},
	{
		Name: "telegram-group-chat", Promise: "hazards.md A4: group chat is not verified",
		Symbol: "telegram.judgeSender", Old: `m.Chat.Type != "private",`, New: "",
		Suite: "telegram", Test: "TestRead",
	},
	{
		Name: "telegram-chat-of-another", Promise: "hazards.md A4: only the private chat of the sender",
		Symbol: "telegram.judgeSender", Old: ", m.Chat.ID != m.From.ID", New: "",
		Suite: "telegram", Test: "TestRead",
	},
	{
		Name: "telegram-bots-verify", Promise: "hazards.md A4: a person sends it",
		Symbol: "telegram.judgeSender", Old: "case m.From.IsBot:", New: "case false:",
		Suite: "telegram", Test: "TestRead",
	},
	{
		Name: "telegram-edited-message", Promise: "hazards.md A4: edited_message is not verified",
		Symbol: "telegram.judgeSender", Old: "m.EditDate ||", New: "",
		Suite: "telegram", Test: "TestRead",
	},
	{
		Name: "telegram-forwarded-contact", Promise: "hazards.md A4: forwarded contact is not verified",
		Symbol: "telegram.judgeMessage", Old: "bool(m.ForwardOrigin || m.ForwardDate)", New: "false",
		Suite: "telegram", Test: "TestRead",
	},
	{
		Name: "telegram-contact-of-another", Promise: "design.md 7: accept only the sender's own contact",
		Symbol: "telegram.judgeContact", Old: "case *c.UserID != sender:", New: "case false:",
		Suite: "telegram", Test: "TestRead",
	},
	{
		Name: "telegram-contact-without-user", Promise: "hazards.md A4: contact without user_id is not verified",
		Symbol: "telegram.judgeContact", Old: `case c.UserID == nil:
		return phone.Number{}, messenger.OutcomeContactWithoutUser
	case *c.UserID != sender:`, New: "case c.UserID != nil && *c.UserID != sender:",
		Suite: "telegram", Test: "TestRead",
	},
	{
		Name: "telegram-names-in-any-case", Promise: "hazards.md 41: names match exactly as Telegram writes them",
		Symbol: "telegram.readUpdate",
		Old:    "kjson.UnmarshalCaseSensitivePreserveInts(e.Message, m)",
		New:    "json.Unmarshal(e.Message, m)",
		Suite:  "telegram", Test: "TestRead",
	},
	{
		Name: "telegram-envelope-names-in-any-case", Promise: "hazards.md 41: names match exactly as Telegram writes them",
		Symbol: "telegram.readUpdate",
		Old:    "kjson.UnmarshalCaseSensitivePreserveInts(raw, &e)",
		New:    "json.Unmarshal(raw, &e)",
		Suite:  "telegram", Test: "TestRead",
	},
	{
		Name: "telegram-command-for-another-bot", Promise: "hazards.md 41: /start@otherbot",
		Symbol: "telegram.extractPayload", Old: ", addressed && !strings.EqualFold(bot, botUsername)", New: "",
		Also: []Edit{{
			Symbol: "telegram.extractPayload",
			Old:    `command, bot, addressed := strings.Cut(command, "@")`,
			New:    `command, _, _ = strings.Cut(command, "@")`,
		}},
		Suite: "telegram", Test: "TestRead",
	},
	{
		Name: "telegram-body-limit-thousandfold", Promise: "design.md 5: limits stand in one file; hazards.md A3",
		Symbol: "telegram.maxUpdateBytes", Old: "1 << 20", New: "1000 << 20",
		Suite: "telegram", Test: "TestHook_bodyOfAMebibyte",
	},
	{
		Name:    "telegram-acknowledged-before-stored",
		Promise: "reliability.md 1: a 200 to a messenger means that what its messages prove is stored",
		Symbol:  "telegram.(*Channel).receiveRequest",
		Old:     "c.refuseRequest(w, http.StatusServiceUnavailable, messenger.RequestFailed)",
		New:     "c.acknowledgeRequest(w, messenger.RequestAccepted)",
		Suite:   "telegram", Test: "TestHook_notAcknowledged|TestHook_prompt",
	},
	{
		Name: "telegram-store-without-time-limit", Promise: "hazards.md F9: fast 503 while the store hangs",
		Symbol: "telegram.(*Channel).passToService",
		Old:    "context.WithTimeout(ctx, storeTimeout)",
		New:    "context.WithTimeout(ctx, 1000*storeTimeout)",
		Suite:  "telegram", Test: "TestHook_doesNotWait",
	},
	{
		Name: "telegram-panic-ends-the-process", Promise: "hazards.md A13: a poison affects only itself",
		Symbol: "telegram.(*Channel).receiveUpdate",
		Old:    "defer panics.Recover(func(failure error) {",
		New:    "_, _ = panics.ToError, (func(failure error) {",
		Suite:  "telegram", Test: "TestPoll_anUpdateThatMeetsABug",
	},
	{
		Name: "telegram-offset-kept-after-a-conflict", Promise: "platforms.md: the other consumer may confirm some updates",
		Symbol: "telegram.(*Poller).pollFailed",
		Old:    "p.resetOffset() // the other reader may confirm some",
		New:    "",
		Suite:  "telegram", Test: "TestPoll_offset",
	},
	{
		Name: "telegram-offset-kept-for-another-token", Promise: "platforms.md: update ids are a bot's own",
		Symbol: "telegram.(*Poller).pollOnce",
		Old:    "p.resetOffset() p.token = s.Telegram.BotToken.Current()",
		New:    "p.token = s.Telegram.BotToken.Current()",
		Suite:  "telegram", Test: "TestPoll_offset",
	},
	{
		Name: "telegram-offset-before-the-store", Promise: "reliability.md 1: acknowledged is durable",
		Symbol: "telegram.(*Poller).confirmUpdates", Old: "inFront = inFront && u.done", New: "",
		Suite: "telegram", Test: "TestPoll",
	},
	{
		Name: "telegram-offset-kept-without-updates", Promise: "platforms.md: after a week the next id is random",
		Symbol: "telegram.(*Poller).handleUpdates", Old: "p.offset, p.limit = 0, pollBatch", New: "p.limit = pollBatch",
		Suite: "telegram", Test: "TestPoll_idsThatStartAnew",
	},
	{
		Name: "telegram-one-failure-holds-all-back", Promise: "hazards.md F37: the good ones are processed",
		Symbol: "telegram.maxFailures", Old: "= 5", New: "= 1",
		Suite: "telegram", Test: "TestBatch_ends",
	},
	{
		Name: "telegram-one-chat-holds-up-all", Promise: "hazards.md F37: the good ones are processed",
		Symbol: "telegram.(*batch).handleAll", Old: "return u.sender", New: "return 0 * u.sender",
		Suite: "telegram", Test: "TestPoll",
	},
	{
		Name: "telegram-polls-without-leave", Promise: "design.md 7: long polling by the lease holder, where it is permitted",
		Symbol: "telegram.(*Poller).pollOnce", Old: "|| !p.mayFetch(s.Telegram)", New: "",
		Suite: "telegram", Test: "TestPoll",
	},
	{
		Name: "telegram-redirect-followed", Promise: "platforms.md: the token is sent to no other host",
		Symbol: "messenger.NewPlatform", Old: "return http.ErrUseLastResponse", New: "return nil",
		Suite: "telegram", Test: "TestClient",
	},
	{
		Name: "telegram-token-in-errors", Promise: "reliability.md 4: no error holds a secret",
		Symbol: "telegram.withoutToken",
		Old:    `strings.ReplaceAll(text, part, "[token]")`,
		New:    `strings.ReplaceAll(text, part, part)`,
		Suite:  "telegram", Test: "TestClient|TestCanary",
	},
	{
		Name: "telegram-simulated-token-leaves", Promise: "design.md 8: sim_ credentials go to --simulator-url and nowhere else",
		Symbol: "messenger.(*Platform).BaseURL", Old: "case simulated:", New: "case simulated && p.simulator != \"\":",
		Also:  []Edit{{Symbol: "messenger.(*Platform).BaseURL", Old: ", p.Stranded(simulated)", New: ""}},
		Suite: "telegram", Test: "TestClient_simulator|TestHook_methodsAndModes",
	},
	{
		Name: "telegram-pending-updates-dropped", Promise: "design.md 7: deleteWebhook(drop_pending_updates=false)",
		Symbol: "telegram.(*Client).DeleteWebhook",
		Old:    "DropPendingUpdates: false",
		New:    "DropPendingUpdates: true",
		Suite:  "telegram", Test: "TestClient_goldens|TestOutbound",
	},
	{
		Name: "telegram-event-not-due", Promise: "design.md 3: the webhook becomes due in the same write",
		Symbol: "telegram.(*Channel).passToService",
		Old:    "binding, evidence, s.EventKinds())",
		New:    "binding, evidence, 0)",
		Suite:  "telegram", Test: "TestHook_makesTheEventDue",
	},
	{
		Name: "telegram-senders-by-plain-id", Promise: "design.md 3: messenger ids are kept as HMAC",
		Symbol: "telegram.senderBindings",
		Old:    "hex.EncodeToString(deriveKey(token, purposeSender, s.Project, bot, id)[:16])",
		New:    "bot + id + s.Project + hex.EncodeToString(token[:0])",
		Suite:  "telegram", Test: "TestBindings",
	},
}

// whatsappMutants break what comes in through WhatsApp.
//
//nolint:gochecknoglobals // a table
var whatsappMutants = []Mutant{
	{
		Name: "whatsapp-contact-where-none-is-taken", Promise: "design.md 4: contacts are taken only where the project says so",
		Symbol: "whatsapp.(*delivery).receiveContact",
		Old:    `d.account.HiddenNumbers != settings.HiddenShared || from.userID == ""`,
		New:    `d.account.HiddenNumbers > settings.HiddenEcho || from.userID == ""`,
		Suite:  "whatsapp", Test: "TestHook_contactNoLongerTaken",
	},
	{
		Name: "whatsapp-signature-unchecked", Promise: "design.md 7: verify the signature over raw bytes before parsing",
		Symbol: "whatsapp.(*Hook).receiveWebhook",
		Old:    "if !isSigned(body, mac, secrets) {",
		New:    "if !isSigned(body, mac, secrets) && false {",
		Suite:  "whatsapp", Test: "TestHook_signatures",
	},
	{
		Name: "whatsapp-empty-app-secret", Promise: "hazards.md A1: empty secret",
		Symbol: "whatsapp.isSigned", Old: "if len(secret) == 0 {", New: "if false {",
		Suite: "whatsapp", Test: "TestSigned",
	},
	{
		Name: "whatsapp-no-secret-is-trust", Promise: "design.md 7: no secret configured means reject",
		Symbol: "whatsapp.(*Hook).receiveWebhook",
		Old:    "if !isSigned(body, mac, secrets) {",
		New:    "if !isSigned(body, mac, secrets) && len(secrets) > 0 {",
		Also: []Edit{{
			Symbol: "whatsapp.(*Hook).receiveWebhook",
			Old:    "if len(secrets) == 0 {",
			New:    "if secrets == nil && false {",
		}},
		Suite: "whatsapp", Test: "TestHook_withoutSecret",
	},
	{
		Name: "whatsapp-two-signature-headers", Promise: "hazards.md 33: two headers",
		Symbol: "whatsapp.readSignature", Old: "len(values) != 1", New: "len(values) == 0",
		Suite: "whatsapp", Test: "TestHook_signatures",
	},
	{
		Name: "whatsapp-signature-in-upper-case", Promise: "hazards.md 33: upper hex",
		Symbol: "whatsapp.readSignature", Old: "|| strings.ToLower(digits) != digits", New: "",
		Suite: "whatsapp", Test: "TestHook_signatures",
	},
	{
		Name: "whatsapp-verify-token-unchecked", Promise: "hazards.md 32: wrong verify token",
		Symbol: "whatsapp.(*Hook).answerHandshake",
		Old:    `|| !isVerifyToken(singleValue(query, "hub.verify_token"), s.Project, s.WhatsApp.AppSecret, h.clock.Now())`,
		New:    "",
		Also: []Edit{{
			Symbol: "whatsapp.(*Hook).answerHandshake",
			Old:    "len(challenge) > maxChallengeBytes",
			New:    "len(challenge) > maxChallengeBytes && s != nil",
		}},
		Suite: "whatsapp", Test: "TestHook_handshake",
	},
	{
		Name: "whatsapp-verify-token-of-any-project", Promise: "design.md 7: verify tokens = HMAC(account's secret, project + purpose)",
		Symbol: "whatsapp.VerifyToken", Old: "purposeVerifyToken+project", New: "purposeVerifyToken+project[:0]",
		Suite: "whatsapp", Test: "TestHook_handshake",
	},
	{
		Name: "whatsapp-body-limit-thousandfold", Promise: "hazards.md A3: cut at the limit before HMAC",
		Symbol: "whatsapp.maxBodyBytes", Old: "3<<20 + 64<<10", New: "1000 * (3<<20 + 64<<10)",
		Suite: "whatsapp", Test: "TestHook_bodies|TestHook_endlessBody",
	},
	{
		Name: "whatsapp-announced-length-unchecked", Promise: "hazards.md A3: cut at the limit before HMAC",
		Symbol: "whatsapp.(*bodies).readBody", Old: "if r.ContentLength > maxBodyBytes {", New: "if false {",
		Suite: "whatsapp", Test: "TestBodies_refuse",
	},
	{
		Name: "whatsapp-announced-length-reserved", Promise: "hazards.md A3: RSS flat",
		Symbol: "whatsapp.(*body).readAll", Old: "min(most+1, freeBodyBytes)", New: "most+1",
		Suite: "whatsapp", Test: "TestHook_bod|TestHook_announced|TestBodies",
	},
	{
		Name: "whatsapp-body-a-byte-at-a-time", Promise: "hazards.md F30: slow bodies",
		Symbol: "whatsapp.(*body).expectProgress", Old: "b.setReadDeadline(b.began.Add(wait))", New: "_ = wait",
		Suite: "whatsapp", Test: "TestHook_minimumRate|TestHook_heldBodies", Hangs: true,
	},
	{
		Name:    "whatsapp-acknowledged-before-stored",
		Promise: "reliability.md 1: a 200 to a messenger means that what its messages prove is stored",
		Symbol:  "whatsapp.(*Hook).receiveWebhook",
		Old:     "return requestRedelivery(w, messenger.RequestFailed)",
		New:     "w.WriteHeader(http.StatusOK)\n\t\treturn messenger.RequestFailed",
		Suite:   "whatsapp", Test: "TestHook_storeDown|TestHook_storeFailsMidway",
	},
	{
		Name: "whatsapp-one-failure-keeps-others-back", Promise: "hazards.md F37: the good ones are processed",
		Symbol: "whatsapp.(*batch).receiveOne",
		Old:    "b.failures.Load() >= maxFailures",
		New:    "b.failures.Load() >= 1",
		Suite:  "whatsapp", Test: "TestHook_storeFailsMidway|TestHook_oneBadMessage",
	},
	{
		Name: "whatsapp-bad-message-spoils-the-batch", Promise: "hazards.md F37: the good ones are processed, 200",
		Symbol: "whatsapp.(*delivery).receiveMessage",
		Old:    "return messenger.OutcomeMalformed, nil //nolint:nilerr // it would be as malformed the next time",
		New:    "return messenger.OutcomeMalformed, err",
		Suite:  "whatsapp", Test: "TestHook_oneBadMessage|TestHook_structures|TestHook_texts|TestHook_thousand",
	},
	{
		Name: "whatsapp-panic-ends-the-process", Promise: "hazards.md A13: a poison affects only itself",
		Symbol: "whatsapp.(*batch).receiveGuarded",
		Old:    "defer panics.Recover(func(failure error) {",
		New:    "_, _ = panics.ToError, (func(failure error) {",
		Suite:  "whatsapp", Test: "TestHook_oneBadMessage|TestHook_.*[Pp]anic|TestHook_.*[Bb]ug",
	},
	{
		Name: "whatsapp-store-without-time-limit", Promise: "hazards.md F9: fast 503 while the store hangs",
		Symbol: "whatsapp.(*batch).receiveOne",
		Old:    "context.WithTimeout(ctx, messageTimeout)",
		New:    "context.WithTimeout(ctx, 1000*messageTimeout)",
		Also: []Edit{{
			Symbol: "whatsapp.(*batch).receiveAll",
			Old:    "context.WithTimeout(ctx, batchTimeout)",
			New:    "context.WithTimeout(ctx, 1000*batchTimeout)",
		}},
		Suite: "whatsapp", Test: "TestHook_hangingStore|TestHook_slowStore", Hangs: true,
	},
	{
		Name: "whatsapp-forwarded-counts", Promise: "design.md 7: forwarded messages are refused",
		Symbol: "whatsapp.(*message).readContent",
		Old:    "m.Context.Forwarded || m.Context.FrequentlyForwarded",
		New:    "m.Context.FrequentlyForwarded",
		Suite:  "whatsapp", Test: "TestHook_goldens|TestHook_texts|TestHook_structures",
	},
	{
		Name: "whatsapp-group-counts", Promise: "hazards.md A4: a group is no sender",
		Symbol: "whatsapp.(*message).isInGroup", Old: "isPresent(m.GroupID) ||", New: "",
		Suite: "whatsapp", Test: "TestHook_goldens|TestHook_structures|TestHook_texts",
	},
	{
		Name: "whatsapp-message-without-time", Promise: "hazards.md 37: timestamp absent",
		Symbol: "whatsapp.(*delivery).receiveMessage", Old: "case m.Timestamp.IsZero():", New: "case false:",
		Suite: "whatsapp", Test: "TestHook_times",
	},
	{
		Name: "whatsapp-other-phone-number-id", Promise: "hazards.md 34: mixed phone_number_ids",
		Symbol: "whatsapp.counter.acceptsAddressee", Old: "of.PhoneNumberID != phoneNumberID ||", New: "",
		Suite: "whatsapp", Test: "TestHook_structures|TestDecode|TestHook_goldens",
	},
	{
		Name: "whatsapp-code-across-two-texts", Promise: "design.md 3: one code per message",
		Symbol: "whatsapp.codeBreak", Old: `" | "`, New: `" "`,
		Suite: "whatsapp", Test: "TestHook_codesDoNotSpan",
	},
	{
		Name: "whatsapp-contact-unasked", Promise: "design.md 7: accepted only as a contact_request answer to our own prompt",
		Symbol: "whatsapp.(*message).sharedNumber",
		Old:    "inMessage != originPrompt || inContact != originPrompt",
		New:    "false",
		Suite:  "whatsapp", Test: "TestHook_contact|TestHook_sharedContacts|TestHook_goldensOfShared",
	},
	{
		Name: "whatsapp-contact-of-another", Promise: "design.md 7: from the same BSUID with exactly one number",
		Symbol: "whatsapp.(*delivery).receiveContact",
		Old:    "!from.number.IsZero() && !phone.Same(from.number, number)",
		New:    "false",
		Suite:  "whatsapp", Test: "TestHook_contact|TestHook_sharedContacts",
	},
	{
		Name: "whatsapp-contact-as-the-messengers-word", Promise: "design.md 7: marked assurance: shared_contact",
		Symbol: "whatsapp.(*delivery).receiveContact",
		Old:    "verification.AssuranceSharedContact",
		New:    "verification.AssuranceUsual",
		Suite:  "whatsapp", Test: "TestHook_sharedContacts|TestHook_goldensOfShared",
	},
	{
		Name: "whatsapp-any-text-verifies", Promise: "design.md 3: the message must contain the project's sentence",
		Symbol: "whatsapp.(*delivery).receiveText",
		Old:    "if !d.account.AcceptAnyText {",
		New:    "if d.account.AcceptAnyText {",
		Suite:  "whatsapp", Test: "TestHook_relayed|TestHook_texts",
	},
	{
		Name: "echo-by-another-user", Promise: "proof.md 17 B1: a tap by another BSUID never verifies",
		Symbol: "whatsapp.(*delivery).receiveEchoTap",
		Old:    "slices.Contains(bound, c.Binding) && fits(r, c)",
		New:    "len(bound) < slices.Index(bound, c.Binding)+99 && fits(r, c)",
		Suite:  "whatsapp", Test: "TestEcho",
	},
	{
		Name: "echo-by-any-token", Promise: "proof.md 17 B1: the tap of another echo does not verify",
		Symbol: "whatsapp.(*delivery).receiveEchoTap",
		Old:    "slices.Contains(bound, c.Binding) && fits(r, c)",
		New:    "slices.Contains(bound, c.Binding)",
		Suite:  "whatsapp", Test: "TestEcho",
	},
	{
		Name: "echo-without-the-nonce", Promise: "proof.md 11: VERIFIED when a button_reply carries that nonce",
		Symbol: "whatsapp.echoToken", Old: `+"\x00"+c.Nonce`, New: "",
		Suite: "whatsapp", Test: "TestEcho",
	},
	{
		Name: "echo-to-the-sender", Promise: "proof.md 11: to the claimed number N, never to B",
		Symbol: "whatsapp.(*delivery).askByEcho",
		Old:    "ToNumber(r.Phone)",
		New:    `ToUserID("US.1")`,
		Suite:  "whatsapp", Test: "TestEcho",
	},
	{
		Name: "echo-many-times-a-day", Promise: "proof.md 11: one echo per number and day",
		Symbol: "whatsapp.(*delivery).askByEcho",
		Old:    "!d.hook.echoed.TryStart(d.now, echoSlot(r.Phone))",
		New:    "false && !d.hook.echoed.TryStart(d.now, echoSlot(r.Phone))",
		Suite:  "whatsapp", Test: "TestEcho",
	},
	{
		Name: "whatsapp-event-not-due", Promise: "design.md 3: the webhook becomes due in the same write",
		Symbol: "whatsapp.(*delivery).receiveText",
		Old:    "in, d.settings.EventKinds())",
		New:    "in, 0)",
		Suite:  "whatsapp", Test: "TestHook_events|TestHook_replays",
	},
	{
		Name: "strangers-answered-always", Promise: "design.md 7: unknown senders get at most one reply a day",
		Symbol: "messenger.(*StrangerLimiter).Decide", Old: "return StrangerAnswered", New: "return AnswerStranger",
		Suite: "replies", Test: "TestStrangerLimiter",
	},
	{
		Name: "strangers-answered-without-pace", Promise: "design.md 7: unknown senders get 1/s in all",
		Symbol: "messenger.(*StrangerLimiter).Decide", Old: "return StrangersLimited", New: "return AnswerStranger",
		Suite: "replies", Test: "TestStrangerLimiter",
	},
	{
		Name: "senders-unlimited", Promise: "hazards.md A7: guess tokens from one sender at 100/s",
		Symbol: "messenger.senderRate", Old: "Burst: MaxPerSender", New: "Burst: 1000 * MaxPerSender",
		Suite: "replies", Test: "TestSenderLimiter",
	},
	{
		Name: "replies-lost-at-the-end", Promise: "hazards.md F5: a rolling restart loses nothing that was acknowledged",
		Symbol: "messenger.(*ReplyQueue).sendReplies", Old: `case reply := <-q.waiting:
				q.sendWithTimeout(ending, reply)
			default:
				return`, New: `default:
				return`,
		Suite: "replies", Test: "TestReplyQueue",
	},
	{
		Name: "whatsapp-endless-challenge", Promise: "hazards.md 32: challenge 1 MB",
		Symbol: "whatsapp.maxChallengeBytes", Old: "= 256", New: "= 256000",
		Suite: "whatsapp", Test: "TestHook_handshake",
	},
	{
		Name: "whatsapp-tap-of-another", Promise: "design.md 3: confirmed by a button that names the project",
		Symbol: "whatsapp.confirmationToken",
		Old:    `+"\x00"+to.number.Digits()+"\x00"`,
		New:    `+"\x00"+to.number.Digits()[:0]+"\x00"`,
		Suite:  "whatsapp", Test: "TestHook_forgedConfirmations|TestHook_confirmation",
	},
	{
		Name: "whatsapp-tap-unchecked", Promise: "design.md 3: confirmed by a button that names the project",
		Symbol: "whatsapp.(*delivery).receiveTap", Old: "return found", New: "return found || len(secrets) > 0",
		Suite: "whatsapp", Test: "TestHook_forgedConfirmations",
	},
	{
		Name: "whatsapp-typed-confirmation", Promise: "hazards.md A6: only Meta writes a button_reply",
		Symbol: "whatsapp.(*message).confirmationTap", Old: `|| reply.Type != "button_reply"`, New: "",
		Suite: "whatsapp", Test: "TestHook_forgedConfirmations",
	},
	{
		Name: "whatsapp-user-ids-plain", Promise: "design.md 3: messenger ids are kept as HMAC",
		Symbol: "whatsapp.keyedHashes",
		Old:    `hex.EncodeToString(hmacOf(secret, []byte(data))[:16])`,
		New:    `data + string(secret[:0])`,
		Suite:  "whatsapp", Test: "TestBindings|TestHook_leaks|TestHook_sharedContacts",
	},
	{
		Name: "telegram-proven-acknowledged-without-codes", Promise: "proof.md 13: if the reply cannot be sent: 5xx, the platform delivers again",
		Symbol: "telegram.(*Channel).giveSessionCodes",
		Old:    "return c.replies.Prompt(ctx, messenger.OutcomeProven, func(ctx context.Context) error {",
		New:    "c.replies.Reply(func(ctx context.Context) error {",
		Also: []Edit{{
			Symbol: "telegram.(*Channel).giveSessionCodes",
			Old:    "return c.client.SendWithoutPreview(ctx, s.Telegram, in.sender, text, keyboard) })",
			New:    "return c.client.SendWithoutPreview(ctx, s.Telegram, in.sender, text, keyboard) }); return messenger.OutcomeProven, nil",
		}},
		Suite: "telegram", Test: "TestSession_replyFails",
	},
	{
		Name: "telegram-not-me-ignored", Promise: "proof.md 13: Not me by the proven sender in the chat ends the request",
		Symbol: "telegram.(*Channel).handleUpdate", Old: "s.IsNotMe(in.text, start)", New: "s.IsNotMe(in.text+in.text, start)",
		Suite: "telegram", Test: "TestSession_notMe",
	},
	{
		Name: "telegram-not-me-by-a-link", Promise: "proof.md 13: Not me by the proven sender in the chat ends the request",
		Symbol: "telegram.(*Channel).handleUpdate", Old: "&& !in.isCommand", New: "",
		Suite: "telegram", Test: "TestSession_notMeByOthers",
	},
	{
		Name: "telegram-not-me-of-a-former-token", Promise: "proof.md 13: Not me by the proven sender in the chat ends the request",
		Symbol: "telegram.(*Channel).declineProven", Old: "range bound {", New: "range bound[:1] {",
		Suite: "telegram", Test: "TestSession_rotatedToken",
	},
	{
		Name: "telegram-return-link-fetched-for-a-preview", Promise: "proof.md 17 B3: return link fetched by a link preview",
		Symbol: "telegram.(*Client).SendWithoutPreview", Old: "IsDisabled: true", New: "IsDisabled: false",
		Suite: "telegram", Test: "TestSession_golden",
	},
	{
		Name: "not-me-after-confirmation-unanswered", Promise: "proof.md 13: Not me after VERIFIED says what to do",
		Symbol: "telegram.(*Channel).replyToMessage", Old: "!tooLateToDecline && messenger", New: "messenger",
		Suite: "telegram", Test: "TestSession_notMeTooLate",
	},
}
