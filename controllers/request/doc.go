// Package request has the three controllers of verification requests. Each serves every store.
//
// The lifecycle (Controller) expires requests, sends their events and deletes them once they are finished:
//
//		source (watch, or claims) --> workqueue --> load, ask Next, do that one thing, persist, ask again --> wait until T
//
//	  - Next alone decides what is done; everything it decides by is persisted, so a restart changes nothing.
//	  - An attempt is recorded before the next is planned. One that could not be recorded is kept and recorded first.
//	  - Before an event is sent its request is read afresh: no cache decides about a side effect.
//	  - A failing store never skips anything; a request that the store refuses for its own content is left alone after
//	    five tries, and counted.
//
// Manual requests (ManualController) were created with kubectl or by other controllers. They name a project, a number and
// a method, and get what the API gives its clients: a code, the text with it, the link, and an expiry.
//
//		                 .-- completed: a request like any other, and the lifecycle's from then on
//		manual request --+-- refused: Accepted=False with the reason; tried again where that can change by itself
//		                 '-- store failed: tried again with a backoff
//
//	  - Why a manual request is refused is decided by the pure functions of manual_refusal.go alone.
//	  - A failing store never refuses anything.
//	  - What is written is itself a change that brings the object here again, so nothing is written twice for one reason.
//
// Redelivery (RedeliveryController) carries out the annotation phoneproof.dev/redeliver: REQUESTID/NONCE of a project, which
// sends the event of a verified request once more.
//
//		annotation --> well formed? --> make the event due --> note it in the project's status --> emit an Event
//
//	  - What was carried out is stored with the request, in the same write that makes the event due: neither a restart nor
//	    a second leader nor a failing status does it again.
//	  - A failing store or status refuses nothing; it is tried again.
//	  - A malformed annotation is refused once. The status could not hold every one, so it is noted by a hash.
//	  - At most one redelivery a second: an annotation in a loop must not become a flood.
package request
