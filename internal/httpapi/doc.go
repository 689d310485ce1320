// Package httpapi is the HTTP API that client backends meet: api/openapi.yaml, answered exactly.
//
// A request passes in this order, and the first refusal ends it:
//
//	route (404) -> method (405) -> API key (401) -> scope (403) -> project suspended (503) ->
//	headers of the body (415, 413) -> body (408, 413, 400) -> fields (400) -> messenger (400, 503) -> store
//
// With an Idempotency-Key the two 503 stand last, because they are not for a retry whose first try was stored.
//
// Invariants: no body and no store is read before the API key is accepted; a refusal that needs nothing of the body does
// not wait for it and ends the connection, throwing away what of the body is on its way; every answer to a request,
// refusals included, is JSON with a stable code from the one table in errors.go, and writes one log line; what went
// wrong inside is logged and never sent; a log line or a metric never holds a query, a body, a number, a code or a key;
// and no client can make the process hold more than limits.go and boundedhttp say.
//
// The exception is what net/http refuses by itself, before there is a request to handle: it answers 400, 417, 431, 501
// or 505 in plain text, or nothing where headers broke off or took too long, and closes the connection. Nothing of that
// is logged, since there is nothing in it to trust; phoneproof_http_unserved_requests_total counts it.
package httpapi
