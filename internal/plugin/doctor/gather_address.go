package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"

	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/version"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// What is read of a stranger's answer at most.
const (
	maxBody   = 1 << 20
	maxHeader = 64 << 10
)

// pathDescription is the path of the API's description, which needs no key.
const pathDescription = "/openapi.json"

// probeAddress looks at spec.baseURL as a client would: DNS, TCP, TLS, and two requests without a credential. It connects to no
// other host, follows no redirect and uses no proxy.
func (e *Examiner) probeAddress(ctx context.Context, f *Facts) {
	base := f.Project.Spec.EffectiveBaseURL()
	u, err := url.Parse(base)
	switch {
	case base == "":
		return
	case !e.options.Probe:
		f.Address.Why = "--probe is false"
		return
	case f.Project.Suspended():
		f.Address.Why = "the project is suspended"
		return
	case err != nil || u.Hostname() == "":
		f.Address.Why = "spec.baseURL cannot be read"
		return
	}
	a := AddressFacts{HookPath: hookPath(&f.Project.Spec)}
	if missing, err := e.isHostMissing(ctx, u.Hostname()); err != nil {
		f.Address.Why = "DNS does not answer"
		return
	} else if missing {
		a.HostMissing = true
		f.Address = knownValue(a)
		return
	}
	a.Unreachable, a.Certificate = e.connect(ctx, u)
	if a.Unreachable == "" && a.Certificate.isGood(f.Now) {
		e.sendRequests(ctx, u, &a)
	}
	f.Address = knownValue(a)
}

// hookPath returns the path of a callback that the project has; empty for none.
func hookPath(spec *verifyv1.VerificationProjectSpec) string {
	switch {
	case spec.WhatsApp != nil:
		return whatsapp.Path
	case spec.EffectiveTelegramUpdates() == verifyv1.TelegramUpdatesWebhook:
		return telegram.HookPath
	default:
		return ""
	}
}

func (e *Examiner) isHostMissing(ctx context.Context, host string) (bool, error) {
	if _, err := netip.ParseAddr(host); err == nil {
		return false, nil
	}
	_, err := e.options.Resolver.LookupNetIP(ctx, "ip", host)
	if failure, ok := errors.AsType[*net.DNSError](err); ok && failure.IsNotFound {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up host: %w", err)
	}
	return false, nil
}

// connect returns why no connection is made; empty if one is. Over https it returns the certificate that is shown, also a bad one.
func (e *Examiner) connect(ctx context.Context, u *url.URL) (string, *CertificateFacts) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	dialer := net.Dialer{Resolver: e.options.Resolver}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return describeFailure(err), nil
	}
	defer conn.Close() //nolint:errcheck // nothing was written
	if u.Scheme != "https" {
		return "", nil
	}
	//nolint:gosec // judgeCertificate verifies; nothing is sent
	secure := tls.Client(conn, &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: true})
	if err := secure.HandshakeContext(ctx); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return describeFailure(err), nil
		}
		return "the TLS handshake fails", nil
	}
	return "", e.judgeCertificate(secure.ConnectionState().PeerCertificates, u.Hostname())
}

func describeFailure(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return "no answer in time"
	default:
		return "there is no way to it from this machine"
	}
}

// judgeCertificate judges each property by itself, so that an expired certificate of another name is two findings.
func (e *Examiner) judgeCertificate(chain []*x509.Certificate, host string) *CertificateFacts {
	leaf := chain[0]
	names := leaf.DNSNames
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: e.options.Roots, Intermediates: between,
		CurrentTime: leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2),
	})
	return &CertificateFacts{
		NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter, Names: names,
		OtherName: leaf.VerifyHostname(host) != nil, Untrusted: err != nil, Issuer: leaf.Issuer.String(),
	}
}

func (e *Examiner) sendRequests(ctx context.Context, u *url.URL, a *AddressFacts) {
	transport := &http.Transport{
		DialContext:     (&net.Dialer{Resolver: e.options.Resolver}).DialContext,
		TLSClientConfig: &tls.Config{RootCAs: e.options.Roots, MinVersion: tls.VersionTLS12},
		TLSNextProto:    map[string]func(string, *tls.Conn) http.RoundTripper{}, MaxResponseHeaderBytes: maxHeader,
		DisableCompression: true,
	}
	defer transport.CloseIdleConnections()
	strangers := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	base := *u
	base.Path = ""
	a.Description = sendRequest(ctx, strangers, base.String()+u.Path+pathDescription)
	if a.HookPath != "" {
		a.Hook = sendRequest(ctx, strangers, base.String()+u.Path+a.HookPath)
	}
	if u.Path != "" && !a.Description.Ours {
		a.Root = sendRequest(ctx, strangers, base.String()+pathDescription)
	}
	if a.Description.Status == 0 {
		a.Unreachable = "a connection is made and no HTTP answer comes"
	}
}

func sendRequest(ctx context.Context, c *http.Client, address string) *Answer {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return &Answer{}
	}
	request.Header.Set("User-Agent", version.UserAgent())
	response, err := c.Do(request)
	if err != nil {
		return &Answer{}
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxBody)) // a part says as much about whose it is
	answer := &Answer{Status: response.StatusCode, Ours: isOurs(response, body)}
	if to, err := response.Location(); err == nil {
		answer.Location = to.Hostname()
	}
	return answer
}

// isOurs reports whether an answer is one of PhoneProof's: its description, its error, or the refusal of a callback, which has no
// body. All of them have two headers, which a proxy may add to its own answers, so these alone do not count.
func isOurs(r *http.Response, body []byte) bool {
	if r.Header.Get("X-Request-ID") == "" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
		return false
	}
	var content struct {
		Info struct {
			Title string `json:"title"`
		} `json:"info"`
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return r.StatusCode == http.StatusForbidden || r.StatusCode == http.StatusNotFound
	}
	if json.Unmarshal(body, &content) != nil {
		return false
	}
	return content.Info.Title == "PhoneProof" || content.Error.Code != "" && content.Error.Message != ""
}
