// Package kubernetes keeps the requests of one project as VerificationRequest objects, with nothing to install beside
// the API server.
//
// The invariant: a method returns a state that the API server had committed at some moment after the call began. The
// informer's memory is used only where it cannot be wrong: for states that never change again (ReadFinal), as a first guess
// that a compare-and-set checks (Update, Delete), and for counts that the contract allows to lag (rates, room). Where
// it could be behind, the API server is read, once for all callers of the same key at a time; see sharedread.go for which
// calls share a read, and contacts.go for how a look-up by sender is made current. ReadCached alone
// may be behind, and is for loops, which learn of the next change.
//
// One object is one request: its spec is written once, by Create or by kubectl, and every transition is one write of
// the status with the resourceVersion that it was decided from. The object's name is the request's id. A request that
// was made with kubectl keeps its name as id, and a label leads from its code to it.
//
// People write objects, too. Whatever one holds, it is decoded without a panic, affects no other object, and is reported as
// malformed; see convert.go.
package kubernetes

// What keeping requests as objects takes. It is the power to verify any number of the namespace.
// +kubebuilder:rbac:groups=phoneproof.dev,resources=verificationrequests,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=phoneproof.dev,resources=verificationrequests/status,verbs=patch;update
