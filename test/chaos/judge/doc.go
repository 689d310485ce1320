// Package judge says what a chaos run showed: invariants over the ledgers, as pure functions.
//
// Each takes all the evidence and returns how much it looked at and every contradiction that it found. The invariant of
// the package: an invariant that looked at nothing has not held, it was not tested; and each has tests in which forged
// evidence violates it.
package judge
