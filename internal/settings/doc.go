// Package settings turns a VerificationProject and a folder of secret files into the live settings of a server.
//
//	project file ----> File --.
//	                           >--> Live --> *Settings, swapped atomically
//	watched object -----------'      ^
//	secret files --> SecretFiles ----'
//
// Invariants: Settings are immutable and replaced as a whole, so a request sees a single state. An invalid project or secret
// never removes the last good settings. An unusable secret disables only the features that need it and is listed in Problems.
// Secret values leave the package only as Secret, and nothing here prints one.
//
// # When a secret's value is accepted
//
// Times are those at which this process reads the change, within a second of the file changing, measured with the
// monotonic clock. For each reference to a secret in the project:
//
//	what happens to the file            from then on
//	A is replaced by B                  current: B; A is also accepted until Overlap has passed (exclusive)
//	A, B, then A again                  A is current; B is accepted for its own Overlap; A was never rejected
//	replaced more than maxFormer times  the newest maxFormer former values are accepted
//	deleted, emptied, or made unusable  nothing is accepted; former values are dropped for good
//	a webhook secret or an app secret,  the value before it stays in use until Overlap has passed, then nothing
//	made malformed or known to others
//	usable again, with any value        only that value is accepted: a revoked value never comes back
//	the disk read fails (EIO, ...)      nothing changes until a read succeeds
//	the reference is removed, renamed,  the old values, former ones included, are rejected at once: the edit of the
//	or points to something else         project is deliberate
//	simulated becomes real, or back     no former value is accepted: simulated and real values never overlap
//
// The name, scopes and expiresAt of an API key are the current ones of the project, for its former values too.
package settings
