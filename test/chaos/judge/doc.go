// Package judge decides whether a chaos run upheld the promises: invariants over the ledgers, as pure functions.
//
// Each takes all the evidence and returns how many things it checked and every contradiction that it found. The invariant
// of the package: an invariant that checked nothing was not tested and so does not hold; and each has tests in which
// forged evidence violates it.
package judge
