package telegram

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
)

// What a call of the Bot API can come to, for errors.Is.
var (
	// ErrCredentials says that Telegram refuses the token.
	ErrCredentials = errors.New("the bot's token is refused")
	// ErrConflict says that updates are fetched by somebody else or posted to a webhook.
	ErrConflict = errors.New("another poller or a webhook takes the updates")
	// ErrRateLimited says that there were too many calls; Error.RetryAfter says how long to wait.
	ErrRateLimited = errors.New("too many calls")
	// ErrRefused says that Telegram refuses what was asked; the same again would be refused again. So it is with a
	// chat whose user blocked the bot.
	ErrRefused = errors.New("the call is refused")
	// ErrUnavailable says that there was no answer that could be read. Whether the call did anything is not known.
	ErrUnavailable = errors.New("no usable answer")
	// ErrTooLarge says that the answer was over its limit.
	ErrTooLarge = errors.New("the answer is too large")
	// ErrNoSimulator says that the token is the simulator's and there is none. No call was made.
	ErrNoSimulator = errors.New("the token is the simulator's, and no simulator is configured")
	// ErrNoToken says that the project's secret holds no usable token. No call was made.
	ErrNoToken = errors.New("there is no usable bot token")
)

// Error is a call that failed. It never holds the URL or the token.
type Error struct {
	// Method is the Bot API's name of the call.
	Method string
	// Code is Telegram's error_code, or the status of HTTP where an answer has none; zero if there was no answer.
	Code int
	// Foreign reports whether the answer was not in the form of the Bot API: a proxy in front of it may have given it.
	Foreign bool
	// Description is Telegram's own text. It is for the status of a project and not part of Error(), because nobody
	// promises what is in it.
	Description string
	// RetryAfter is how long Telegram asks to wait; zero if it does not.
	RetryAfter time.Duration

	kind   error
	detail string
	cause  error // context.Canceled, context.DeadlineExceeded, or nil
}

// Error says what failed.
func (e *Error) Error() string {
	text := fmt.Sprintf("telegram %s: %v", e.Method, e.kind)
	if e.Code != 0 {
		text += fmt.Sprintf(" (%d)", e.Code)
	}
	if e.detail != "" {
		text += ": " + e.detail
	}
	return text
}

// Unwrap returns which of the errors above it is, and the context's error where that ended the call.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

// PlatformFailed reports whether the answer says that the platform failed, such as 500; where Foreign is set, a proxy may have.
func (e *Error) PlatformFailed() bool {
	return errors.Is(e.kind, ErrUnavailable) && e.Code >= http.StatusInternalServerError
}

// classOf returns the class of a call's outcome in metrics; empty for success.
func classOf(err error) messenger.CallFailure {
	failure, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		return ""
	case failure.PlatformFailed():
		return messenger.CallPlatformError
	case errors.Is(failure, ErrCredentials):
		return messenger.CallCredentials
	case errors.Is(failure, ErrRateLimited):
		return messenger.CallRateLimited
	case errors.Is(failure, ErrRefused), errors.Is(failure, ErrConflict):
		return messenger.CallRefused
	case failure.Code != 0:
		return messenger.CallUnreadable
	case errors.Is(failure, context.DeadlineExceeded):
		return messenger.CallTimeout
	default:
		return messenger.CallUnreachable
	}
}

// refused turns an error_code into an error.
func refused(method string, code int, a answer) error {
	e := &Error{Method: method, Code: code, Description: a.Description}
	if s := a.Parameters.RetryAfter; s > 0 {
		e.RetryAfter = time.Duration(min(s, int64(maxRetryAfter/time.Second))) * time.Second
	}
	switch {
	case code == http.StatusUnauthorized, code == http.StatusNotFound, code == http.StatusMisdirectedRequest:
		// A token that was never given gets 404, one that was revoked 401, and one of another server 421
		// (ClientManager.cpp). Our methods exist, so 404 means nothing else.
		e.kind = ErrCredentials
	case code == http.StatusConflict:
		e.kind = ErrConflict
	case code == http.StatusTooManyRequests:
		e.kind = ErrRateLimited
		e.RetryAfter = max(e.RetryAfter, time.Second)
	case code >= 400 && code < 500:
		e.kind = ErrRefused
	default:
		e.kind = ErrUnavailable
	}
	return e
}

// unavailable says that a call had no usable answer. Of its cause only what messenger.ContextCause returns is kept.
func unavailable(method, detail string, cause error) error {
	return &Error{Method: method, detail: detail, kind: ErrUnavailable, cause: messenger.ContextCause(cause)}
}

// retryAfter returns how long Telegram asks to wait; zero if it does not.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
