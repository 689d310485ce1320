// Package request has the three controllers of verification requests. Each serves every store.
//
// The lifecycle (Controller) expires requests, sends their events and deletes them once they are finished:
//
//		source (watch, or claims) --> workqueue --> load, call Next, take its step, persist, repeat --> wait until T
//
//	  - Next alone decides each step; its whole input is persisted, so a restart changes nothing.
//	  - An attempt is recorded before the next is planned. One that could not be recorded is kept and recorded first.
//	  - Before an event is sent its request is read again: no cache decides about a side effect.
//	  - A failing store never skips anything; a request that the store refuses for its content is skipped after five
//	    tries, and counted.
//
// Manual requests (ManualController) were created with kubectl or by other controllers. They name a project, a number and
// a method, and get what the API gives its clients: a code, the text with it, the link, and an expiry.
//
//		                 .-- completed: a request like any other, and the lifecycle's from then on
//		manual request --+-- refused: Accepted=False with the reason; retried if that can change by itself
//		                 '-- store failed: retried with a backoff
//
//	  - Why a manual request is refused is decided by the pure functions of manual_refusal.go alone.
//	  - A failing store never refuses anything.
//	  - Each write is itself a change that requeues the object, so nothing is written twice for one reason.
//
// Redelivery (RedeliveryController) carries out the annotation phoneproof.dev/redeliver: REQUESTID/NONCE of a project, which
// sends the event of a final request once more: verified, expired or declined.
//
//		annotation --> well formed? --> make the event due --> record it in the project's status --> emit an Event
//
//	  - What was carried out is stored with the request, in the same write that makes the event due: neither a restart nor
//	    a second leader nor a failing status does it again.
//	  - A failing store or status refuses nothing; it is retried.
//	  - A malformed annotation is refused once. The status could not hold every one, so a hash of it is recorded.
//	  - At most one redelivery a second: an annotation in a loop must not become a flood.
package request
