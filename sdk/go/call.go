package phoneproof

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	maxTries      = 3
	firstPause    = 200 * time.Millisecond // the longest before the second try; twice as long before each further one
	maxRetryAfter = 10 * time.Second
	day           = 24 * time.Hour
	maxAnswer     = 1 << 20 // bytes
)

// call is a call of the API.
type call struct {
	method string // empty for GET
	path   string // below /api/verify, or with a slash at its beginning below the base URL
	query  url.Values
	body   any // nil for none
	// idempotencyKey is the header of that name.
	idempotencyKey string
	// hold is how long the server may hold its answer.
	hold time.Duration
	// isCounted is set if the server may count a call whose answer is lost: such a call is not repeated.
	isCounted bool
}

// sendCall makes a call, and returns its answer.
func sendCall[Answer any](ctx context.Context, c *Client, what call) (*Answer, error) {
	answer := new(Answer)
	if err := c.call(ctx, what, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// sendCallFor is sendCall, which refuses an empty id of a request.
func sendCallFor[Answer any](ctx context.Context, c *Client, requestID string, what call) (*Answer, error) {
	if requestID == "" {
		return nil, newArgumentError("requestId", "the id of a request is empty")
	}
	return sendCall[Answer](ctx, c, what)
}

// call makes a call, with retries, and decodes its answer. An error is an *Error, or that of ctx.
func (c *Client) call(ctx context.Context, what call, into any) error {
	var body []byte
	if what.idempotencyKey != "" && !isPrintable(what.idempotencyKey) {
		return newArgumentError("Idempotency-Key", "an Idempotency-Key has characters of ASCII alone, without spaces and line breaks")
	}
	if what.body != nil {
		var err error
		if body, err = json.Marshal(what.body); err != nil {
			return &Error{Code: CodeInvalidArgument, Message: "the parameters cannot be written as JSON", cause: err}
		}
	}
	for try := 1; ; try++ {
		err := c.tryCall(ctx, what, body, into)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if try == maxTries || !what.mayRepeat(err) {
			return err
		}
		pause := rand.N(firstPause << (try - 1)) //nolint:gosec // no secret
		select {
		case <-time.After(max(pause, err.RetryAfter)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// mayRepeat reports whether a failed call may be made once more.
func (what call) mayRepeat(err *Error) bool {
	switch {
	case err.RetryAfter > maxRetryAfter:
		return false
	case what.isCounted && isUnanswered(err):
		return false
	case err.Status == http.StatusTooManyRequests:
		return err.Code != codeCodesLimited && err.RateLimit != "declined"
	case err.Code == CodeConnectionFailed || err.Code == CodeTimedOut:
		return true
	default:
		return err.Status == http.StatusInternalServerError || err.Status == http.StatusBadGateway ||
			err.Status == http.StatusServiceUnavailable || err.Status == http.StatusGatewayTimeout
	}
}

// isUnanswered reports whether it is not known what became of a call: its answer was lost, or came from a proxy, or the server does
// not know it either.
func isUnanswered(err error) bool {
	var failure *Error
	if !errors.As(err, &failure) {
		return true // the context of the call ended
	}
	switch failure.Code {
	case CodeConnectionFailed, CodeTimedOut, CodeUnexpectedAnswer, codeInternal, codeStoreUnavailable:
		return true
	default:
		return failure.Status >= http.StatusInternalServerError && failure.Status != http.StatusServiceUnavailable
	}
}

// tryCall makes one try of a call.
func (c *Client) tryCall(ctx context.Context, what call, body []byte, into any) *Error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout+what.hold)
	defer cancel()
	path := what.path
	if !strings.HasPrefix(path, "/") {
		path = "/api/verify/" + path
	}
	if len(what.query) > 0 {
		path += "?" + what.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, cmp.Or(what.method, http.MethodGet), c.baseURL+path, bytes.NewReader(body))
	if err != nil {
		return &Error{Code: CodeInvalidArgument, Message: "the call cannot be made", cause: err}
	}
	request.Header.Set("Authorization", "Bearer "+c.apiKey())
	request.Header.Set("User-Agent", "phoneproof-go/"+Version)
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if what.idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", what.idempotencyKey)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return newConnectionError(err)
	}
	defer response.Body.Close()
	return readAnswer(response, into)
}

// newConnectionError returns the error of a call without a whole answer.
func newConnectionError(cause error) *Error {
	var timeout interface{ Timeout() bool }
	if errors.As(cause, &timeout) && timeout.Timeout() {
		return &Error{Code: CodeTimedOut, Message: "the server did not answer in time", cause: cause}
	}
	return &Error{Code: CodeConnectionFailed, Message: "the connection failed: " + cause.Error(), cause: cause}
}

// readAnswer decodes an answer, or returns its error.
func readAnswer(response *http.Response, into any) *Error {
	failure := &Error{
		Status: response.StatusCode, HTTPRequestID: response.Header.Get("X-Request-ID"),
		RetryAfter: parseRetryAfter(response.Header.Get("Retry-After")),
	}
	if _, limit, found := strings.Cut(response.Header.Get("Ratelimit"), `"`); found && response.StatusCode == http.StatusTooManyRequests {
		failure.RateLimit, _, _ = strings.Cut(limit, `"`)
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		failure.Code, failure.Message = CodeRedirected, "the server redirects, which is not followed: correct the base URL"
		return failure
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return newConnectionError(err)
	}
	switch {
	case len(content) > maxAnswer:
		err = fmt.Errorf("it is longer than %d bytes", maxAnswer)
	case response.StatusCode < 300:
		if err = json.Unmarshal(content, into); err == nil {
			return nil
		}
	default:
		if err = failure.read(content); err == nil {
			return failure
		}
	}
	failure.Code, failure.cause = CodeUnexpectedAnswer, err
	failure.Message = "this is no answer of PhoneProof, but perhaps of a proxy: " + err.Error()
	return failure
}

// read takes what the server's error says.
func (e *Error) read(content []byte) error {
	var answer struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Field   string `json:"field"`
			Reason  string `json:"reason"`
		} `json:"error"`
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		return fmt.Errorf("read error: %w", err)
	}
	e.Code, e.Message, e.Field, e.Reason = answer.Error.Code, answer.Error.Message, answer.Error.Field, answer.Error.Reason
	return require(e.Code)
}

// parseRetryAfter returns how long a header Retry-After asks to wait, and 0 without one: a day at most, also for what is neither a number
// nor a date.
func parseRetryAfter(value string) time.Duration {
	if value == "" {
		return 0
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(time.Until(at), 0), day)
	}
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return day
	}
	return min(time.Duration(seconds)*time.Second, day)
}
