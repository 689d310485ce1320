// Package messenger holds what WhatsApp and Telegram share: outcomes of messages and their metrics, the policy and limits of
// replies, and calls to their platforms. Replies are sent after the message is acknowledged, best effort and once; unknown
// senders get one rarely.
//
//	message -> SenderLimiter -> domain -> Outcome -> Replier (Cooldown, StrangerLimiter, ReplyQueue) -> Platform
//
// Invariants:
//   - What is remembered of senders is bounded, and keyed by hashes whose key is known to this process alone.
//   - Two bots that answer each other fall silent.
//   - No reply delays an acknowledgement.
//   - Every metric label comes from a closed set that the program itself names. Durations have their series from the
//     start, an error has one from its first occurrence on.
package messenger
