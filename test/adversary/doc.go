// Package adversary attacks the website of docs/examples/session: see docs/adversary.md.
//
// Its invariant: each attack ends with the digits being read out to the attacker, which verifies, so that none fails for another
// reason than the one that is tested.
package adversary
