// Package project turns every VerificationProject into a running API: it is the operator's only controller.
//
//	observe --> decide --> render --> apply --> conditions --> one status apply --> an Event
//	(cache)     (pure)     (pure)                (pure)
//
// Blockers are checked in a fixed order, and the first one decides: suspended, an account of another namespace, InvalidSpec,
// NotPermitted, AccountInUse; and when the children are applied Conflict, ChildRejected, HostInUse, GatewayAPIMissing and
// RolloutQueued.
//
// Invariants:
//   - A steady project costs no write. Foreign changes are corrected, a few times at once and then once a minute, so that
//     two clients that disagree do not flood the API server.
//   - A project that cannot be carried out harms no other: its reconciliation ends with a condition, or is retried with a
//     growing delay.
//   - Running pods are not stopped because a new spec is refused, nor for another project. Only suspend stops them, and an
//     account or a host that the administrator granted to another namespace.
//   - Nothing across namespaces depends on what a tenant can write: not on a status, not on the age of an object.
//   - Every decision depends only on observed state, so an operator may stop at any point and another one continues.
//   - The conditions Ready, Reconciling, Stalled, Available and Shared are the operator's; it never changes those of serve.
//     Their messages are constant for the same cause, and contain no value of a Secret, no number and no URL.
package project
