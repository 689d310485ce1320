// Package memory keeps requests in the memory of one process: for development, for tests, and as the plainest reading
// of the verification.Store contract. Nothing survives the process.
//
// The invariant: every index (bindings, windows, work, room) agrees with the records it was made from, because all of
// them change under one lock per project and in two places only, project.write and project.remove. No operation scans:
// each costs O(1) or O(log n), but for the first Claim after a change of policy, which asks every request again.
//
// Times are whole microseconds in UTC, as in the other stores: what is finer is cut off.
package memory
