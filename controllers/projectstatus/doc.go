// Package projectstatus writes the conditions that serve answers for into the project's status: SecretsReady, StorageReady,
// WhatsAppReady, TelegramReady, WebhookHealthy, Simulated and LimitsContradict.
//
//	settings, store, receiver, Board --> judge --> one server-side apply, if anything is new --> Events of what changed
//
// Invariants:
//   - Only the holder of the project's lease writes, all of its conditions in one apply, so one field owner has them all.
//   - A condition says by which generation of the spec it was judged. One that nobody has judged since the term began
//     stays as the leader before left it: a change of leaders is no news.
//   - A steady project costs no write. What changes often is written now and then, and last as it is last.
//   - Reasons and messages are the same each time for the same cause, and hold no secret, number, address or time.
//   - An Event tells a change of a status once, after it was stored.
package projectstatus
