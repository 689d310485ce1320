package messenger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/version"
)

const (
	// connectTimeout bounds the time until a connection can be used.
	connectTimeout = 10 * time.Second
	// maxHeaderBytes bounds the header of an answer.
	maxHeaderBytes = 64 << 10
)

// ErrNoSimulator is returned for credentials of the simulator if none is configured. No call was made.
var ErrNoSimulator = errors.New("the credentials are the simulator's, and no simulator is configured")

// PlatformOptions configure a Platform. Only flags of the process may set the URLs.
type PlatformOptions struct {
	// URL is the root of the API.
	URL string
	// SimulatorURL is the simulator's; empty if there is none, and then simulated accounts are refused.
	SimulatorURL string
	// TLS requires https, except for an address of this machine.
	TLS bool
	// Transport carries the requests; nil for one of its own. It is for tests.
	Transport http.RoundTripper
	// MaxConns and MaxIdleConns bound the connections; zero is net/http's default.
	MaxConns, MaxIdleConns int
	// Recorder records the calls; nil for none.
	Recorder *CallRecorder
}

// Platform calls the API of a messenger. The credentials of a simulated account go to the simulator and nowhere else; all others
// never go there. It follows no redirect and keeps no cookie. It is safe for concurrent use.
type Platform struct {
	base, simulator string // without a slash at the end; simulator is empty if there is none
	http            *http.Client
	recorder        *CallRecorder
}

