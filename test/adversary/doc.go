// Package adversary attacks the website of docs/examples/session: see docs/adversary.md.
//
// Its invariant: each attack ends with digits being read out, which verifies, so that none fails for another reason than the one that
// is tested. After Not me none verify: there the API refuses to begin.
package adversary
