// Package render turns a project into the objects that run it: pure functions without I/O, one file per kind, each the whole
// truth about what the operator wants to own of that object. What a file leaves unset belongs to somebody else.
//
// Invariants: the same project and options give the same objects, byte for byte. The pod template depends on spec.server,
// spec.storage.type, the Secret keys that the spec names, and the admin's options: a change of anything else, such as a rate
// limit or a webhook's URL, reaches the pods through their own watch and never restarts them.
package render
