// Package settings turns a VerificationProject and a folder of secret files into the live settings of a server.
//
//	project file ----> File --.
//	                           >--> Live --> *Settings, swapped atomically
//	watched object -----------'      ^
//	secret files --> SecretFiles ----'
//
// Invariants: Settings are immutable and replaced as a whole, so one request sees one state; what is wrong never takes
// the last good settings away; a secret that cannot be used disables just what needs it and is named in Problems; no
// value of a secret leaves the package but through Secret, and nothing here prints one.
//
// # When a secret's value counts
//
// Times are those at which this process reads the change, within a second of the file changing, and they are measured
// by the monotonic clock. For each place in the project that refers to a secret:
//
//	what happens to the file            from then on
//	A is replaced by B                  the new B counts; A is accepted beside it before Overlap has passed, not at its end
//	A, B, then A again                  A counts; B is accepted for its own Overlap; A was never refused
//	replaced more than maxFormer times  the newest maxFormer former values are accepted
//	deleted, emptied, or made unusable  nothing is accepted; former values are gone for good
//	a webhook secret, made malformed    the value before it counts on before Overlap has passed, then nothing
//	usable again, with whatever value   that value alone counts: what was revoked never comes back
//	the disk cannot be asked (EIO, ...) nothing changes until it can
//	the place is removed, renamed, or   the old values, former ones included, are refused at once: whoever edits the
//	refers to something else            project says what is to count
//	sim_ value becomes another, or back nothing former is accepted: the two worlds never overlap
//
// An API key's name, scopes and expiresAt are those of the project at the moment, for its former values too.
package settings

// What following the project's object takes.
// +kubebuilder:rbac:groups=phoneproof.dev,resources=verificationprojects,verbs=get;list;watch
