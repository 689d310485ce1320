package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestClassifyAnswer(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	for _, c := range []struct {
		status int
		header http.Header
		want   Verdict
	}{
		{200, header("Retry-After", "5"), Verdict{Outcome: Delivered}},
		{204, nil, Verdict{Outcome: Delivered}},
		{299, nil, Verdict{Outcome: Delivered}},
		{101, nil, Verdict{Outcome: Retry, Reason: "http_101"}},
		{199, nil, Verdict{Outcome: Retry, Reason: "http_199"}},
		{300, nil, Verdict{Outcome: Retry, Reason: "http_300"}},
		{301, header("Location", "https://elsewhere.example/"), Verdict{Outcome: Retry, Reason: ReasonRedirect}},
		{308, header("Location", "//x"), Verdict{Outcome: Retry, Reason: ReasonRedirect}},
		{304, nil, Verdict{Outcome: Retry, Reason: "http_304"}},
		{400, nil, Verdict{Outcome: Retry, Reason: "http_400"}},
		{410, header("Retry-After", "5"), Verdict{Outcome: Gone, Reason: "http_410", RetryAfter: 5 * time.Second}},
		{429, header("Retry-After", "86400"), Verdict{Outcome: Retry, Reason: "http_429", RetryAfter: 24 * time.Hour}},
		{429, header("Retry-After", "-1"), Verdict{Outcome: Retry, Reason: "http_429"}},
		{503, header("Retry-After", "Thu, 01 Jan 2099 00:00:00 GMT"), Verdict{Outcome: Retry, Reason: "http_503", RetryAfter: maxRetryAfter}},
		{500, nil, Verdict{Outcome: Retry, Reason: "http_500"}},
		{999, nil, Verdict{Outcome: Retry, Reason: "http_999"}},
	} {
		t.Run(strconv.Itoa(c.status), func(t *testing.T) {
			c.want.StatusCode = c.status
			NewWithT(t).Expect(classifyAnswer(c.status, c.header, now)).To(Equal(c.want))
		})
	}
}

func TestClassifyFailure(t *testing.T) {
	op := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 80}, Err: os.NewSyscallError("connect", err)}
	}
	certificate := func(err error) error {
		return handshakeError{&tls.CertificateVerificationError{Err: err}}
	}
	for want, errs := range map[Reason][]error{
		ReasonTimeout:        {context.DeadlineExceeded, op(os.ErrDeadlineExceeded), handshakeError{context.DeadlineExceeded}, op(syscall.ETIMEDOUT)},
		ReasonDNS:            {&net.DNSError{Err: "server misbehaving", Name: "secret.example", IsTemporary: true}, &net.DNSError{IsTimeout: true}},
		ReasonDNSNotFound:    {&net.DNSError{Name: "secret.example", IsNotFound: true}},
		ReasonRefused:        {op(syscall.ECONNREFUSED)},
		ReasonUnreachable:    {op(syscall.ENETUNREACH), op(syscall.EHOSTUNREACH)},
		ReasonConnection:     {op(syscall.ECONNRESET), io.EOF, fmt.Errorf("broken: %w", io.ErrUnexpectedEOF), errors.New("http: server closed idle connection")},
		ReasonBlockedAddress: {&net.OpError{Op: "dial", Err: refusal(ReasonBlockedAddress)}},
		ReasonPlainHTTP:      {&net.OpError{Op: "dial", Err: refusal(ReasonPlainHTTP)}},
		ReasonTLSExpired:     {certificate(x509.CertificateInvalidError{Reason: x509.Expired})},
		ReasonTLSHostname:    {certificate(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "secret.example"})},
		ReasonTLSUntrusted:   {certificate(x509.UnknownAuthorityError{}), certificate(x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign})},
		ReasonTLS:            {handshakeError{errors.New("tls: anything")}, handshakeError{io.EOF}, handshakeError{tls.RecordHeaderError{}}},
		ReasonBadResponse:    {errors.New("malformed HTTP response"), textproto.ProtocolError("malformed MIME header")},
	} {
		for _, err := range errs {
			t.Run(string(want), func(t *testing.T) {
				g := NewWithT(t)
				for _, wrapped := range []error{err, fmt.Errorf("x: %w", err), &url.Error{Op: "Post", URL: "https://secret.example", Err: err}} {
					g.Expect(classifyFailure(wrapped)).To(Equal(Verdict{Outcome: Retry, Reason: want}))
				}
			})
		}
	}
}

func TestClassifyFailure_lackOfResourcesIsNoAttempt(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM} {
		_, err := classifyFailure(&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", errno)})
		NewWithT(t).Expect(err).To(Equal(ErrNoResources))
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"0": 0, "120": 2 * time.Minute, " 7\t": 7 * time.Second, "007": 7 * time.Second,
		"86400": 24 * time.Hour, "99999999999999999999": maxRetryAfter, "31536001": maxRetryAfter,
		"Fri, 20 Nov 2026 10:00:30 GMT":  30 * time.Second,
		"Friday, 20-Nov-26 10:00:30 GMT": 30 * time.Second,
		"Fri Nov 20 10:00:30 2026":       30 * time.Second,
		"Fri, 20 Nov 2026 09:00:00 GMT":  0,
		"Thu, 01 Jan 2099 00:00:00 GMT":  maxRetryAfter,
	} {
		t.Run(value, func(t *testing.T) {
			got, ok := parseRetryAfter(value, now)
			NewWithT(t).Expect(got).To(Equal(want))
			NewWithT(t).Expect(ok).To(BeTrue())
		})
	}
	for _, value := range []string{"", "-1", "+5", "1.5", "1e3", "soon", "5 5", "２", "2026-11-20T10:00:30Z", "5\n"} {
		t.Run("ignored "+value, func(t *testing.T) {
			_, ok := parseRetryAfter(value, now)
			NewWithT(t).Expect(ok).To(BeFalse())
		})
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{"120", "-1", "Thu, 01 Jan 2099 00:00:00 GMT", "99999999999999999999", "Mon, 01 Jan 0001 00:00:00 GMT"} {
		f.Add(seed, int64(1_795_000_000))
	}
	f.Fuzz(func(t *testing.T, value string, unix int64) {
		now := time.Unix(unix%(1<<36), 0)
		got, ok := parseRetryAfter(value, now)
		if got < 0 || got > maxRetryAfter || !ok && got != 0 {
			t.Fatalf("%q: %s %t", value, got, ok)
		}
		if next := NextAttempt(1, now, got, fixedJitter(.5)); next.Before(now.Add(5*time.Second)) || next.After(now.Add(61*time.Second)) {
			t.Fatalf("%q: %s", value, next)
		}
	})
}
