package phoneproof

import (
	"errors"
	"fmt"
	"time"
)

// The kinds of errors that callers act on, for errors.Is.
var (
	// ErrAlreadyConfirmed matches a code that was redeemed before, by another call.
	ErrAlreadyConfirmed = errors.New("phoneproof: already confirmed")
	// ErrCodesUnsupported matches a Start with DeliverCode at a server that sends no codes.
	ErrCodesUnsupported = errors.New("phoneproof: codes unsupported")
	// ErrSignature matches an event that was not signed by a secret of the receiver, not now, or that was seen before.
	ErrSignature = errors.New("phoneproof: signature refused")
	// ErrSession matches what Sessions refuses.
	ErrSession = errors.New("phoneproof: session refused")
)

// Codes of errors that the library makes. All others are those of the server, which docs/errors.md lists.
const (
	CodeInvalidBaseURL   = "invalid_base_url"
	CodeInvalidAPIKey    = "invalid_api_key"
	CodeInvalidArgument  = "invalid_argument"
	CodeConnectionFailed = "connection_failed"
	CodeTimedOut         = "timed_out"
	CodeUnexpectedAnswer = "unexpected_answer"
	CodeRedirected       = "redirected"
	CodeCodesUnsupported = "codes_unsupported"

	CodeMissingSignature = "missing_signature"
	CodeInvalidSignature = "invalid_signature"
	CodeStaleTimestamp   = "stale_timestamp"
	CodeAlreadySeen      = "already_seen"
	CodeBodyTooLarge     = "body_too_large"
	CodeInvalidEvent     = "invalid_event"
	CodeNoSecret         = "no_secret"

	CodeNoRequest       = "no_request"
	CodeOtherRequest    = "other_request"
	CodeSessionIDNotNew = "session_id_not_new"
	CodeNotVerified     = "not_verified"
)

// Codes of the server that the library acts on.
const (
	codeAlreadyConfirmed = "already_confirmed"
	codeCodesLimited     = "codes_limited"
	codeInternal         = "internal"
	codeStoreUnavailable = "store_unavailable"
)

// kinds are the errors that errors.Is matches an Error with, by its code.
var kinds = map[string]error{
	codeAlreadyConfirmed: ErrAlreadyConfirmed,
	CodeCodesUnsupported: ErrCodesUnsupported,
	CodeMissingSignature: ErrSignature,
	CodeInvalidSignature: ErrSignature,
	CodeStaleTimestamp:   ErrSignature,
	CodeAlreadySeen:      ErrSignature,
	CodeNoRequest:        ErrSession,
	CodeOtherRequest:     ErrSession,
	CodeSessionIDNotNew:  ErrSession,
	CodeNotVerified:      ErrSession,
}

// Error is a failure of a call, or something that was refused. It never holds the API key.
type Error struct {
	// Code is the stable name of the cause: one of the constants here, or a code of the server. Decide by it.
	Code string
	// Reason is why a phone number was refused, with the code invalid_phone_number.
	Reason string
	// Field is the field, parameter or header at fault, if it is one.
	Field string
	// RateLimit is the name of the limit that a 429 reports: key, phoneNumber, prefix, subject, declined, codes or codesPhoneNumber.
	RateLimit string
	// Status is the HTTP status, and 0 without an answer.
	Status int
	// HTTPRequestID is the X-Request-Id of the answer, by which the server's log names the call.
	HTTPRequestID string
	// RetryAfter is how long the server asks to wait, a day at most, and 0 if it does not.
	RetryAfter time.Duration
	// Message is for developers. Do not show it to users.
	Message string

	cause error
}

// Error returns code, status and message.
func (e *Error) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("phoneproof: %s: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("phoneproof: %s (HTTP %d): %s", e.Code, e.Status, e.Message)
}

// Unwrap returns the cause, such as the error of the connection.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is the kind of the error.
func (e *Error) Is(target error) bool {
	kind, known := kinds[e.Code]
	return known && kind == target
}

func newError(code, message string) *Error { return &Error{Code: code, Message: message} }

func newArgumentError(field, message string) *Error {
	return &Error{Code: CodeInvalidArgument, Field: field, Message: message}
}
