// Package redelivery carries out the annotation phoneproof.dev/redeliver: REQUESTID/NONCE on a project, which sends the
// event of a verified request once more.
//
//	annotation --> well formed? --> make the event due --> note it in the project's status --> tell it in an Event
//
// Invariants:
//   - What was carried out is stored with the request, in the same write that makes the event due: neither a restart nor
//     a second leader nor a failing status does it again.
//   - A failing store or status refuses nothing; it is tried again.
//   - A wish in no valid form is refused once. The status could not hold every one, so it is noted by a hash.
//   - At most one redelivery a second: an annotation in a loop must not become a flood.
package redelivery
