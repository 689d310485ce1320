package verification

import (
	"errors"
	"time"
)

// ErrorCode is the stable name of a cause that a client backend can meet. Codes are part of the API.
type ErrorCode string

// The codes of the domain. internal/httpapi adds those of HTTP itself and maps each to a status.
const (
	CodeInvalidPhoneNumber   ErrorCode = "invalid_phone_number"
	CodeOwnNumber            ErrorCode = "own_number"
	CodeNoTestNumber         ErrorCode = "not_a_test_number"
	CodeInvalidMethod        ErrorCode = "invalid_method"
	CodeMethodNotConfigured  ErrorCode = "method_not_configured"
	CodeInvalidSubject       ErrorCode = "invalid_subject"
	CodeInvalidReference     ErrorCode = "invalid_reference"
	CodeInvalidMetadata      ErrorCode = "invalid_metadata"
	CodeInvalidLocale        ErrorCode = "invalid_locale"
	CodeInvalidIdempotency   ErrorCode = "invalid_idempotency_key"
	CodeIdempotencyKeyReused ErrorCode = "idempotency_key_reused"
	CodeRateLimited          ErrorCode = "rate_limited"
	CodeTooManyStored        ErrorCode = "too_many_stored"
	CodeNotFound             ErrorCode = "request_not_found"
	CodeStoreUnavailable     ErrorCode = "store_unavailable"
	CodeChannelNotReady      ErrorCode = "channel_not_ready"

	CodeInvalidAssurance ErrorCode = "invalid_assurance"
	CodeInvalidPurpose   ErrorCode = "invalid_purpose"
	CodeInvalidBrowser   ErrorCode = "invalid_browser"
	CodeInvalidCode      ErrorCode = "invalid_code"
	CodeWrongCode        ErrorCode = "wrong_code"
	CodeNotProven        ErrorCode = "not_proven"
	CodeAlreadyConfirmed ErrorCode = "already_confirmed"
	CodeRequestExpired   ErrorCode = "request_expired"
	CodeNoConfirmation   ErrorCode = "confirmation_not_needed"
	CodeAlreadyVerified  ErrorCode = "already_verified"
	CodeNoEvent          ErrorCode = "no_event"

	CodeInvalidDeliver     ErrorCode = "invalid_deliver"
	CodeCodesNotConfigured ErrorCode = "codes_not_configured"
	CodeCountryRefused     ErrorCode = "country_not_allowed"
	CodeCodesLimited       ErrorCode = "codes_limited"
	CodeCodesBusy          ErrorCode = "codes_busy"
)

// Error is an error that a client backend may see: a stable code, a message that names the remedy, and, if one input
// is at fault, its field. Message never holds a number, a code or a key. Err is for logs only.
type Error struct {
	Code    ErrorCode
	Message string
	Field   string
	// Reason is the stable name of the kind of error within a code; empty where there is one kind.
	Reason string
	// Limit names the rate that refused, one of the Limit constants; empty with other codes.
	Limit string
	// RetryAfter is how long the client should wait; zero if waiting does not help.
	RetryAfter time.Duration
	Err        error
}

// Error returns the message with its code; the cause is reachable through Unwrap.
func (e *Error) Error() string {
	if e.Err != nil {
		return string(e.Code) + ": " + e.Message + ": " + e.Err.Error()
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches errors of the same code, so that the sentinels below work with errors.Is.
func (e *Error) Is(target error) bool {
	var other *Error
	return errors.As(target, &other) && other.Code == e.Code
}

// Errors of a store. Adapters return these or wrap them.
var (
	// ErrNotFound means that the project has no such request. Another project's request looks the same.
	ErrNotFound = &Error{Code: CodeNotFound, Message: "No verification request has this id. Ids are answered by the init operation and are kept for a limited time."}
	// ErrConflict means that another caller wrote first. Read again before you decide.
	ErrConflict = errors.New("the request changed in the meantime")
	// ErrContent means that the store refuses the content of the request. A retry does not help.
	ErrContent = errors.New("the store refuses the content of the request")
	// ErrUnchanged is returned by a mutation that finds nothing to do; the store then writes nothing and succeeds.
	ErrUnchanged = errors.New("nothing to change")
	// ErrTooManyUnknown means that a caller looked up too many unknown ids. Others are not affected.
	ErrTooManyUnknown = errors.New("the caller looks up too many unknown ids")
	// ErrLeaseLost means that another worker claimed the request after this one did.
	ErrLeaseLost = errors.New("the lease on the request was lost")
)

// Unavailable wraps a failure of the store's backend.
func Unavailable(err error) error {
	return &Error{
		Code:       CodeStoreUnavailable,
		Message:    "The service cannot reach its storage right now. Try again; with an Idempotency-Key that never starts two verifications.",
		RetryAfter: 2 * time.Second,
		Err:        err,
	}
}
