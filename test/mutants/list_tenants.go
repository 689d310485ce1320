package main

// proofMutants forge a proof, or take one for what it is not.
var proofMutants = []Mutant{
	{
		Name:    "contact-of-an-older-prompt",
		Promise: "docs/security.md#threats-and-what-stands-against-them: a contact counts after it was asked for",
		Symbol:  "verification.(*Request).VerifyContact",
		Old:     "e.SentAt.Before(bound.Truncate(time.Second))",
		New:     "e.SentAt.Before(bound.Add(-time.Minute))",
		Suite:   "domain", Test: "TestVerifyContact|TestReceiveContact",
	},
	{
		Name: "echo-by-any-token", Promise: "docs/security.md#what-holds-at-which-level: the answer to another question verifies nothing",
		Symbol: "whatsapp.(*delivery).receiveEchoTap",
		Old:    "slices.Contains(bound, c.Binding) && fits(r, c)",
		New:    "slices.Contains(bound, c.Binding)",
		Suite:  "whatsapp", Test: "TestEcho_refusesTaps",
	},
	{
		Name:    "whatsapp-tap-of-another",
		Promise: "docs/security.md#what-holds-at-which-level: a tap of that sender on that button counts alone",
		Symbol:  "whatsapp.confirmationToken",
		Old:     `+"\x00"+to.number.Digits()+"\x00"`,
		New:     `+"\x00"+to.number.Digits()[:0]+"\x00"`,
		Suite:   "whatsapp", Test: "TestHook_forgedConfirmations",
	},
	{
		Name:    "whatsapp-empty-app-secret",
		Promise: "docs/security.md#threats-and-what-stands-against-them: missing secret: everything refused",
		Symbol:  "whatsapp.isSigned", Old: "if len(secret) == 0 {", New: "if false {",
		Suite: "whatsapp", Test: "TestSigned",
	},
	{
		Name:    "telegram-names-in-any-case",
		Promise: "docs/security.md#threats-and-what-stands-against-them: who reads a message reads what the messenger wrote",
		Symbol:  "telegram.readUpdate",
		Old:     "kjson.UnmarshalCaseSensitivePreserveInts(e.Message, m)",
		New:     "json.Unmarshal(e.Message, m)",
		Suite:   "telegram", Test: "TestRead",
	},
	{
		Name: "test-request-meets-messengers", Promise: "docs/testing.md#what-it-cannot-do: no message verifies a test key's request",
		Symbol: "verification.(*Service).applyTransition", Old: "if !r.IsVisibleTo(false) {", New: "if r.IsDelivery() {",
		Suite: "domain", Test: "TestTestRequest_meetsNoMessenger",
	},
	{
		Name: "deleted-secret-still-accepted", Promise: "docs/faults.md: a secret that is deleted opens nothing",
		Symbol: "settings.secretState.applyReading", Old: "return h.rejectValue(u, reason, now)",
		New:   "if reason == ReasonMissing && h.secret.Usable() {\n\t\t\treturn h\n\t\t}\n\t\treturn h.rejectValue(u, reason, now)",
		Suite: "settings", Test: "TestSecrets_exactly_when",
	},
	{
		Name: "key-not-checked-after-a-wait", Promise: "docs/faults.md: a key that is revoked gets no answer",
		Symbol: "httpapi.(*exchange).readOrWait",
		Old:    "if _, err := x.authorize(settings.ScopeStatus); err != nil {",
		New:    "if err := x.r.Context().Err(); err != nil {",
		Suite:  "http api", Test: "TestWait_checksTheKeyAgain",
	},
	{
		Name: "unsigned-while-the-secret-is-unreadable", Promise: "docs/webhooks.md#signatures: none is ever sent unsigned",
		Symbol: "webhook.(*Sender).buildHeaders", Old: "return nil, ErrPaused", New: "setEventHeaders(h, e, now)\n\t\treturn h, nil",
		Suite: "webhook", Test: "TestSend_pauses",
	},
	{
		Name: "webhook-id-of-each-attempt", Promise: "docs/webhooks.md#what-to-answer: the webhook-id is the same on every attempt",
		Symbol: "webhook.setEventHeaders", Old: "[]string{e.id}", New: "[]string{e.id + timestamp}",
		Suite: "webhook", Test: "TestSend_sameBytes",
	},
	{
		Name: "test-event-signed-as-live", Promise: "docs/webhooks.md#events-of-test-keys: the test secret signs no real event",
		Symbol: "webhook.NewTestEndpoint", Old: "true, w.TestSecret", New: "true, w.Secret",
		Suite: "webhook", Test: "TestNewTestEndpoint",
	},
}

