package whatsapp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// GraphVersion is the version of the Graph API that the calls below are written for.
const GraphVersion = "v25.0"

// DefaultGraphURL is where Meta's Graph API is.
const DefaultGraphURL = "https://graph.facebook.com"

// nodeID is what may stand in a path; Meta's ids are digits.
var nodeID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ClientOptions configure a Client, and are all that decides where it connects to.
type ClientOptions struct {
	// GraphURL is the root of Meta's Graph API, without version; DefaultGraphURL if empty.
	GraphURL string
	// SimulatorURL is the same of the simulator; empty if there is none, and then simulated accounts are refused.
	SimulatorURL string
	// Transport carries the requests; nil for one of its own. It is for tests.
	Transport http.RoundTripper
	// Metrics measure the calls; nil for no measuring.
	Metrics *messenger.CallMetrics
}

// Client calls the Graph API for a WhatsApp account. It is safe for concurrent use.
type Client struct{ platform *messenger.Platform }

// NewClient returns a client, or an error about its URLs. Real credentials go over TLS, except to this machine.
func NewClient(o ClientOptions) (*Client, error) {
	platform, err := messenger.NewPlatform(messenger.PlatformOptions{
		URL: cmp.Or(o.GraphURL, DefaultGraphURL), SimulatorURL: o.SimulatorURL, TLS: true, Transport: o.Transport,
		MaxConns: 2*senders + messenger.MaxCodesInFlight, MaxIdleConns: messenger.ReplyWorkers,
		Recorder: o.Metrics.Recorder(verification.WhatsApp, operations[:]...),
	})
	if err != nil {
		return nil, fmt.Errorf("create client of the Graph API: %w", err)
	}
	return &Client{platform}, nil
}

// The operations, as metrics name them.
const (
	sendMessage      = "send_message"
	readNumber       = "read_number"
	readCallback     = "read_callback"
	setCallback      = "set_callback"
	removeCallback   = "remove_callback"
	readToken        = "read_token"
	readNumbers      = "read_numbers"
	readSubscription = "read_subscription"
	subscribeApp     = "subscribe_app"
	sendCode         = "send_code"
	readTemplates    = "read_templates"
)

var operations = [...]string{
	sendMessage, readNumber, readCallback, setCallback, removeCallback, readToken, readNumbers, readSubscription, subscribeApp,
	sendCode, readTemplates,
}

// call is one call of the Graph API.
type call struct {
	operation string
	method    string
	node      string // the phoneNumberID if empty
	path      string // below that of the node
	query     url.Values
	body      any // nil for none
}

// callGraph makes a call and decodes its answer, unless into is nil.
func (c *Client) callGraph(ctx context.Context, account *settings.WhatsApp, k call, into any) error {
	token := account.AccessToken.Current()
	if len(token) == 0 {
		return &Error{CallError: messenger.CallError{Class: messenger.CallCredentials, Unsent: true}}
	}
	base, err := c.platform.BaseURL(token, account.Simulated)
	if err != nil {
		return fmt.Errorf("choose Graph API: %w", err)
	}
	node := cmp.Or(k.node, account.PhoneNumberID)
	if !nodeID.MatchString(node) {
		return errors.New("the account's phoneNumberID or businessAccountID is invalid")
	}
	address := base + "/" + GraphVersion + "/" + node + k.path
	if len(k.query) > 0 {
		address += "?" + k.query.Encode()
	}
	return c.platform.Do(ctx, messenger.Call{
		Operation: k.operation, Method: k.method, URL: address, Body: k.body, Timeout: clientTimeout, MaxBytes: maxAnswerBytes,
		Header: http.Header{"Authorization": {"Bearer " + string(token)}, "Accept": {"application/json"}},
	}, func(a messenger.Answer) error { return readAnswer(a, into) })
}

func readAnswer(a messenger.Answer, into any) error {
	switch {
	case a.Err != nil:
		return &Error{CallError: messenger.Unanswered(a.Err)}
	case a.Status < 200 || a.Status > 299:
		return refusalError(a)
	case into != nil && json.Unmarshal(a.Body, into) != nil:
		return &Error{CallError: messenger.CallError{Class: messenger.CallUnreadable}, Status: a.Status}
	}
	switch answer := into.(type) {
	case *confirmation:
		if !answer.Success {
			return &Error{CallError: messenger.CallError{Class: messenger.CallRefused}, Status: a.Status}
		}
	case *acceptance:
		if !answer.isComplete() {
			return &Error{CallError: messenger.CallError{Class: messenger.CallUnreadable}, Status: a.Status}
		}
	}
	return nil
}
