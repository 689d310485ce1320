// Package system runs a whole PhoneProof on this machine, for measurements and for faults: a store, projects with their
// secrets, and replicas that serve them.
//
// The store is a real API server with its etcd, or a real PostgreSQL, and each makes durable what it acknowledges. The
// replicas are the program itself, with the rights that the generated roles grant, and one difference: webhooks may go to
// loopback, where the receivers are. Only the messengers are played; see Project.WhatsAppMessage and TelegramUpdate.
//
// The invariant: everything listens on loopback, writes its logs to files of its own, and ends with Stop or with the
// process that called Start. Nothing here knows a test framework; everything returns errors.
package system
