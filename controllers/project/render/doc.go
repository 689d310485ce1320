// Package render turns a project into the objects that run it: pure functions without I/O, one file per kind, each with all
// fields that the operator owns of that kind. Fields that a file leaves unset belong to others.
//
// Invariants: the same project and options give the same objects, byte for byte. The pod template depends on spec.server,
// spec.storage.type, the Secret keys that the spec names, and the admin's options: a change of anything else, such as a rate
// limit or a webhook's URL, reaches the pods through their own watch and never restarts them.
package render
