// Package load plays the world around PhoneProof in a chaos run: client backends, end users, both messengers and
// what they report, clients that query a status, and one whose API key was revoked.
//
// The invariant: everything is retried until it is acknowledged, at any replica, as real clients and platforms do; and
// what is acknowledged is recorded.
package load