// NewPlatform returns a platform, or an error about its URLs.
func NewPlatform(o PlatformOptions) (*Platform, error) {
	base, err := parseBaseURL(o.URL, o.TLS)
	if err != nil {
		return nil, fmt.Errorf("URL of the API: %w", err)
	}
	simulator := &url.URL{}
	if o.SimulatorURL != "" {
		if simulator, err = parseBaseURL(o.SimulatorURL, false); err != nil {
			return nil, fmt.Errorf("URL of the simulator: %w", err)
		}
	}
	if strings.EqualFold(simulator.Host, base.Host) {
		return nil, errors.New("the URLs of the simulator and of the API name the same host")
	}
	if o.Transport == nil {
		o.Transport = newTransport(o, simulator.Host)
	}
	return &Platform{
		base: strings.TrimRight(base.String(), "/"), simulator: strings.TrimRight(simulator.String(), "/"), recorder: o.Recorder,
		http: &http.Client{
			Transport: o.Transport,
			// The target of a redirect would get the credentials.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// parseBaseURL reads the root of an API. Its errors never repeat what it refuses.
func parseBaseURL(raw string, tls bool) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("not a URL")
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "":
		return nil, errors.New("must begin with https:// or http:// and name a host")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("must have no user, query or fragment")
	case tls && u.Scheme != "https":
		if ip, err := netip.ParseAddr(u.Hostname()); err != nil || !ip.IsLoopback() {
			return nil, errors.New("must begin with https://")
		}
	}
	return u, nil
}

func newTransport(o PlatformOptions, simulator string) *http.Transport {
	return &http.Transport{
		// Only admins choose the URLs and the environment, where a proxy is set.
		Proxy:                  proxyExcept(simulator, http.ProxyFromEnvironment),
		DialContext:            (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout:    connectTimeout,
		ForceAttemptHTTP2:      true,
		MaxConnsPerHost:        o.MaxConns,
		MaxIdleConnsPerHost:    o.MaxIdleConns,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// proxyExcept returns a proxy function without a proxy for one host: calls of the simulator go to no other machine.
func proxyExcept(host string, proxy func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		if r.URL.Host == host {
			return nil, nil //nolint:nilnil // net/http takes it for no proxy
		}
		return proxy(r)
	}
}

// BaseURL returns the root of the API that credentials belong to. The credentials themselves decide, too, whatever the
// settings of the account are.
func (p *Platform) BaseURL(credentials []byte, simulated bool) (string, error) {
	switch {
	case settings.Simulated(credentials) != simulated, p.Stranded(simulated):
		return "", ErrNoSimulator
	case simulated:
		return p.simulator, nil
	default:
		return p.base, nil
	}
}

// Stranded reports whether an account is simulated and there is no simulator. Its secrets are easily guessed, so messages that claim to
// come from it are rejected.
func (p *Platform) Stranded(simulated bool) bool { return simulated && p.simulator == "" }

// Call is a call of a platform.
type Call struct {
	Operation, Method, URL string
	Header                 http.Header // nil for none but the usual
	Body                   any         // nil for none
	Timeout                time.Duration
	MaxBytes               int64 // of the answer
}

// Answer is the answer to a call. Without one, or without all of it, Err is the reason, which may name the URL.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // one byte more than Call.MaxBytes means that it was larger
	Err    error
}

// Do makes a call. read turns the answer into an error, which is recorded and returned.
func (p *Platform) Do(ctx context.Context, c Call, read func(Answer) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	start := time.Now()
	err := read(p.exchange(ctx, c))
	if !errors.Is(err, context.Canceled) {
		p.recorder.Record(c.Operation, time.Since(start), failureClass(err))
	}
	return err
}

func (p *Platform) exchange(ctx context.Context, c Call) Answer {
	var body io.Reader
	var encoded []byte
	if c.Body != nil {
		var err error
		if encoded, err = json.Marshal(c.Body); err != nil {
			return Answer{Err: errors.New("encode parameters")}
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, c.Method, c.URL, body)
	if err != nil {
		return Answer{Err: errors.New("make request")}
	}
	if c.Header != nil {
		request.Header = c.Header
	}
	if c.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("User-Agent", version.UserAgent())
	connected := false
	var wrote atomic.Bool
	trace := &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { connected = true },
		WroteRequest: func(info httptrace.WroteRequestInfo) { wrote.Store(wrote.Load() || info.Err == nil) },
	}
	if c.Body != nil {
		request.GetBody = func() (io.ReadCloser, error) { // net/http asks for it before it repeats a request
			if wrote.Load() {
				return nil, errors.New("the call may have been made")
			}
			return io.NopCloser(bytes.NewReader(encoded)), nil
		}
	}
	response, err := p.http.Do(request.WithContext(httptrace.WithClientTrace(ctx, trace)))
	switch {
	case err != nil && !connected:
		return Answer{Err: unsentError{err}}
	case err != nil:
		return Answer{Err: err}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, c.MaxBytes+1))
	return Answer{Status: response.StatusCode, Header: response.Header, Body: content, Err: err}
}

// CallError is what failed calls of all platforms have in common.
type CallError struct {
	Class CallFailure
	// RetryAfter is how long the platform asks to wait; zero if it does not.
	RetryAfter time.Duration
	// Unsent is set if nothing of the call was sent, because there was no connection.
	Unsent bool

	cause error // context.Canceled, context.DeadlineExceeded, or nil
}

// Unanswered returns the failure of a call without an answer. Of its cause only what ContextCause returns is kept: the text of
// net/http holds the URL.
func Unanswered(cause error) CallError {
	_, unsent := errors.AsType[unsentError](cause)
	e := CallError{Class: CallUnreachable, Unsent: unsent, cause: ContextCause(cause)}
	if errors.Is(e.cause, context.DeadlineExceeded) {
		e.Class = CallTimeout
	}
	return e
}

// unsentError is the failure of a call of which nothing was sent.
type unsentError struct{ error }

// Unwrap returns the failure.
func (e unsentError) Unwrap() error { return e.error }

// Unwrap returns the context's error if that ended the call.
func (e *CallError) Unwrap() error { return e.cause }

// PlatformFailed reports whether the answer was that the platform failed, such as 500. A proxy may have given it.
func (e *CallError) PlatformFailed() bool { return e.Class == CallPlatformError }

// Temporary reports whether the same call may succeed later without a change by the user.
func (e *CallError) Temporary() bool { return e.Class != CallCredentials && e.Class != CallRefused }

// FailureClass returns the class of the failure.
func (e *CallError) FailureClass() CallFailure { return e.Class }

// failureClass returns the class of a failed call; empty for success, or if no call was made.
func failureClass(err error) CallFailure {
	failure, ok := errors.AsType[interface {
		error
		FailureClass() CallFailure
	}](err)
	if !ok {
		return ""
	}
	return failure.FailureClass()
}

// Wait returns so many seconds, at most as long as most; zero if there are none.
func Wait(seconds int64, most time.Duration) time.Duration {
	return time.Duration(min(max(seconds, 0), int64(most/time.Second))) * time.Second
}
