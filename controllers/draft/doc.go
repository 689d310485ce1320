// Package draft completes VerificationRequests that were made with kubectl or by other controllers: they name a project,
// a number and a method, and get what the API gives its clients: a code, the text with it, the link, and an end.
//
//	               .-- completed: a request like any other, the request controller's from then on
//	draft --> try -+-- refused: Accepted=False says why, and it is tried again where that can change by itself
//	               '-- store failed: tried again, sooner and then later
//
// Invariants:
//   - Why a draft is refused is decided by the pure functions of refusal.go alone.
//   - A failing store never refuses anything.
//   - What is written is itself a change that brings the draft here again, so nothing is written twice for one reason.
package draft
