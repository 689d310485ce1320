package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// DefaultBaseURL is where the Bot API is.
const DefaultBaseURL = "https://api.telegram.org"

// ClientOptions are what a Client is made of. Only flags of the process may set the URLs.
type ClientOptions struct {
	// BaseURL is the Bot API; DefaultBaseURL if empty.
	BaseURL string
	// SimulatorURL is the simulator's Bot API; empty if there is none, and then simulated accounts are refused.
	SimulatorURL string
	// Transport carries the requests; nil for one of its own. It is for tests.
	Transport http.RoundTripper
	// Metrics measure the calls; nil for no measuring.
	Metrics *messenger.CallMetrics
}

// Client calls the Bot API. It is safe for concurrent use.
type Client struct{ platform *messenger.Platform }

// NewClient returns a client, or an error about its URLs.
func NewClient(o ClientOptions) (*Client, error) {
	platform, err := messenger.NewPlatform(messenger.PlatformOptions{
		URL: cmp.Or(o.BaseURL, DefaultBaseURL), SimulatorURL: o.SimulatorURL, Transport: o.Transport,
		MaxIdleConns: messenger.ReplyWorkers + maxConnections, Recorder: o.Metrics.Recorder(verification.Telegram, methods[:]...),
	})
	if err != nil {
		return nil, fmt.Errorf("create client of the Bot API: %w", err)
	}
	return &Client{platform}, nil
}

// call is one call of the Bot API.
type call struct {
	method   string
	timeout  time.Duration
	maxBytes int64
}

// answer is what every method answers (core.telegram.org/bots/api, "Making requests").
type answer struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	ErrorCode   int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int64 `json:"retry_after"`
	} `json:"parameters"`
}

// callMethod makes a call with in as its parameters and puts the result into out. Its errors are *Error, or are about why no call was
// made; none holds the token.
func (c *Client) callMethod(ctx context.Context, account *settings.Telegram, k call, in, out any) error {
	key := account.BotToken.Current()
	if len(key) == 0 {
		return ErrNoToken
	}
	base, err := c.platform.BaseURL(key, account.Simulated)
	if err != nil {
		return fmt.Errorf("choose Bot API: %w", err)
	}
	token := string(key)
	if strings.ContainsFunc(token, notInToken) {
		return ErrCredentials
	}
	return c.platform.Do(ctx, messenger.Call{
		Operation: k.method, Method: http.MethodPost, URL: base + "/bot" + token + "/" + k.method, Body: in,
		Timeout: k.timeout, MaxBytes: k.maxBytes,
	}, func(a messenger.Answer) error {
		switch {
		case a.Err != nil:
			return unavailableError(k.method, withoutToken(a.Err, token), a.Err)
		case int64(len(a.Body)) > k.maxBytes:
			return &Error{CallError: unreadable, Method: k.method, Code: a.Status, kind: ErrTooLarge}
		default:
			return k.readAnswer(a.Status, a.Body, out)
		}
	})
}

// readAnswer reads an answer. The answer's own code counts, because proxies change statuses.
func (k call) readAnswer(status int, read []byte, out any) error {
	var a answer
	if err := json.Unmarshal(read, &a); err != nil || !a.OK && a.ErrorCode == 0 {
		e := &Error{CallError: unreadable, Method: k.method, Code: status, Foreign: true, kind: ErrUnavailable}
		e.detail = "not an answer of the Bot API"
		if status >= http.StatusInternalServerError {
			e.Class = messenger.CallPlatformError
		}
		return e
	}
	if !a.OK {
		return refusalError(k.method, a.ErrorCode, a)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(a.Result, out); err != nil {
		return &Error{CallError: unreadable, Method: k.method, Code: status, kind: ErrUnavailable, detail: "its result cannot be read"}
	}
	return nil
}

// notInToken tells what would change the path that a token is part of. BotFather gives digits, a colon and base64url.
func notInToken(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != ':' && r != '_' && r != '-'
}

// withoutToken returns what went wrong, without the URL that net/http puts in front of it.
func withoutToken(err error, token string) string {
	for {
		wrapped, ok := errors.AsType[*url.Error](err)
		if !ok {
			break
		}
		err = wrapped.Err
	}
	text := err.Error()
	for part := range strings.SplitSeq(token, ":") {
		if len(part) >= 8 { // shorter ones are no secret, and would tear words apart
			text = strings.ReplaceAll(text, part, "[token]")
		}
	}
	return text
}
