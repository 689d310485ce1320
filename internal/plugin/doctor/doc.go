// Package doctor is the command kubectl phoneproof doctor: it examines a VerificationProject from outside and by its status, and
// names what is broken, by which evidence, and what to do.
//
//	gatherers, in parallel -> Facts -> checks, pure functions in a fixed order -> Report -> text, JSON or YAML
//
// Invariants: it reads with the rights of its user and changes nothing; what may not be read is listed as not checked and is never
// an error. It connects to the API server, to the host of spec.baseURL and, only if it is asked to, to the messengers' platforms; it
// follows no redirect. A report holds no value of a Secret, and of what others wrote only printable characters, cut to a length.
package doctor
