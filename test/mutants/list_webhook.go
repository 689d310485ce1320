package main

// webhookMutants break promises to receivers of events, and the guard against tenants.
//
//nolint:gochecknoglobals // a table
var webhookMutants = []Mutant{
	{
		Name: "guard-not-asked", Promise: "design.md 6: the address is checked at dial time after DNS",
		Symbol: "webhook.(*Guard).dialControl",
		Old:    "if err := g.checkTarget(namespace, plain, target); err != nil {",
		New:    "if err := g.checkTarget(namespace, plain, target); err != nil && false {",
		Suite:  "webhook", Test: "TestGuard_dialHook|TestSend_blocked",
	},
	{
		Name: "event-has-the-claimed-number", Promise: "design.md 6: actualPhoneNumber is the reported number",
		Symbol: "webhook.eventBody", Old: `"actualPhoneNumber", r.Actual.E164()`, New: `"actualPhoneNumber", r.Phone.E164()`,
		Suite: "webhook", Test: "TestEvent",
	},
	{
		Name: "event-has-the-time-of-sending", Promise: "design.md 6: the same bytes on every attempt",
		Symbol: "webhook.eventBody", Old: `formatTime(e.At)`, New: `formatTime(time.Now())`,
		Suite: "webhook", Test: "TestEvent",
	},
	{
		Name: "event-time-without-milliseconds", Promise: "design.md 6: timestamp (ISO 8601, UTC, milliseconds)",
		Symbol: "webhook.timestampLayout", Old: "05.000Z", New: "05Z",
		Suite: "webhook", Test: "TestEvent",
	},
	{
		Name: "event-hides-its-assurance", Promise: "design.md 6: assurance where it is not the usual one",
		Symbol: "webhook.eventBody", Old: "assurance != verification.AssuranceUsual", New: "assurance == \"none\"",
		Suite: "webhook", Test: "TestEvent",
	},
	{
		Name: "events-with-one-id", Promise: "proof.md 11: each event is one of its own",
		Symbol: "webhook.eventID", Old: "e.Kind != verification.EventSuccess", New: "e.Kind == \"\"",
		Suite: "webhook", Test: "TestNewEvent",
	},
	{
		Name: "event-of-a-pending-request", Promise: "reliability.md 4: nothing is sent of what is not verified",
		Symbol: "webhook.NewEvent", Old: `e.Kind == "" || e.At.IsZero() ||`, New: "",
		Suite: "webhook", Test: "TestNewEvent",
	},
	{
		Name: "webhook-id-shared-by-instances", Promise: "design.md 6: webhook-id is unique per request instance",
		Symbol: "webhook.eventID", Old: "r.CreatedAt.UnixMilli()", New: "0",
		Suite: "webhook", Test: "TestEvent",
	},
	{
		Name: "webhook-id-of-each-attempt", Promise: "reliability.md 3: repetitions carry the same webhook-id",
		Symbol: "webhook.setEventHeaders", Old: "[]string{e.id}", New: "[]string{e.id + timestamp}",
		Suite: "webhook", Test: "TestSend_sameBytes|TestSign",
	},
	{
		Name: "signature-of-the-previous-secret", Promise: "design.md 6: x-webhook-signature is by the secret",
		Symbol: "webhook.signEvent", Old: "computeMAC(secrets[0], body)", New: "computeMAC(secrets[len(secrets)-1], body)",
		Suite: "webhook", Test: "TestSign|TestSend",
	},
	{
		Name: "signature-in-upper-case", Promise: "design.md 6: lower-case hex",
		Symbol: "webhook.signEvent",
		Old:    "hex.EncodeToString(computeMAC(secrets[0], body))",
		New:    "strings.ToUpper(hex.EncodeToString(computeMAC(secrets[0], body)))",
		Suite:  "webhook", Test: "TestSign|TestSend",
	},
	{
		Name: "signature-without-the-time", Promise: "design.md 6: the Standard Webhooks headers",
		Symbol: "webhook.signEvent", Old: `e.id + "." + timestamp + "."`, New: `e.id + "."`,
		Also:  []Edit{{Symbol: "webhook.signEvent", Old: "timestamp := setEventHeaders(h, e, at)", New: "setEventHeaders(h, e, at)"}},
		Suite: "webhook", Test: "TestSign",
	},
	{
		Name: "one-signature-in-a-rotation", Promise: "design.md 6: one signature per active secret",
		Symbol: "webhook.activeSecrets",
		Old:    "append([][]byte{current.Current()}, previous.Accepted(now)...)",
		New:    "[][]byte{current.Current()}",
		Suite:  "webhook", Test: "TestActiveSecrets|TestSign",
	},
	{
		Name: "unsigned-while-the-secret-is-unreadable", Promise: "design.md 6: never an unsigned event",
		Symbol: "webhook.(*Sender).buildHeaders", Old: "return nil, ErrPaused", New: "setEventHeaders(h, e, now)\n\t\treturn h, nil",
		Suite: "webhook", Test: "TestSend_pauses",
	},
	{
		Name: "sent-without-the-lease", Promise: "hazards.md F6: an old leader writes nothing stale",
		Symbol: "webhook.(*Sender).Send", Old: "if !s.maySend() {", New: "if false {",
		Suite: "webhook", Test: "TestSend_leaseLost",
	},
	{
		Name: "sent-though-the-lease-was-lost-in-the-dial", Promise: "hazards.md F6: an old leader writes nothing stale",
		Symbol: "webhook.(*gatedReader).Read", Old: "if !r.message.maySend() {", New: "if false {",
		Suite: "webhook", Test: "TestSend_leaseLost",
	},
	{
		Name: "redirect-is-success", Promise: "design.md 6: only 2xx is success",
		Symbol: "webhook.classifyAnswer", Old: "status <= 299", New: "status <= 399",
		Suite: "webhook", Test: "TestClassifyAnswer",
	},
	{
		Name: "410-tried-again", Promise: "design.md 6: 410 ends that event",
		Symbol: "webhook.classifyAnswer", Old: "v.Outcome = Gone", New: "v.Outcome = Retry",
		Suite: "webhook", Test: "TestClassifyAnswer",
	},
	{
		Name: "retry-after-unheeded", Promise: "design.md 6: Retry-After is honoured",
		Symbol: "webhook.classifyAnswer",
		Old:    `v.RetryAfter, _ = parseRetryAfter(h.Get("Retry-After"), now)`,
		New:    "_, v.RetryAfter = now, 0",
		Suite:  "webhook", Test: "TestClassifyAnswer|TestSend_passesRetryAfterOn",
	},
	{
		Name: "retry-after-of-years", Promise: "design.md 6: Retry-After is clamped",
		Symbol: "webhook.NextAttempt",
		Old:    "max(base, grantedWait(base, retryAfter))",
		New:    "max(base, retryAfter)",
		Suite:  "webhook", Test: "TestNextAttempt",
	},
	{
		Name: "earlier-than-the-schedule", Promise: "design.md 6: schedule 0 s, 5 s, 5 min, ...",
		Symbol: "webhook.NextAttempt", Old: "now.Add(wait +", New: "now.Add(wait -",
		Suite: "webhook", Test: "TestNextAttempt",
	},
	{
		Name: "eleventh-attempt", Promise: "design.md 6: schedule of ten attempts",
		Symbol: "webhook.NextAttempt", Old: "made >= MaxAttempts", New: "made > MaxAttempts",
		Also: []Edit{{
			Symbol: "webhook.NextAttempt",
			Old:    "schedule[max(0, made)]",
			New:    "schedule[min(max(0, made), MaxAttempts-1)]",
		}},
		Suite: "webhook", Test: "TestNextAttempt",
	},
	{
		Name: "own-fault-is-an-attempt", Promise: "design.md 6: what is our own fault uses up nothing of the schedule",
		Symbol: "webhook.classifyFailure",
		Old:    "return Verdict{}, ErrNoResources",
		New:    "return Verdict{Outcome: Retry, Reason: ReasonConnection}, nil",
		Suite:  "webhook", Test: "TestClassifyFailure|TestSend_outOfFileDescriptors",
	},
	{
		Name: "interruption-is-an-attempt", Promise: "design.md 6: what is our own fault uses up nothing of the schedule",
		Symbol: "webhook.(*Sender).sendMessage", Old: "case ctx.Err() != nil:", New: "case false:",
		Suite: "webhook", Test: "TestSend_interrupted",
	},
	{
		Name: "unknown-name-distinguishable", Promise: "security.md: no webhook URL asks which names the cluster's DNS knows",
		Symbol: "webhook.Reason.publicReason", Old: "return ReasonBlockedAddress", New: "return r",
		Suite: "webhook", Test: "TestSend_revealsNoNames|TestResult",
	},
	{
		Name: "thirty-third-in-flight", Promise: "design.md 6: at most 32 in flight per receiver",
		Symbol: "webhook.(*limiter).release", Old: "min(r.slots+1, MaxInFlight)", New: "r.slots+1",
		Suite: "webhook", Test: "TestLimiter",
	},
	{
		Name: "all-at-once-after-a-restart", Promise: "design.md 6: 10 at once after a restart",
		Symbol: "webhook.(*limiter).tryAcquire", Old: "slots: SlowStart,", New: "slots: MaxInFlight,",
		Suite: "webhook", Test: "TestLimiter",
	},
	{
		Name: "slot-never-given-back", Promise: "design.md 6: a slow or dead receiver delays nothing but itself",
		Symbol: "webhook.(*limiter).releaseUnused", Old: ".inFlight--", New: ".inFlight -= 0",
		Suite: "webhook", Test: "TestLimiter|TestSend",
	},
	{
		Name: "body-read-whole", Promise: "design.md 6: response read <= 64 KiB",
		Symbol: "webhook.drainBody", Old: "io.CopyN(io.Discard, body, maxBody)", New: "io.Copy(io.Discard, body)",
		Suite: "webhook", Test: "TestSend_hugeBodies|TestSend_aSlowBody",
	},
	{
		Name: "body-decompressed", Promise: "hazards.md F31: the body is never decompressed into memory",
		Symbol: "webhook.(*transports).newTransport", Old: "DisableCompression: true", New: "DisableCompression: false",
		Suite: "webhook", Test: "TestSend_hugeBodies|TestSend_whatTheReceiverSees",
	},
	{
		Name: "proxy-of-the-environment", Promise: "design.md 6: the address is checked at dial time",
		Symbol: "webhook.(*transports).newTransport", Old: "Proxy: nil", New: "Proxy: http.ProxyFromEnvironment",
		Suite: "webhook", Test: "TestSend_proxy",
	},
	{
		Name: "certificate-unchecked", Promise: "hazards.md F34: no skip-verify",
		Symbol: "webhook.(*transports).newTransport",
		Old:    "MinVersion: tls.VersionTLS12,",
		New:    "MinVersion: tls.VersionTLS12, InsecureSkipVerify: true,",
		Suite:  "webhook", Test: "TestSend_tls",
	},
	{
		Name: "old-tls", Promise: "hazards.md F34: TLS 1.0 fails with a reason",
		Symbol: "webhook.(*transports).newTransport",
		Old:    "MinVersion: tls.VersionTLS12,",
		New:    "MinVersion: tls.VersionTLS10,",
		Suite:  "webhook", Test: "TestSend_tls",
	},
	{
		Name: "public-authorities-beside-the-bundle", Promise: "design.md 6: spec.webhook.caBundle for private CAs",
		Symbol: "webhook.rootsOf", Old: "roots := x509.NewCertPool()", New: "roots, _ := x509.SystemCertPool()",
		Suite: "webhook", Test: "TestRootsOf",
	},
	{
		Name: "connections-shared-by-namespaces", Promise: "design.md 6: allow rules are a namespace's",
		Symbol: "webhook.(*transports).transportFor", Old: "poolKey{namespace: namespace}", New: "poolKey{}",
		Suite: "webhook", Test: "TestTransports",
	},
	{
		Name: "thousand-addresses-tried", Promise: "hazards.md F33: a name with 1,000 addresses",
		Symbol: "webhook.(*Guard).dialControl", Old: "tried.Add(1) > maxAddresses", New: "tried.Add(1) > 1000*maxAddresses",
		Suite: "webhook", Test: "TestSend_dns|TestGuard_dialHook",
	},
	{
		Name: "deny-rule-unheeded", Promise: "design.md 6: --webhook-deny is refused even where a rule allows",
		Symbol: "webhook.NewGuard", Old: "deny := slices.Clone(c.Deny)", New: "deny := slices.Clone(c.Deny[:0])",
		Suite: "webhook", Test: "TestGuard",
	},
	{
		Name: "api-server-reachable", Promise: "design.md 6: the API server is refused even where a rule allows",
		Symbol: "webhook.NewGuard", Old: "slices.Concat(c.APIServer, c.Own)", New: "slices.Concat(c.Own)",
		Suite: "webhook", Test: "TestGuard|TestSend_apiServer",
	},
	{
		Name: "own-address-reachable", Promise: "design.md 6: own pod and host addresses are refused",
		Symbol: "webhook.NewGuard", Old: "slices.Concat(c.APIServer, c.Own)", New: "slices.Concat(c.APIServer)",
		Suite: "webhook", Test: "TestGuard",
	},
	{
		Name: "api-server-behind-its-service", Promise: "adr 16: the API server is known by its certificate",
		Symbol: "webhook.checkCertificate", Old: "slices.Contains(certificate.DNSNames, apiServerName)", New: "false",
		Suite: "webhook", Test: "TestSend_certificate|TestSend_apiServer",
	},
	{
		Name: "never-list-opened-by-a-rule", Promise: "design.md 6: loopback, link-local, metadata are refused always",
		Symbol: "webhook.(*Guard).classifyAddress",
		Old:    "case containsAddress(never, ip):",
		New:    "case containsAddress(never, ip) && !g.hasAllowRule(namespace, ip, port):",
		Suite:  "webhook", Test: "TestGuard",
	},
	{
		Name: "mapped-address-not-unmasked", Promise: "hazards.md A11: [::ffff:7f00:1]",
		Symbol: "webhook.(*Guard).classifyAddress", Old: "ip = ip.Unmap()", New: "",
		Suite: "webhook", Test: "TestGuard_addresses|TestGuard_addressesThatNoRuleAllows|TestGuard_rules",
	},
	{
		Name: "nat64-not-judged", Promise: "design.md 6: IPv6/NAT64/6to4 disguises",
		Symbol: "webhook.(*Guard).classifyAddress", Old: "return g.classifyAddress(namespace, embeddedIPv4(ip), port)", New: "return reachPublic",
		Suite: "webhook", Test: "TestGuard",
	},
	{
		Name: "plain-http-to-the-internet", Promise: "design.md 6: plain http only to allowed private addresses",
		Symbol: "webhook.(*Guard).checkTarget", Old: "if plain {", New: "if false {",
		Suite: "webhook", Test: "TestGuard",
	},
	{
		Name: "rule-of-every-namespace", Promise: "design.md 6: --webhook-allow=[NAMESPACE=]CIDR[:PORT]",
		Symbol: "webhook.AllowRule.allows", Old: `(r.Namespace == "" || r.Namespace == namespace) &&`, New: "",
		Suite: "webhook", Test: "TestGuard_rules",
	},
	{
		Name: "rule-of-every-port", Promise: "design.md 6: --webhook-allow=[NAMESPACE=]CIDR[:PORT]",
		Symbol: "webhook.AllowRule.allows", Old: "(r.Port == 0 || r.Port == port) &&", New: "",
		Suite: "webhook", Test: "TestGuard_rules",
	},
	{
		Name: "kubelet-port", Promise: "design.md 6: ports 2379-2380, 6443, 10250-10259 are refused",
		Symbol: "webhook.isPortBlocked", Old: "port >= 10250", New: "port > 10250",
		Suite: "webhook", Test: "TestGuard_ports",
	},
	{
		Name: "etcd-peer-port", Promise: "design.md 6: ports 2379-2380, 6443, 10250-10259 are refused",
		Symbol: "webhook.isPortBlocked", Old: "port <= 2380", New: "port < 2380",
		Suite: "webhook", Test: "TestGuard_ports",
	},
	{
		Name: "loopback-in-production", Promise: "design.md 6: loopback is refused always",
		Symbol: "webhook.NewGuard", Old: "deny: deny}", New: `deny: deny, loopback: parsePrefixes("127.0.0.0/8", "::1/128")}`,
		Suite: "webhook", Test: "TestGuard",
	},
	{
		Name: "url-with-a-user", Promise: "hazards.md A11: user:pass@",
		Symbol: "webhook.parseURL", Old: "|| u.User != nil", New: "",
		Suite: "webhook", Test: "TestParseURL",
	},
	{
		Name: "endpoint-printed-with-its-url", Promise: "reliability.md 4: no log holds a secret",
		Symbol: "webhook.Event.LogValue", Old: "func (e Event)",
		New:   "func (e Endpoint) LogValue() slog.Value { return slog.StringValue(e.Reveal().url) }\n\nfunc (e Event)",
		Suite: "webhook", Test: "TestSend_leaksNothing",
	},
}
