// Package settings turns a VerificationProject and a folder of secret files into the live settings of a server.
//
// Invariants: Settings are immutable and replaced as a whole, so one request sees one state; a secret that cannot be
// read disables just what needs it and is named in Problems; no value of a secret leaves the package but through
// Secret.
package settings
