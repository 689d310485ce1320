// Package ledger records what a chaos run observes: append-only files of JSON lines, outside the system under test.
//
// The invariant: when Append has returned, its record is on disk, in the order of the calls' returns, whatever happens
// afterwards. So a receiver that appends before it answers never answers an event that is not recorded.
package ledger
