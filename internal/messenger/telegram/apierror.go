package telegram

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
)

// The errors of calls of the Bot API, for errors.Is.
var (
	// ErrCredentials is returned if Telegram refuses the token.
	ErrCredentials = errors.New("the bot's token is refused")
	// ErrConflict is returned if another poller fetches the updates, or they are posted to a webhook.
	ErrConflict = errors.New("another poller or a webhook takes the updates")
	// ErrRateLimited is returned after too many calls; Error.RetryAfter is how long to wait.
	ErrRateLimited = errors.New("too many calls")
	// ErrRefused is returned if Telegram refuses the call, and would refuse the same call again. So it is with a chat
	// whose user blocked the bot.
	ErrRefused = errors.New("the call is refused")
	// ErrUnavailable is returned without a readable answer. Whether the call had an effect is not known.
	ErrUnavailable = errors.New("no usable answer")
	// ErrTooLarge is returned if the answer was over its limit.
	ErrTooLarge = errors.New("the answer is too large")
	// ErrNoToken is returned if the project's secret holds no usable token. No call was made.
	ErrNoToken = errors.New("there is no usable bot token")
)

// Error is a call that failed. It never holds the URL or the token.
type Error struct {
	messenger.CallError

	// Method is the Bot API's name of the call.
	Method string
	// Code is Telegram's error_code, or the status of HTTP where an answer has none; zero if there was no answer.
	Code int
	// Foreign reports whether the answer was not in the form of the Bot API: a proxy in front of it may have given it.
	Foreign bool
	// Description is Telegram's own text. It is for the status of a project and not part of Error(), because its
	// content is not specified.
	Description string

	kind   error
	detail string
}

// Error describes the failure.
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

// Unwrap returns which of the errors above it is, and the context's error if that ended the call.
func (e *Error) Unwrap() []error {
	if cause := e.CallError.Unwrap(); cause != nil {
		return []error{e.kind, cause}
	}
	return []error{e.kind}
}

// Undeliverable reports whether Telegram would refuse the same message to the same user again, as when the user blocked the bot.
func (e *Error) Undeliverable() bool { return errors.Is(e.kind, ErrRefused) }

// unreadable is an answer that is not one of the Bot API's.
var unreadable = messenger.CallError{Class: messenger.CallUnreadable}

// refusalError returns the error for an error_code.
func refusalError(method string, code int, a answer) error {
	e := &Error{CallError: unreadable, Method: method, Code: code, Description: a.Description, kind: ErrUnavailable}
	e.RetryAfter = messenger.Wait(a.Parameters.RetryAfter, maxRetryAfter)
	switch {
	case code == http.StatusUnauthorized, code == http.StatusNotFound, code == http.StatusMisdirectedRequest:
		// A token that was never given gets 404, one that was revoked 401, and one of another server 421
		// (ClientManager.cpp). Our methods exist, so 404 means nothing else.
		e.kind, e.Class = ErrCredentials, messenger.CallCredentials
	case code == http.StatusConflict:
		e.kind, e.Class = ErrConflict, messenger.CallRefused
	case code == http.StatusTooManyRequests:
		e.kind, e.Class = ErrRateLimited, messenger.CallRateLimited
		e.RetryAfter = max(e.RetryAfter, time.Second)
	case code >= 400 && code < 500:
		e.kind, e.Class = ErrRefused, messenger.CallRefused
	case code >= http.StatusInternalServerError:
		e.Class = messenger.CallPlatformError
	}
	return e
}

// unavailableError returns the error of a call without a usable answer.
func unavailableError(method, detail string, cause error) error {
	return &Error{CallError: messenger.Unanswered(cause), Method: method, detail: detail, kind: ErrUnavailable}
}

// requestedWait returns how long Telegram asks to wait; zero if it does not.
func requestedWait(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
