// Package webhook notifies a project's receiver that a number was verified. It is the only client of URLs that tenants
// choose.
//
// One call of Sender.Send is one attempt:
//
//	Event (bytes that never change) --> sign --> limit per receiver --> lease gate --> guarded dial --> classify
//
// and NextAttempt returns when the next one is due. The caller stores the state in between.
//
// Invariants:
//   - The body and the webhook-id of an event are the same on every attempt, in every process and version.
//   - The signed bytes are the bytes sent, and an event of a signed endpoint is never sent unsigned.
//   - No connection is made to an address that the Guard did not check after DNS, whatever the URL looks like. There are
//     no proxies, no redirects and no cookies, so there is no second hop to check.
//   - Only a 2xx answer is success, whatever follows its header.
//   - A fault of this process (a missing secret, a lost lease, no free slot, no file descriptors) is an error and not an
//     attempt: it does not use up the schedule.
//   - A reason, an error, a log line or a metric never holds any part of the URL, an address, the event, a secret or the
//     answer.
//
// Delivery is at least once: receivers drop duplicates by webhook-id.
package webhook
