package telegram

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/version"
)

// DefaultBaseURL is where the Bot API is.
const DefaultBaseURL = "https://api.telegram.org"

// simulatorPrefix begins every credential of the simulator.
const simulatorPrefix = "sim_"

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

// Client calls the Bot API. It follows no redirect, keeps no cookie and tells no token to anybody else. It is safe for
// concurrent use.
type Client struct {
	base      string
	simulator string
	http      *http.Client
	recorder  *messenger.CallRecorder
}

// NewClient returns a client, or an error about its URLs.
func NewClient(o ClientOptions) (*Client, error) {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	base, err := checkedURL(o.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("base URL of the Bot API: %w", err)
	}
	simulator := &url.URL{}
	if o.SimulatorURL != "" {
		if simulator, err = checkedURL(o.SimulatorURL); err != nil {
			return nil, fmt.Errorf("URL of the simulator: %w", err)
		}
	}
	if strings.EqualFold(simulator.Host, base.Host) {
		return nil, errors.New("the URLs of the simulator and of the Bot API name the same host")
	}
	if o.Transport == nil {
		o.Transport = newTransport(simulator.Host)
	}
	return &Client{
		base: root(base), simulator: root(simulator), recorder: o.Metrics.Recorder(verification.Telegram, methods[:]...),
		http: &http.Client{
			Transport: o.Transport,
			// The token is part of the URL, so another place would learn it.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// checkedURL reads a URL that calls may go to. It never repeats what it refuses.
func checkedURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("not a URL")
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "":
		return nil, errors.New("must begin with https:// or http:// and name a host")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("must have no user, query or fragment")
	}
	return u, nil
}

// root returns what the paths of calls follow; nothing of no URL.
func root(u *url.URL) string { return strings.TrimRight(u.String(), "/") }

// except returns a choice of proxies that has none for one host: what goes to the simulator goes nowhere else.
func except(host string, proxy func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		if r.URL.Host == host {
			return nil, nil //nolint:nilnil // which is how net/http wants to be told that there is no proxy
		}
		return proxy(r)
	}
}

func newTransport(simulator string) *http.Transport {
	return &http.Transport{
		// Only admins choose these URLs, and where they have a proxy, this is how they say so.
		Proxy:                  except(simulator, http.ProxyFromEnvironment),
		DialContext:            (&net.Dialer{Timeout: callTimeout}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    callTimeout,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    messenger.ReplyWorkers + maxConnections,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: maxAnswerBytes,
	}
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

// do makes a call with in as its parameters and puts the result into out. Its errors are *Error, or say why no call was
// made; none holds the token.
func (c *Client) do(ctx context.Context, account *settings.Telegram, k call, in, out any) error {
	base, token, err := c.endpoint(account)
	if err != nil {
		return err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return unavailable(k.method, "its parameters cannot be encoded", nil)
	}
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/bot"+token+"/"+k.method, bytes.NewReader(body))
	if err != nil { // It would repeat the URL.
		return unavailable(k.method, "its URL is not valid", nil)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", version.UserAgent())
	start := time.Now()
	err = c.exchange(request, k, token, out)
	if !errors.Is(err, context.Canceled) {
		c.recorder.Record(k.method, time.Since(start), classOf(err))
	}
	return err
}

// exchange sends a request and reads its answer.
func (c *Client) exchange(request *http.Request, k call, token string, out any) error {
	response, err := c.http.Do(request)
	if err != nil {
		return unavailable(k.method, withoutToken(err, token), err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(io.LimitReader(response.Body, k.maxBytes+1))
	switch {
	case err != nil:
		return unavailable(k.method, withoutToken(err, token), err)
	case int64(len(read)) > k.maxBytes:
		return &Error{Method: k.method, Code: response.StatusCode, kind: ErrTooLarge}
	}
	return k.finish(response.StatusCode, read, out)
}

// finish reads an answer. The answer's own code counts, because proxies change statuses.
func (k call) finish(status int, read []byte, out any) error {
	var a answer
	if err := json.Unmarshal(read, &a); err != nil || !a.OK && a.ErrorCode == 0 {
		return &Error{Method: k.method, Code: status, Foreign: true, kind: ErrUnavailable, detail: "not an answer of the Bot API"}
	}
	if !a.OK {
		return refused(k.method, a.ErrorCode, a)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(a.Result, out); err != nil {
		return &Error{Method: k.method, Code: status, kind: ErrUnavailable, detail: "its result cannot be read"}
	}
	return nil
}

// endpoint returns where an account lives and its token, or why there is nowhere to call.
func (c *Client) endpoint(account *settings.Telegram) (base, token string, err error) {
	token = string(account.BotToken.Current())
	simulated := strings.HasPrefix(token, simulatorPrefix)
	switch {
	case token == "":
		return "", "", ErrNoToken
	case simulated != account.Simulated:
		return "", "", ErrNoSimulator // never met: settings look at the same prefix
	case strings.ContainsFunc(token, notInToken):
		return "", "", ErrCredentials
	case !simulated:
		return c.base, token, nil
	case c.simulator == "":
		return "", "", ErrNoSimulator
	default:
		return c.simulator, token, nil
	}
}

// stranded says that the bot is the simulator's, and there is none. Its token is made up, and easily guessed: nothing that
// claims to come from it is believed then.
func (c *Client) stranded(account *settings.Telegram) bool {
	return account.Simulated && c.simulator == ""
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
