// Package reply is how the messengers' channels answer people: after the message is acknowledged, best effort, once, and
// strangers seldom.
//
//	a message -> Senders: too many of them? -> the domain -> Once: told already? Strangers: told today? -> Queue -> sent
//
// Invariants: whatever comes in, what is remembered is bounded, and senders are known by hashes under a key that nobody
// outside the process has; two bots that answer each other fall silent; nothing here keeps an acknowledgement waiting.
package reply
