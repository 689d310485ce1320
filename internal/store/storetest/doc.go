// Package storetest is the contract of verification.Store and verification.Queue as tests: one suite that every store
// passes, against the real server where it has one.
//
// The invariant: a check knows nothing but the contract. What differs between stores (whether their clock can be
// stepped, whether their limits are exact while replicas race) is stated by their Harness. And every check can fail:
// the package's own tests run the suite against stores that are broken on purpose, and each must be refused.
//
// Beyond the words of the contract the suite fixes two things. A store keeps times to the microsecond, in which all
// its answers agree; what is finer is cut off. And any New.TTL is taken as it is, a negative one included: which
// lifetimes make sense is up to the settings.
package storetest
