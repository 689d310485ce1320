// Package memory keeps requests in the memory of one process: for development, for tests, and as the simplest
// implementation of the verification.Store contract. Nothing survives the process.
//
// The invariant: every index (bindings, windows, work, room) agrees with the records. All of them change under one lock per
// project, and bindings change only in project.writeState and project.removeRecord. Operations cost O(1) or
// O(log n), except Stored, which counts all requests, and the first Claim after a policy change, which reschedules them.
//
// Times are whole microseconds in UTC, as in the other stores: finer parts are truncated.
package memory
