// Package system runs a complete PhoneProof on this machine, for benchmarks and fault injection: a store, projects with
// their secrets, and replicas that serve them.
//
// The store is a real API server with its etcd, or a real PostgreSQL; both make every acknowledged write durable. The
// replicas run the real program with the rights that the generated roles grant. The only difference is that webhooks may
// go to loopback, where the receivers are. Only the messengers are simulated; see Project.WhatsAppMessage and TelegramText.
//
// The invariant: everything listens on loopback, writes its logs to files of its own, and ends with Stop or with the
// process that called Start. The package uses no test framework; everything returns errors.
package system
