package kubernetes

import (
	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// ErrIncomplete means that a manual request was not completed yet.
var ErrIncomplete = errIncomplete

// ParseObject returns the request that an object holds, for programs that read objects without a store. It fails with ErrIncomplete, or
// with an error that says why a server leaves the object alone.
func ParseObject(o *verifyv1.VerificationRequest) (verification.Request, error) { return toRequest(o) }
