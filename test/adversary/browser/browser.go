// Package browser plays the browsers of an adversary run: they keep cookies, follow redirects, submit forms, and obey what a page's
// Content-Security-Policy says of its forms, as real ones do. They run no scripts.
//
// The invariant: a browser reaches the hosts of its Network and no others.
package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxBody is longer than any page.
const maxBody = 1 << 20

// How often, and after how long, a request is sent again that was answered 503.
const (
	retries    = 20
	retryEvery = 500 * time.Millisecond
)

// Network leads each host to the address of what serves it.
type Network struct {
	Transport http.RoundTripper
	// Hosts returns the host:port that serves a host; empty for none.
	Hosts func(host string) string
}

// ErrNoSite is returned for a host that is not in the network, such as that of a messenger, which the phone opens by its app.
var ErrNoSite = errors.New("no such site")

// RoundTrip implements http.RoundTripper.
func (n *Network) RoundTrip(r *http.Request) (*http.Response, error) {
	address := n.Hosts(r.URL.Host)
	if address == "" {
		return nil, ErrNoSite
	}
	sent := r.Clone(r.Context())
	sent.Host, sent.URL.Scheme, sent.URL.Host = r.URL.Host, "http", address
	response, err := n.Transport.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	response.Request = r // browsers know nothing of addresses
	return response, nil
}

// Browser is one browser. It is safe for concurrent use.
type Browser struct {
	client http.Client

	mu   sync.Mutex
	seen []Seen
}

// Seen is a response that a browser received.
type Seen struct {
	// Sent is what the request held: its URL and its body.
	Sent string
	// Header and Body are the response.
	Header, Body string
}

// New returns a browser. One without cookies is a scanner, or a link preview.
func New(n *Network, cookies bool) *Browser {
	b := &Browser{}
	b.client.Transport = recorder{n, b}
	b.client.CheckRedirect = checkRedirect
	if cookies {
		b.client.Jar, _ = cookiejar.New(nil) // it has no error without options
	}
	return b
}

// Seen returns every response so far, also those that led to others.
func (b *Browser) Seen() []Seen {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

// recorder records each response as it is read.
type recorder struct {
	network *Network
	browser *Browser
}

// RoundTrip implements http.RoundTripper.
func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := request.URL.String()
	if request.GetBody != nil {
		if body, err := request.GetBody(); err == nil {
			content, err := io.ReadAll(body)
			if err != nil {
				return nil, err
			}
			sent += "\n" + string(content)
		}
	}
	response, err := r.network.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	var head bytes.Buffer
	_ = response.Header.Write(&head) // a buffer takes everything
	response.Body = &recordedBody{ReadCloser: response.Body, done: func(body string) {
		r.browser.mu.Lock()
		defer r.browser.mu.Unlock()
		r.browser.seen = append(r.browser.seen, Seen{sent, head.String(), body})
	}}
	return response, nil
}

type recordedBody struct {
	io.ReadCloser

	content bytes.Buffer
	done    func(string)
}

// Read implements io.Reader.
func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.content.Write(p[:n])
	return n, err
}

// Close implements io.Closer.
func (b *recordedBody) Close() error {
	if b.done != nil {
		b.done(b.content.String())
		b.done = nil
	}
	return b.ReadCloser.Close()
}

// formPolicy is the form-action of the page whose form is sent.
type formPolicy struct{}

// checkRedirect follows up to ten redirects; those of a form only to where its page lets forms go, as browsers do.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("too many redirects")
	}
	if page, ok := r.Context().Value(formPolicy{}).(*Page); ok && !page.allowsForm(r.URL) {
		return fmt.Errorf("form-action of the page does not allow the redirect to %s", r.URL.Host)
	}
	return nil
}

// Open opens a URL as a link is opened.
func (b *Browser) Open(ctx context.Context, address string) (*Page, error) {
	return b.Send(ctx, http.MethodGet, address, nil)
}

// Send sends any request; values are the fields of a form. What is answered 503 is sent again, as users do who are asked to.
func (b *Browser) Send(ctx context.Context, method, address string, values url.Values) (*Page, error) {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for range retries {
		page, err := b.sendOnce(ctx, method, address, values)
		if err != nil || page.Status != http.StatusServiceUnavailable {
			return page, err
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return b.sendOnce(ctx, method, address, values)
}

func (b *Browser) sendOnce(ctx context.Context, method, address string, values url.Values) (*Page, error) {
	var body io.Reader
	if values != nil {
		body = strings.NewReader(values.Encode())
	}
	request, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, fmt.Errorf("create request: %w", err)
	}
	if values != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if method == http.MethodPost {
		request.Header.Set("Origin", request.URL.Scheme+"://"+request.URL.Host)
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	request.Header.Set("Accept-Language", "en")
	response, err := b.client.Do(request)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("read response: %w", err)
	}
	return newPage(response, content)
}

// Submit fills a field of a form of a page, unless it is empty, and sends the form.
func (b *Browser) Submit(ctx context.Context, p *Page, f Form, field, value string) (*Page, error) {
	if target, err := url.Parse(f.Action); err != nil || !p.allowsForm(target) {
		return nil, fmt.Errorf("form-action of %s does not allow its form", p.URL.Path)
	}
	values := url.Values{}
	if field != "" {
		values.Set(field, value)
	}
	for name, hidden := range f.Hidden {
		values.Set(name, hidden)
	}
	return b.Send(context.WithValue(ctx, formPolicy{}, p), http.MethodPost, f.Action, values)
}
