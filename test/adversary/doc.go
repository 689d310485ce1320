// Package adversary attacks the website of docs/examples/session: see docs/security.md.
//
// Single rules are attacked where they are decided: in internal/verification, page, httpapi, the messengers, and internal/store/storetest
// for each store, such as the pumping of codes.
//
// Its invariant: each attack ends with digits being read out, which verifies, so that none fails for another reason than the one that
// is tested. After Not me none verify: there the API refuses to begin.
package adversary
