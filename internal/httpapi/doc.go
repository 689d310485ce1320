// Package httpapi is the HTTP API that client backends meet: api/openapi.yaml, answered exactly.
//
// A request passes in this order, and the first refusal ends it:
//
//	route (404) -> method (405) -> API key (401) -> scope (403) -> project suspended (503) ->
//	headers of the body (415, 413) -> body (408, 413, 400) -> fields (400) -> messenger (400, 503) -> store
//
// Invariants: no body and no store is read before the API key is accepted; a refusal that needs nothing of the body does
// not wait for it, and ends the connection (what of the body is on its way is thrown away, for half a second);
// every answer, refusals included, is JSON with a stable code from the one table in errors.go; what went wrong inside
// is logged and never sent; a log line or a metric never holds a query, a body, a number, a code or a key; and no
// client can make the process hold more than limits.go says.
package httpapi
