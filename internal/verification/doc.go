// Package verification is the domain: what a verification request is, how it moves from PENDING to one of its two
// final states, which code it has, and what a store must promise. It does no I/O of its own and imports nothing of ours
// but internal/phone and internal/redact, so every decision in it is tested without a server.
//
//	          init                    code matches, number matches, sent in time
//	(none) ----------> PENDING -------------------------------------------------> VERIFIED --> webhook due -> delivered
//	                      |  awaiting contact (still PENDING to the outside)                               \-> exhausted
//	                      '------------ now >= expiresAt + ExpiryGrace ----------> EXPIRED
//
// Invariants: a final state never changes, the two final states compete through one compare-and-set, and every time
// that matters is part of the Request, never of a process.
package verification
