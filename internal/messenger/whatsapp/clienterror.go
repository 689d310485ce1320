package whatsapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
)

// ErrNoSimulator says that the credentials are the simulator's and there is none. No call was made.
var ErrNoSimulator = errors.New("the account is simulated and there is no simulator")

// Kind says what an Error of the Graph API asks for.
type Kind string

const (
	// KindUnreachable is no answer at all, or not in time. Trying again may help.
	KindUnreachable Kind = "unreachable"
	// KindUnavailable is an answer that says it is the platform's fault. Trying again may help.
	KindUnavailable Kind = "unavailable"
	// KindRateLimited is an answer that asks for patience.
	KindRateLimited Kind = "rate_limited"
	// KindCredentials is an access token that is missing, wrong, expired, or lacks a permission. Somebody must act.
	KindCredentials Kind = "credentials"
	// KindRefused is everything else: the same request will fail again.
	KindRefused Kind = "refused"
)

// Error is a failed call. It holds numbers only: what net/http says names the URL, and what Meta says may name numbers and
// ids.
type Error struct {
	Kind Kind
	// Status is that of HTTP; 0 without an answer.
	Status int
	// Code and Subcode are Meta's ("Error codes"); 0 if there are none, as in the page of a proxy.
	Code    int
	Subcode int
	// RetryAfter is how long Meta asks to wait; zero if it does not.
	RetryAfter time.Duration

	cause error
}

// Error describes the failure by its numbers.
func (e *Error) Error() string {
	text := "WhatsApp Graph API: " + string(e.Kind)
	if e.Status != 0 {
		text += fmt.Sprintf(", HTTP %d", e.Status)
	}
	if e.Code != 0 {
		text += fmt.Sprintf(", code %d", e.Code)
	}
	if e.Subcode != 0 {
		text += fmt.Sprintf(", subcode %d", e.Subcode)
	}
	return text
}

// Temporary tells whether the same call may succeed later without anybody doing anything.
func (e *Error) Temporary() bool {
	return e.Kind == KindUnreachable || e.Kind == KindUnavailable || e.Kind == KindRateLimited
}

// PlatformFailed reports whether the answer says that the platform failed, such as 500; without a Code, a proxy may have.
func (e *Error) PlatformFailed() bool {
	return e.Kind == KindUnavailable && (e.Status < 200 || e.Status > 299)
}

// undeliverable reports whether the same message to the same user would be refused for ever, such as one to a user who
// cannot receive it (131026) or outside of the 24 hours (131047). What can be put right is not that: an expired token
// (190), a locked or unpaid account. Nor is an answer without a code, which a proxy may have given.
func undeliverable(err error) bool {
	failure, ok := errors.AsType[*Error](err)
	return ok && failure.Kind == KindRefused && failure.Code != 0 && !slices.Contains(accountCodes, failure.Code)
}

// accountCodes are refusals that are about the business and its account, and end when that is put in order (Cloud API, "Error
// codes"): a policy or an account restricted, access denied, display name, locked, payment, certificate, maintenance, not
// registered.
var accountCodes = []int{368, 131005, 131031, 131037, 131042, 131045, 131057, 133000, 133004, 133005, 133010}

// classOf returns the class of a call's outcome in metrics; empty for success.
func classOf(err error) messenger.CallFailure {
	failure, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		return ""
	case failure.PlatformFailed():
		return messenger.CallPlatformError
	case failure.Kind == KindUnavailable:
		return messenger.CallUnreadable
	case failure.Kind == KindRateLimited:
		return messenger.CallRateLimited
	case failure.Kind == KindCredentials:
		return messenger.CallCredentials
	case failure.Kind == KindRefused:
		return messenger.CallRefused
	case errors.Is(failure, context.DeadlineExceeded):
		return messenger.CallTimeout
	default:
		return messenger.CallUnreachable
	}
}

// Unwrap returns context.Canceled or context.DeadlineExceeded, if it was one of them.
func (e *Error) Unwrap() error { return e.cause }

// unreachable returns what may be told of an error of net/http: not its text, which holds the URL.
func unreachable(err error) error {
	return &Error{Kind: KindUnreachable, cause: messenger.ContextCause(err)}
}

// refused classifies an answer. Meta's own codes come first: many of its limits are answered with 400 (Graph API, "Rate
// limits", codes 4, 17, 32, 613; Cloud API, "Error codes", 80007, 130429, 131048, 131056).
func refused(response *http.Response, answer []byte) error {
	var body struct {
		Error struct {
			Code    int `json:"code"`
			Subcode int `json:"error_subcode"`
		} `json:"error"`
	}
	_ = json.Unmarshal(answer, &body) // a gateway's page has no codes
	e := &Error{
		Status: response.StatusCode, Code: body.Error.Code, Subcode: body.Error.Subcode,
		Kind: kindOf(response.StatusCode, body.Error.Code),
	}
	// Dates are not taken: no clock but ours is to be trusted with a wait.
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
	}
	return e
}

func kindOf(status, code int) Kind {
	switch code {
	case 4, 17, 32, 613, 80007, 130429, 131048, 131056:
		return KindRateLimited
	case 0:
	case 1, 2, 131000, 131016: // unknown and temporary
		return KindUnavailable
	case 3, 10, 102, 190:
		return KindCredentials
	}
	if code >= 200 && code <= 299 { // permissions
		return KindCredentials
	}
	switch {
	case status == http.StatusTooManyRequests:
		return KindRateLimited
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return KindCredentials
	case status >= http.StatusInternalServerError:
		return KindUnavailable
	default:
		return KindRefused
	}
}
