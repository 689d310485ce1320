// Package request moves verification requests on: it expires them, sends their events and deletes them when their time is
// over. One controller serves every store.
//
//	source (watch, or claims) --> workqueue --> load, ask Next, do that one thing, persist, ask again --> wait until T
//
// Invariants:
//   - Next alone decides what is done; everything it decides by is persisted, so a restart changes nothing.
//   - An attempt is recorded before the next is planned. One that could not be recorded is kept and recorded first.
//   - Before an event is sent its request is read afresh: no cache decides about a side effect.
//   - A failing store never skips anything; a request that the store refuses for its own content is left alone after
//     five tries, and counted.
package request
