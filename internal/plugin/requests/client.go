package requests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/plugin"
	"github.com/phoneproof/phoneproof/internal/version"
)

const (
	// maxAnswer is more than the longest answer: 200 requests.
	maxAnswer = 4 << 20
	// callTimeout bounds one call; the longest is a long poll.
	callTimeout = 40 * time.Second
	// maxRetryAfter bounds the wait that the API asks for.
	maxRetryAfter = time.Minute
)

// apiClient calls the HTTP API of a project's pod through a port-forward.
type apiClient struct {
	http *http.Client
	key  string
}

// apiError is an answer that is not a success.
type apiError struct {
	Status  int
	Code    string
	Message string
	// RetryAfter is how long the API asks to wait; zero if it does not.
	RetryAfter time.Duration
}

// Error returns the API's own words.
func (e *apiError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("the API answered %d", e.Status)
	}
	return fmt.Sprintf("the API answered %d %s: %s", e.Status, e.Code, e.Message)
}

// hasCode reports whether err is an answer of the API with this code.
func hasCode(err error, code string) bool {
	answer, ok := errors.AsType[*apiError](err)
	return ok && answer.Code == code
}

// connectAPI returns a client for a ready pod of the project, with the API key of the flags.
func connectAPI(ctx context.Context, env *plugin.Env, c *plugin.Client, key *keyFlags) (*apiClient, error) {
	value, err := key.read(ctx, c)
	if err != nil {
		return nil, err
	}
	transport, err := plugin.DialReady(ctx, env, c, plugin.PortAPI)
	if err != nil {
		return nil, err
	}
	return &apiClient{http: &http.Client{Transport: transport, Timeout: callTimeout}, key: value}, nil
}

// read is call for what changes nothing. Lists have a limit of their own, so one that is refused is repeated when the API allows.
func (c *apiClient) read(ctx context.Context, path string, query url.Values, out any) error {
	return waitForTurn(ctx, func() error { return c.call(ctx, http.MethodGet, path, query, nil, out) })
}

// waitForTurn repeats a call that the API refused for its rate, after the time that it names.
func waitForTurn(ctx context.Context, call func() error) error {
	for {
		err := call()
		answer, ok := errors.AsType[*apiError](err)
		if !ok || answer.Status != http.StatusTooManyRequests || answer.RetryAfter <= 0 {
			return err
		}
		timer := time.NewTimer(min(answer.RetryAfter, maxRetryAfter))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// call sends a request and decodes the answer into out.
func (c *apiClient) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		encoded, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode body: %w", err)
		}
		body = bytes.NewReader(encoded)
	}
	address := url.URL{Scheme: "http", Host: "pod", Path: path, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, method, address.String(), body)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("User-Agent", version.UserAgent())
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, plugin.HideURL(err))
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s %s: read answer: %w", method, path, err)
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %w", method, path, readError(response, answer))
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s: decode answer: %w", method, path, err)
	}
	return nil
}

// readError returns the error of an answer in the form of the API's own.
func readError(response *http.Response, body []byte) *apiError {
	answer := &apiError{Status: response.StatusCode}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		answer.RetryAfter = time.Duration(seconds) * time.Second
	}
	var envelope struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &envelope) == nil {
		answer.Code, answer.Message = envelope.Error.Code, strings.TrimSpace(envelope.Error.Message)
	}
	return answer
}
