package phoneproof

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	defaultTimeout = 10 * time.Second
	longestHold    = 20 * time.Second // of a status that is waited for
	waitPause      = time.Second      // between the beginnings of two calls of Wait
	waitMargin     = time.Second / 2  // that an answer may take on its way before a deadline
)

// Client calls the API of one project. It is safe for concurrent use. All of its methods end with the error of their context when that is
// canceled, and make at most three tries.
type Client struct {
	baseURL string
	// apiKey is a function, so that no form of printing a Client shows the key.
	apiKey  func() string
	timeout time.Duration
	http    *http.Client
}

// Option changes a Client.
type Option func(*Client)

// WithTimeout sets how long one try of a call may take, without the time that Wait asks the server to hold it. The default is ten seconds.
func WithTimeout(timeout time.Duration) Option {
	return func(c *Client) { c.timeout = timeout }
}

// WithHTTPClient sets what sends the calls. A copy is used, which follows no redirects and has no Timeout: it would end long polls, and
// WithTimeout limits each try.
func WithHTTPClient(client *http.Client) Option {
	return func(c *Client) { c.http = client }
}

// New returns a client of the project at baseURL, which may have a path. The error is an *Error with CodeInvalidBaseURL,
// CodeInvalidAPIKey or CodeInvalidArgument.
func New(baseURL, apiKey string, options ...Option) (*Client, error) {
	if !isBaseURL(baseURL) {
		return nil, newError(CodeInvalidBaseURL, "the base URL must be http or https, without user information, query and fragment")
	}
	if !isPrintable(apiKey) {
		return nil, newError(CodeInvalidAPIKey, "the API key must have characters of ASCII alone, without spaces and line breaks")
	}
	c := &Client{
		baseURL: strings.TrimRight(baseURL, "/"), apiKey: func() string { return apiKey }, timeout: defaultTimeout, http: http.DefaultClient,
	}
	for _, option := range options {
		option(c)
	}
	if c.timeout <= 0 || c.http == nil {
		return nil, newArgumentError("", "the timeout must be positive, and the HTTP client not nil")
	}
	own := *c.http
	own.Timeout = 0
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &own
	return c, nil
}

