package main

// testKeyMutants let a test key's request pass for a real one (attack B9).
//
//nolint:gochecknoglobals // a table
var testKeyMutants = []Mutant{
	{
		Name: "test-request-meets-messengers", Promise: "proof.md 17 B9: a message with the code of a test key's request changes nothing",
		Symbol: "verification.(*Service).applyTransition", Old: "if r.Test {", New: "if false {",
		Suite: "domain", Test: "TestTestRequest_meetsNoMessenger",
	},
	{
		Name: "test-request-shown-to-live-keys", Promise: "proof.md 17 B9: a live key sees no request of a test key",
		Symbol: "verification.(*Request).IsVisibleTo", Old: "r.Test == testKey", New: "r.Test == testKey || !testKey",
		Suite: "domain", Test: "TestStatusFor_hidesTheOtherMode|TestConfirmSession_ofTestKeys",
	},
	{
		Name: "test-event-wanted-as-live", Promise: "proof.md 17 B9: no event of a test key is due without a receiver of its own",
		Symbol: "verification.EventKinds.Wants", Old: "if e.Test {", New: "if false {",
		Suite: "domain", Test: "TestPlay_eventsGoToTheirOwnReceiver",
	},
	{
		Name: "test-event-signed-as-live", Promise: "security.md: who holds what a receiver in staging holds forges no real event",
		Symbol: "webhook.NewTestEndpoint", Old: "true, w.TestSecret", New: "true, w.Secret",
		Suite: "webhook", Test: "TestNewTestEndpoint",
	},
	{
		Name: "test-digits-confirm-live-requests", Promise: "proof.md 17 B9: the digits of test keys confirm no live request",
		Symbol: "verification.CodeSpace.SessionCodes", Old: "if r.Test {", New: "if true {",
		Suite: "domain", Test: "TestConfirmSession_ofTestKeys",
	},
	{
		Name: "test-key-shares-idempotency", Promise: "proof.md 17 B9: a key whose mode changes replays no request of the other mode",
		Symbol: "verification.(*Service).Initiate", Old: "testKeyHash(in.KeyHash)", New: "in.KeyHash",
		Suite: "domain", Test: "TestInitiate_ofTestKeys",
	},
}
