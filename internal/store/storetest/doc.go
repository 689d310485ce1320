// Package storetest is the contract of verification.Store and verification.Queue as tests: one suite that every store
// must pass, against its real server if it has one.
//
// The invariant: a check relies on nothing but the contract. Differences between stores (whether their clock can be
// stepped, whether their limits are exact under concurrent replicas) are declared with Exercise. The package's own tests run
// checks against stores with faults that no single caller sees (races, lost writes, caches), which they must reject.
//
// The suite adds two rules to the contract. A store keeps times to the microsecond in all its answers, and truncates finer
// parts. It accepts any New.TTL unchanged, even a negative one, because the settings validate lifetimes.
package storetest
