package verification

import (
	"errors"
	"time"
)

// ErrorCode is the stable name of a cause that a client backend can meet. Codes are part of the API.
type ErrorCode string

// The codes of the domain. internal/httpapi adds those of HTTP itself and maps each to a status.
const (
	// CodeInvalidPhoneNumber (tell): the text of its [`reason`](#texts-for-a-number-that-is-refused).
	CodeInvalidPhoneNumber ErrorCode = "invalid_phone_number"
	// CodeOwnNumber (tell): *This is our own number. Please enter yours.*
	CodeOwnNumber ErrorCode = "own_number"
	// CodeNoTestNumber (fix): a [test key](testing.md) where a live one belongs, or a real number in a test.
	CodeNoTestNumber ErrorCode = "not_a_test_number"
	// CodeInvalidMethod (fix): WHATSAPP or TELEGRAM.
	CodeInvalidMethod ErrorCode = "invalid_method"
	// CodeMethodNotConfigured (fix): call it again with the method that the message names.
	CodeMethodNotConfigured ErrorCode = "method_not_configured"
	// CodeInvalidSubject (fix): [what it takes](api.md#init-start-a-verification).
	CodeInvalidSubject ErrorCode = "invalid_subject"
	// CodeInvalidReference (fix): [what it takes](clients.md#your-own-data).
	CodeInvalidReference ErrorCode = "invalid_reference"
	// CodeInvalidMetadata (fix): [what it takes](clients.md#your-own-data).
	CodeInvalidMetadata ErrorCode = "invalid_metadata"
	// CodeInvalidLocale (fix): [what it takes](clients.md#your-own-data). Leave out one that you only guess.
	CodeInvalidLocale ErrorCode = "invalid_locale"
	// CodeInvalidIdempotency (fix): [what it takes](clients.md#your-own-data).
	CodeInvalidIdempotency ErrorCode = "invalid_idempotency_key"
	// CodeIdempotencyKeyReused (fix): one key for each verification, and the same fields with each of its tries.
	CodeIdempotencyKeyReused ErrorCode = "idempotency_key_reused"
	// CodeRateLimited (retry): init: if `RateLimit` is `"phoneNumber"`, `"prefix"`, `"subject"` or `"declined"`, tell *This number
	// cannot be verified right now. Please try again later.* [and nothing more](#not-me); if it is `"key"` or absent, *Many people are
	// signing up right now. Please try again in a few minutes.* If that lasts, raise [the
	// limits](spec/verificationproject.md#requests-and-limits). Status: [wait for news](#status) in place of a loop.
	CodeRateLimited ErrorCode = "rate_limited"
	// CodeTooManyStored (retry): *Many people are signing up right now. Please try again in a few minutes.* If it lasts: [the
	// store](runbook.md#phoneproofstoragefull).
	CodeTooManyStored ErrorCode = "too_many_stored"
	// CodeNotFound (tell): *Please start again.* It is past its retention, of another project, or a test key asked for a live request.
	CodeNotFound ErrorCode = "request_not_found"
	// CodeStoreUnavailable (retry): as with `internal`.
	CodeStoreUnavailable ErrorCode = "store_unavailable"
	// CodeChannelNotReady (retry): the account cannot be used now; nothing was counted. With init offer the other messenger, too.
	CodeChannelNotReady ErrorCode = "channel_not_ready"

	// CodeInvalidAssurance (fix): `SESSION`, or leave it out: no init lowers the project's level.
	CodeInvalidAssurance ErrorCode = "invalid_assurance"
	// CodeInvalidPurpose (fix): one of `spec.purposes`.
	CodeInvalidPurpose ErrorCode = "invalid_purpose"
	// CodeInvalidBrowser (fix): [what it takes](api.md#init-start-a-verification). Leave out one that you only guess.
	CodeInvalidBrowser ErrorCode = "invalid_browser"
	// CodeInvalidCode (tell): *Please enter all digits of the code.* It has neither six nor eight digits, nor is it a return code;
	// nothing was counted.
	CodeInvalidCode ErrorCode = "invalid_code"
	// CodeWrongCode (tell): *These digits are wrong. Please read them again.* Five tries in all, three with `deliver`, on the page and
	// in your form together; the last ends the request: ask for the status.
	CodeWrongCode ErrorCode = "wrong_code"
	// CodeNotProven (tell): *Please send the message first.* Wait for the hint `AWAITING_CONFIRMATION`. With `deliver` these are not the
	// eight digits: *Please enter all digits of the code.*
	CodeNotProven ErrorCode = "not_proven"
	// CodeAlreadyConfirmed (go on): no success, except where **this session's own** confirm got no answer before: then ask for the status
	// of its `requestId`, and `VERIFIED` means that it was carried out ([the libraries](clients.md) do).
	CodeAlreadyConfirmed ErrorCode = "already_confirmed"
	// CodeRequestExpired (tell): the text of the status's hint, and start anew. Cancel came too late.
	CodeRequestExpired ErrorCode = "request_expired"
	// CodeNoConfirmation (fix): the request is not at level Session: ask for the status.
	CodeNoConfirmation ErrorCode = "confirmation_not_needed"
	// CodeAlreadyVerified (go on): cancel came too late.
	CodeAlreadyVerified ErrorCode = "already_verified"
	// CodeNoEvent (fix): redeliver: the request is pending, the project has no webhook, or `spec.webhook.events` does not name the kind
	// of its event.
	CodeNoEvent ErrorCode = "no_event"

	// CodeInvalidDeliver (fix): `CODE`, or leave it out.
	CodeInvalidDeliver ErrorCode = "invalid_deliver"
	// CodeCodesNotConfigured (fix): the project has no `codes` in `spec.whatsapp`, or `spec.telegram` for `TELEGRAM`. Init works without
	// `deliver`.
	CodeCodesNotConfigured ErrorCode = "codes_not_configured"
	// CodeCountryRefused (tell): init again without `deliver`, and lead to its link. *We cannot send a code to this number right now.
	// Please send us a message instead.*
	CodeCountryRefused ErrorCode = "country_not_allowed"
	// CodeCodesLimited (tell): as with `country_not_allowed`; but if `RateLimit` is `"codesPhoneNumber"`, *This number cannot be
	// verified right now. Please try again later.* [and nothing more](#not-me).
	CodeCodesLimited ErrorCode = "codes_limited"
	// CodeCodesBusy (retry): nothing was stored; or init again without `deliver`.
	CodeCodesBusy ErrorCode = "codes_busy"
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
