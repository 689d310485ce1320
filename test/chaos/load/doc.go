// Package load plays the world around PhoneProof in a chaos run: client backends, end users and the messengers that tell
// of them, whoever asks how a verification stands, and strangers.
//
// The invariant: everything is tried until it is acknowledged, at whatever replica, as real clients and platforms do; and
// what is acknowledged is written down.
package load
