package webhook

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// errBadURL is the error of a URL that cannot be called. It hides url.Parse's error, which holds the URL.
var errBadURL = errors.New("not an http or https URL with a host and no user info")

// Endpoint is where a project's events are sent. It prints as a placeholder, since its URL may hold a token.
type Endpoint struct{ redact.Value[destination] }

type destination struct {
	namespace string
	url       string
	signed    bool
	current   secret
	previous  secret
	timeout   time.Duration
	caBundle  []byte
	// test is set for the receiver of test keys, whose attempts are counted apart.
	test bool
}

// NewEndpoint returns the endpoint of a project's webhook. The admin's allow rules apply to the project's namespace.
func NewEndpoint(namespace string, w *settings.Webhook) Endpoint {
	d := destination{
		namespace: namespace, url: w.URL, signed: w.Signed, current: w.Secret, previous: w.PreviousSecret,
		timeout: w.Timeout, caBundle: w.CABundle,
	}
	if d.timeout <= 0 {
		d.timeout = DefaultTimeout
	}
	return newEndpoint(d)
}

// NewTestEndpoint returns the endpoint of the events of test keys: the same rules and authorities, at another URL, and always signed by
// a secret of their own.
func NewTestEndpoint(namespace string, w *settings.Webhook) Endpoint {
	d := NewEndpoint(namespace, w).Reveal()
	d.url, d.test = w.TestURL, true
	d.signed, d.current, d.previous = true, w.TestSecret, settings.Secret{}
	return newEndpoint(d)
}

func newEndpoint(d destination) Endpoint { return Endpoint{redact.New(d)} }

// parseURL checks everything that needs no DNS: the scheme, a host, no user info, no zone, a valid port. It does not
// look at the host's spelling; the guard checks the addresses that it resolves to.
func parseURL(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, errBadURL
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" || u.User != nil {
		return nil, errBadURL
	}
	host := u.Hostname()
	if host == "" || strings.ContainsAny(host, "% ") || strings.HasSuffix(u.Host, ":") {
		return nil, errBadURL
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errBadURL
		}
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// receiverKey returns the limiter's key of a receiver. That of test keys has slots of its own, also where it is at the same host.
func (d destination) receiverKey(u *url.URL) string {
	if d.test {
		return "test " + receiverOf(u)
	}
	return receiverOf(u)
}

// receiverOf returns the name of a receiver: its host and port.
func receiverOf(u *url.URL) string {
	return net.JoinHostPort(strings.ToLower(u.Hostname()), strconv.Itoa(int(portOf(u))))
}

// portOf returns the port of a URL that parseURL has accepted.
func portOf(u *url.URL) uint16 {
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	switch {
	case err == nil:
		return uint16(port)
	case u.Scheme == "http":
		return 80
	default:
		return 443
	}
}
