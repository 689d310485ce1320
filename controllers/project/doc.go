// Package project makes every VerificationProject a running API: it is the operator's one controller.
//
//	observe --> decide --> render --> apply --> conditions --> one status apply --> an Event
//	(cache)     (pure)     (pure)                (pure)
//
// What stops a project is asked in a fixed order, and the first answer decides: suspended, an account of another namespace,
// InvalidSpec, NotPermitted, AccountInUse; and when the children are applied Conflict, ChildRejected, HostInUse,
// GatewayAPIMissing and RolloutQueued.
//
// Invariants:
//   - A steady project costs no request that writes. What somebody else changed is put right, a few times at once and from
//     then on once a minute, so that two who disagree do not flood the API server.
//   - A project that cannot be carried out harms no other: its reconciliation ends with a condition, or is tried again
//     ever more rarely.
//   - What runs is not stopped because something new is refused, nor for another project. Only suspend stops it, and an
//     account or a host that the administrator granted to another namespace.
//   - Nothing across namespaces rests on what a tenant can write: not on a status, not on the age of an object.
//   - Everything is decided from what is observed, so an operator may stop in the middle of anything and another go on.
//   - The conditions Ready, Reconciling, Stalled, Available and Shared are the operator's; it never touches those of serve. Their
//     messages are the same for the same cause, and hold no value of a Secret, no number and no URL.
package project
