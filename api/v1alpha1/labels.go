package v1alpha1

// Labels and annotations of this group. No value of any of them ever holds a
// phone number, a code or a secret.
const (
	// ProjectLabel is set on every VerificationRequest that serve makes or
	// completes, and on every child of a project. Its value is derived from
	// the project's name and fits in 63 characters.
	ProjectLabel = "phoneproof.dev/project"

	// CodeIDLabel is set on a VerificationRequest that was made with kubectl,
	// whose name therefore is not the id that the code leads to. Its value is
	// that id, so that an incoming message finds the request by an index.
	CodeIDLabel = "phoneproof.dev/code-id"

	// RedeliverAnnotation on a VerificationProject, in the form
	// REQUESTID/NONCE, sends the event of a verified request once more.
	// Another nonce asks again.
	RedeliverAnnotation = "phoneproof.dev/redeliver"
)
