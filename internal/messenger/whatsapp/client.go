package whatsapp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/version"
)

// GraphVersion is the version of the Graph API that the calls below are written for.
const GraphVersion = "v25.0"

// DefaultGraphURL is where Meta's Graph API is.
const DefaultGraphURL = "https://graph.facebook.com"

// simulatorPrefix begins the credentials that exist at the simulator only.
const simulatorPrefix = "sim_"

// phoneNumberID is what may stand in a path; Meta's ids are digits.
var phoneNumberID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ClientOptions are what a Client is made of. Where it connects to is decided here and nowhere else.
type ClientOptions struct {
	// GraphURL is the root of Meta's Graph API, without version; DefaultGraphURL if empty.
	GraphURL string
	// SimulatorURL is the same of the simulator; empty if there is none, and then simulated accounts are refused.
	SimulatorURL string
	// Metrics measure the calls; nil for no measuring.
	Metrics *messenger.CallMetrics
}

// Client calls the Graph API for a WhatsApp account. The credentials of a simulated account go to the simulator and
// nowhere else; all others never go there. It is safe for concurrent use.
type Client struct {
	graph     *endpoint
	simulator *endpoint // nil if there is none
	recorder  *messenger.CallRecorder
}

// endpoint is one of the two worlds, with connections of its own.
type endpoint struct {
	base string
	http *http.Client
}

// NewClient returns a client, or an error if its URLs cannot be meant.
func NewClient(o ClientOptions) (*Client, error) {
	if o.GraphURL == "" {
		o.GraphURL = DefaultGraphURL
	}
	graph, err := root(o.GraphURL, true)
	if err != nil {
		return nil, fmt.Errorf("the Graph API's URL: %w", err)
	}
	c := &Client{graph: newEndpoint(graph, http.ProxyFromEnvironment), recorder: o.Metrics.Recorder(verification.WhatsApp, operations[:]...)}
	if o.SimulatorURL == "" {
		return c, nil
	}
	simulator, err := root(o.SimulatorURL, false)
	if err != nil {
		return nil, fmt.Errorf("the simulator's URL: %w", err)
	}
	if strings.EqualFold(simulator.Host, graph.Host) {
		return nil, errors.New("the simulator's URL and the Graph API's name the same host")
	}
	c.simulator = newEndpoint(simulator, nil)
	return c, nil
}

// root checks the root of an API. Real credentials go over TLS, except to this machine.
func root(raw string, tls bool) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("it is no URL")
	}
	if u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, errors.New("it must be http(s)://HOST[/PATH]")
	}
	if tls && u.Scheme != "https" {
		if ip, err := netip.ParseAddr(u.Hostname()); err != nil || !ip.IsLoopback() {
			return nil, errors.New("it must be https")
		}
	}
	return u, nil
}

func newEndpoint(base *url.URL, proxy func(*http.Request) (*url.URL, error)) *endpoint {
	return &endpoint{
		base: strings.TrimSuffix(base.String(), "/") + "/" + GraphVersion + "/",
		http: &http.Client{
			Timeout: clientTimeout,
			// A redirect would take the token to somebody else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				Proxy:                  proxy,
				DialContext:            (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
				ForceAttemptHTTP2:      true,
				TLSHandshakeTimeout:    5 * time.Second,
				ResponseHeaderTimeout:  clientTimeout,
				MaxResponseHeaderBytes: 32 << 10,
				MaxIdleConnsPerHost:    messenger.ReplyWorkers,
				MaxConnsPerHost:        2 * senders,
				IdleConnTimeout:        90 * time.Second,
			},
		},
	}
}

// endpoint returns the world that the account belongs to. The credential itself is looked at too: whatever the settings
// say, it decides.
func (c *Client) endpoint(account *settings.WhatsApp) (*endpoint, error) {
	token := account.AccessToken.Current()
	switch simulated := bytes.HasPrefix(token, []byte(simulatorPrefix)); {
	case len(token) == 0:
		return nil, &Error{Kind: KindCredentials}
	case simulated != account.Simulated:
		return nil, errors.New("the account's credentials are of two worlds")
	case !phoneNumberID.MatchString(account.PhoneNumberID):
		return nil, errors.New("the account's phoneNumberID is none")
	case !simulated:
		return c.graph, nil
	case c.simulator == nil:
		return nil, ErrNoSimulator
	default:
		return c.simulator, nil
	}
}

// stranded says that the account is the simulator's, and there is none. Its secrets are made up, and easily guessed: nothing
// that claims to come from it is believed then.
func (c *Client) stranded(account *settings.WhatsApp) bool {
	return account.Simulated && c.simulator == nil
}

// The operations, as metrics name them.
const (
	sendMessage    = "send_message"
	readNumber     = "read_number"
	readCallback   = "read_callback"
	setCallback    = "set_callback"
	removeCallback = "remove_callback"
)

var operations = [...]string{sendMessage, readNumber, readCallback, setCallback, removeCallback}

// call is one call of the Graph API.
type call struct {
	operation string
	method    string
	path      string // below that of the number
	query     url.Values
	body      any // nil for none
}

// do makes a call and decodes its answer into into, unless that is nil.
func (c *Client) do(ctx context.Context, account *settings.WhatsApp, k call, into any) error {
	to, err := c.endpoint(account)
	if err != nil {
		return err
	}
	var payload io.Reader
	if k.body != nil {
		encoded, err := json.Marshal(k.body)
		if err != nil {
			return errors.New("encode the request")
		}
		payload = bytes.NewReader(encoded)
	}
	address := to.base + account.PhoneNumberID + k.path
	if len(k.query) > 0 {
		address += "?" + k.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, k.method, address, payload)
	if err != nil {
		return errors.New("make the request")
	}
	request.Header.Set("Authorization", "Bearer "+string(account.AccessToken.Current()))
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", version.UserAgent())
	if k.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	start := time.Now()
	err = to.exchange(request, into)
	if !errors.Is(err, context.Canceled) {
		c.recorder.Record(k.operation, time.Since(start), classOf(err))
	}
	return err
}

// exchange sends a request and reads its answer.
func (e *endpoint) exchange(request *http.Request, into any) error {
	response, err := e.http.Do(request)
	if err != nil {
		return unreachable(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return unreachable(err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return refused(response, answer)
	}
	if into != nil && json.Unmarshal(answer, into) != nil {
		return &Error{Kind: KindUnavailable, Status: response.StatusCode}
	}
	if c, ok := into.(*confirmation); ok && !c.Success {
		return &Error{Kind: KindRefused, Status: response.StatusCode}
	}
	return nil
}
