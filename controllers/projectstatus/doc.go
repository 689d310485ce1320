// Package projectstatus writes the conditions that serve maintains into the project's status: SecretsReady, StorageReady,
// WhatsAppReady, TelegramReady, WebhookHealthy, Silent, Simulated, LimitsContradict, TestEventsOff, CodesReady, GatewayReady and
// CodesLimited.
//
//	settings, store, receiver, Board --> judgeConditions --> one server-side apply, if anything changed --> Events
//
// Invariants:
//   - Only the holder of the project's lease writes, all of its conditions in one apply, so one field owner has them all.
//   - A condition names the generation of the spec that it was judged by. One that was not judged in this term stays as
//     the former leader left it: a change of leaders changes nothing.
//   - A steady project costs no write. What changes often is written at a limited rate, and its last state is always written.
//   - Reasons and messages are constant for the same cause, and contain no secret, number, address or time.
//   - An Event reports a status change once, after it was stored.
package projectstatus
