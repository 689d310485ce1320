// Package ledger keeps what a chaos run saw: append-only files of JSON lines, outside of the system under test.
//
// The invariant: what Append returned for is on disk, in the order of the calls' returns, whatever happens to anybody
// afterwards. So a receiver that writes before it answers can never have answered what is not written.
package ledger
