// Package httpapi implements the HTTP API for client backends, exactly as api/openapi.yaml describes it.
//
// A request is checked in this order, and the first failed check answers it:
//
//	route (404) -> method (405) -> API key (401) -> scope (403) -> project suspended (503) ->
//	headers of the body (415, 413) -> body (408, 413, 400) -> fields (400) -> messenger (400, 503) -> store
//
// With an Idempotency-Key the two 503 checks come last, because a retry whose first try was stored must still be answered. Status and
// confirm are answered for a suspended project, too, and count against the key's reads after the checks of their fields.
//
// Invariants:
//
//   - Neither the body nor the store is read before the API key is accepted.
//   - A refusal that does not depend on the body does not wait for it. It closes the connection and discards the rest of the body.
//   - Every answer, refusals included, is JSON with a stable code from the table in errors.go, and writes one log line.
//   - Internal errors are logged and never sent.
//   - Log lines and metrics never contain a query, a body, a phone number, a code or a key.
//   - No client can make the process use more memory than limits.go and package boundedhttp allow.
//
// The exception is requests that net/http rejects before they reach a handler: it answers 400, 417, 431, 501 or 505 in
// plain text, or nothing if the headers were cut off or took too long, and closes the connection. These are not logged,
// because their content cannot be trusted; phoneproof_http_unserved_requests_total counts them.
package httpapi