// tenantMutants open to one tenant, client or stranger what is of another.
var tenantMutants = []Mutant{
	{
		Name:    "idempotency-key-of-any-project",
		Promise: "docs/security.md#what-tenants-share: a key of one project meets no request of another",
		Symbol:  "verification.CodeSpace.CodeFor", Old: `space.name+"\x00"+idempotencyKey`, New: `"\x00"+idempotencyKey`,
		Suite: "domain", Test: "TestCodeFor",
	},
	{
		Name:    "test-key-shares-idempotency",
		Promise: "docs/testing.md#what-it-cannot-do: an Idempotency-Key of a test key meets no live request",
		Symbol:  "verification.(*Service).Initiate", Old: "testKeyHash(in.KeyHash)", New: "in.KeyHash",
		Suite: "domain", Test: "TestInitiate_ofTestKeys",
	},
	{
		Name: "cursor-of-another-project", Promise: "docs/security.md#what-tenants-share: a cursor holds for its own project",
		Symbol: "httpapi.checkCursor", Old: "project, f.Phase,", New: `"", f.Phase,`,
		Suite: "http api", Test: "TestList_refusesParameters",
	},
	{
		Name: "telegram-secret-of-any-project", Promise: "docs/security.md#threats-and-what-stands-against-them: a secret for each project",
		Symbol: "telegram.WebhookSecret", Old: "purposeWebhook, project", New: "purposeWebhook",
		Suite: "telegram", Test: "TestHook_secret",
	},
	{
		Name: "connections-shared-by-namespaces", Promise: "docs/webhooks.md#which-addresses-are-allowed: an allow rule is of its namespace",
		Symbol: "webhook.(*transports).transportFor", Old: "poolKey{namespace: namespace}", New: "poolKey{}",
		Suite: "webhook", Test: "TestTransports",
	},
	{
		Name: "rule-of-every-namespace", Promise: "docs/webhooks.md#which-addresses-are-allowed: an allow rule is of its namespace",
		Symbol: "webhook.AllowRule.allows", Old: `(r.Namespace == "" || r.Namespace == namespace) &&`, New: "",
		Suite: "webhook", Test: "TestGuard_rules",
	},
	{
		Name:    "never-list-opened-by-a-rule",
		Promise: "docs/webhooks.md#which-addresses-are-allowed: loopback and metadata are refused always",
		Symbol:  "webhook.(*Guard).classifyAddress",
		Old:     "case containsAddress(never, ip):",
		New:     "case containsAddress(never, ip) && !g.hasAllowRule(namespace, ip, port):",
		Suite:   "webhook", Test: "TestGuard_",
	},
	{
		Name:    "api-server-behind-its-service",
		Promise: "docs/webhooks.md#which-addresses-are-allowed: the API server is known by its certificate",
		Symbol:  "webhook.checkCertificate", Old: "slices.Contains(certificate.DNSNames, apiServerName)", New: "false",
		Suite: "webhook", Test: "TestSend_certificateOfTheAPIServer",
	},
	{
		Name: "proxy-of-the-environment", Promise: "docs/webhooks.md#which-addresses-are-allowed: no proxy of the environment is used",
		Symbol: "webhook.(*transports).newTransport", Old: "Proxy: nil", New: "Proxy: http.ProxyFromEnvironment",
		Suite: "webhook", Test: "TestSend_proxy",
	},
	{
		Name: "devs-guard-in-serve", Promise: "docs/webhooks.md#which-addresses-are-allowed: loopback is refused always",
		Symbol: "server.Dependencies.withDefaults",
		Old:    "d.NewGuard = webhook.NewGuard",
		New:    "d.NewGuard = webhook.NewDevGuard",
		Suite:  "server", Test: "TestDependencies",
	},
	{
		Name:    "loop-without-the-guards-addresses",
		Promise: "docs/security.md#threats-and-what-stands-against-them: the API server is refused at its known addresses",
		Symbol:  "server.(*server).newRequestLoop",
		Old:     "s.dependencies.NewGuard(addresses)",
		New:     "s.dependencies.NewGuard(webhook.GuardConfig{Allow: addresses.Allow})",
		Suite:   "server", Test: "TestRequestLoop_guardsItsWebhooks",
	},
	{
		Name: "endpoint-printed-with-its-url", Promise: "docs/reliability.md#what-holds: no log holds a secret",
		Symbol: "webhook.Event.LogValue", Old: "func (e Event)",
		New:   "func (e Endpoint) LogValue() slog.Value { return slog.StringValue(e.Reveal().url) }\n\nfunc (e Event)",
		Suite: "webhook", Test: "TestSend_leaksNothing",
	},
	{
		Name: "body-kept-in-the-pool", Promise: "docs/security.md#what-is-stored: no number is kept",
		Symbol: "httpapi.readBodyAs",
		Old:    "clear(buffer[:]) // It held a phone number or a code, and the client may have sent anything.",
		New:    "",
		Suite:  "http api", Test: "TestInit_clearsTheBody|TestConfirm_clearsTheBody",
	},
}