// isBaseURL reports whether calls can be made below an address.
func isBaseURL(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	return err == nil && isPrintable(address) && !strings.ContainsAny(address, `?#@\`) &&
		(u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// isPrintable reports whether a text has printable characters of ASCII alone, and at least one.
func isPrintable(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// String returns the address, without the API key.
func (c *Client) String() string { return "phoneproof.Client(" + c.baseURL + ")" }

// Start starts a verification, and returns the links for the user. At a server that sends no codes it returns ErrCodesUnsupported for
// DeliverCode.
func (c *Client) Start(ctx context.Context, params StartParams) (*Started, error) {
	key := params.IdempotencyKey
	if key == "" {
		key = "once_" + strings.ToLower(rand.Text()) // the form of keys that are made for one call alone
	}
	started, err := sendCall[Started](ctx, c, call{method: http.MethodPost, path: "init", body: params, idempotencyKey: key})
	if err == nil && params.Deliver == DeliverCode && started.CodeLength == 0 {
		message := "this server sends no codes: it is of an older version"
		return nil, &Error{Code: CodeCodesUnsupported, Status: http.StatusOK, Message: message}
	}
	return started, err
}

// Deliver has a code that you made sent to a number, and returns once that is stored, before it is sent: Get shows how it went. You check
// the code.
func (c *Client) Deliver(ctx context.Context, params DeliverParams) (*Delivered, error) {
	return sendCall[Delivered](ctx, c, call{method: http.MethodPost, path: "deliver", body: params, idempotencyKey: params.IdempotencyKey})
}

// Status returns where a request stands, at once.
func (c *Client) Status(ctx context.Context, requestID string) (*Status, error) {
	return c.readStatus(ctx, requestID, 0, nil)
}

// Wait waits until a request is Verified or Expired, or until the deadline of ctx: then it returns the last status, which is Pending,
// and no error, or context.DeadlineExceeded if there is no status. If ctx is canceled, it returns its error.
func (c *Client) Wait(ctx context.Context, requestID string) (*Status, error) {
	return c.waitForNews(ctx, requestID, nil)
}

// WaitForHint is Wait, which also returns once the hint differs from known, the hint of the status before; empty for none.
func (c *Client) WaitForHint(ctx context.Context, requestID, known string) (*Status, error) {
	return c.waitForNews(ctx, requestID, &known)
}

// waitForNews asks for the status until there is news. It makes one call a second at most, also where a server cannot hold them.
func (c *Client) waitForNews(ctx context.Context, requestID string, known *string) (*Status, error) {
	var last *Status
	for {
		pause := time.After(waitPause)
		status, err := c.readStatus(ctx, requestID, chooseHold(ctx), known)
		if err != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, err
		}
		if err == nil {
			last = status
		}
		if last != nil && (last.Status != Pending || known != nil && last.Hint != *known) {
			return last, nil
		}
		select {
		case <-pause:
		case <-ctx.Done():
			if last != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return last, nil
			}
			return nil, ctx.Err()
		}
	}
}

// chooseHold returns for how many seconds a status may be held, so that its answer comes before the deadline.
func chooseHold(ctx context.Context) time.Duration {
	deadline, limited := ctx.Deadline()
	if !limited {
		return longestHold
	}
	return min(max(time.Until(deadline)-waitMargin, 0).Truncate(time.Second), longestHold)
}

func (c *Client) readStatus(ctx context.Context, requestID string, hold time.Duration, known *string) (*Status, error) {
	query := url.Values{"id": {requestID}}
	if hold > 0 {
		query.Set("wait", strconv.Itoa(int(hold.Seconds()))+"s")
		if known != nil {
			query.Set("hint", *known)
		}
	}
	return sendCallFor[Status](ctx, c, requestID, call{path: "status", query: query, hold: hold})
}

// Confirm redeems a code: what the user typed, or the parameter code of the return. Take requestID from the session that started the
// request, as Sessions does. A code is sent twice only if the server counted nothing; if its answer is lost, one call of Status decides.
func (c *Client) Confirm(ctx context.Context, requestID, code string) (*Status, error) {
	status, err := sendCallFor[Status](ctx, c, requestID, call{
		method: http.MethodPost, path: "confirm", body: map[string]string{"requestId": requestID, "code": code}, isCounted: true,
	})
	if err == nil || ctx.Err() != nil || !isUnanswered(err) {
		return status, err
	}
	if now, statusErr := c.Status(ctx, requestID); statusErr == nil && now.Status == Verified {
		return now, nil
	}
	return nil, err
}

// Cancel ends a request that is Pending.
func (c *Client) Cancel(ctx context.Context, requestID string) (*Status, error) {
	body := map[string]string{"requestId": requestID}
	return sendCallFor[Status](ctx, c, requestID, call{method: http.MethodPost, path: "cancel", body: body})
}

// Redeliver has the event of a request that has ended sent once more.
func (c *Client) Redeliver(ctx context.Context, requestID string) (*Request, error) {
	body := map[string]string{"requestId": requestID}
	return sendCallFor[Request](ctx, c, requestID, call{method: http.MethodPost, path: "redeliver", body: body})
}

// Get returns a stored request with the attempts to deliver its events.
func (c *Client) Get(ctx context.Context, requestID string) (*Request, error) {
	return sendCallFor[Request](ctx, c, requestID, call{path: "requests/" + url.PathEscape(requestID)})
}

// List returns the requests of the project, newest first, and calls for further ones as they are needed. An error ends it.
func (c *Client) List(ctx context.Context, params ListParams) iter.Seq2[*Request, error] {
	return c.walk(ctx, func(cursor string) call {
		query := url.Values{}
		for name, value := range map[string]string{
			"status": params.Status, "reference": params.Reference, "kind": params.Kind, "cursor": cursor,
		} {
			if value != "" {
				query.Set(name, value)
			}
		}
		if !params.Since.IsZero() {
			query.Set("since", params.Since.UTC().Format(time.RFC3339Nano))
		}
		if params.Limit != 0 {
			query.Set("limit", strconv.Itoa(params.Limit))
		}
		return call{path: "requests", query: query}
	})
}

// Find is List for the requests of a phone number.
func (c *Client) Find(ctx context.Context, params FindParams) iter.Seq2[*Request, error] {
	return c.walk(ctx, func(cursor string) call {
		body := struct {
			FindParams

			Cursor string `json:"cursor,omitempty"`
		}{params, cursor}
		return call{method: http.MethodPost, path: "requests/find", body: body}
	})
}

// page is an answer of List and Find.
type page struct {
	Requests   []Request `json:"requests"`
	NextCursor string    `json:"nextCursor"`
}

// walk yields the requests of all pages.
func (c *Client) walk(ctx context.Context, newCall func(cursor string) call) iter.Seq2[*Request, error] {
	return func(yield func(*Request, error) bool) {
		for cursor := ""; ; {
			p, err := sendCall[page](ctx, c, newCall(cursor))
			if err == nil && p.Requests == nil {
				err = &Error{Code: CodeUnexpectedAnswer, Status: http.StatusOK, Message: "the answer has no list of requests"}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range p.Requests {
				if !yield(&p.Requests[i], nil) {
					return
				}
			}
			if cursor = p.NextCursor; cursor == "" {
				return
			}
		}
	}
}

// OpenAPI returns the server's description of its API.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	d, err := sendCall[document](ctx, c, call{path: "/openapi.json"})
	if err != nil {
		return nil, err
	}
	return d.raw, nil
}

// document is the answer of OpenAPI.
type document struct {
	OpenAPI string `json:"openapi"`

	raw json.RawMessage
}

// UnmarshalJSON reads an answer of the API.
func (d *document) UnmarshalJSON(content []byte) error {
	type plain document
	if err := unmarshal(content, (*plain)(d), &d.raw); err != nil {
		return err
	}
	return require(d.OpenAPI)
}
