package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Outcome is the result of an attempt for its event.
type Outcome string

// The outcomes of an attempt.
const (
	Delivered Outcome = "delivered" // the receiver took the event
	Retry     Outcome = "retry"     // it did not; the schedule decides when to try again
	Gone      Outcome = "gone"      // it answered 410 and does not want the event, now or later
)

// Reason is why an attempt did not deliver: one of the words below, or http_ and the status code.
type Reason string

// The reasons without a status code.
const (
	ReasonBadURL         Reason = "bad_url"         // cannot be called
	ReasonBadCABundle    Reason = "bad_ca_bundle"   // no certificate in it
	ReasonBlockedAddress Reason = "blocked_address" // the guard refuses the address of the name
	ReasonBlockedPort    Reason = "blocked_port"    // the guard refuses the port everywhere
	ReasonPlainHTTP      Reason = "plain_http"      // http to an address that needs https
	ReasonRedirect       Reason = "redirect"        // an answer that points elsewhere, which is not followed
	ReasonTimeout        Reason = "timeout"
	ReasonDNS            Reason = "dns"
	ReasonDNSNotFound    Reason = "dns_not_found"
	ReasonRefused        Reason = "refused"     // connection refused: the port is closed
	ReasonUnreachable    Reason = "unreachable" // no route
	ReasonConnection     Reason = "connection"  // ended too early
	ReasonTLS            Reason = "tls"
	ReasonTLSExpired     Reason = "tls_expired" // or not valid yet
	ReasonTLSHostname    Reason = "tls_hostname"
	ReasonTLSUntrusted   Reason = "tls_untrusted"
	ReasonBadResponse    Reason = "bad_response" // an answer that is not HTTP, or too much header
)

// publicReason returns the reason for requests and conditions. It is the same for a name that does not exist and one
// with a refused address: else a project's author could use webhook URLs to list the names of the cluster's DNS.
// Metrics distinguish them.
func (r Reason) publicReason() Reason {
	if r == ReasonDNSNotFound {
		return ReasonBlockedAddress
	}
	return r
}

// ErrNoResources means that this process lacks resources for a connection, such as file descriptors or ports. It is not
// an attempt.
var ErrNoResources = errors.New("no resources left to send with")

// Verdict is the classification of an answer, or of a missing one.
type Verdict struct {
	Outcome Outcome
	// StatusCode is zero without an answer.
	StatusCode int
	// Reason is empty if the event was delivered.
	Reason Reason
	// RetryAfter is the wait that the receiver asked for; NextAttempt clamps it.
	RetryAfter time.Duration
}

// classifyAnswer classifies an answer by its status: only 2xx is success, and 410 ends the event.
func classifyAnswer(status int, h http.Header, now time.Time) Verdict {
	v := Verdict{StatusCode: status, Outcome: Retry}
	switch {
	case status >= 200 && status <= 299:
		v.Outcome = Delivered
		return v
	case status == http.StatusGone:
		v.Outcome = Gone
	}
	v.Reason = Reason("http_" + strconv.Itoa(status))
	if status >= 300 && status <= 399 && h.Get("Location") != "" {
		v.Reason = ReasonRedirect
	}
	v.RetryAfter, _ = parseRetryAfter(h.Get("Retry-After"), now)
	return v
}

// classifyFailure classifies an attempt without an answer. It returns an error if this process is the cause.
func classifyFailure(err error) (Verdict, error) {
	for _, ours := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EADDRNOTAVAIL,
	} {
		if errors.Is(err, ours) {
			return Verdict{}, ErrNoResources
		}
	}
	return Verdict{Outcome: Retry, Reason: findReason(err)}, nil
}

// findReason returns the reason for an error. It checks types and, for net/http's untyped errors, fixed messages; it
// always returns a word of this package.
func findReason(err error) Reason {
	if r, ok := errors.AsType[refusal](err); ok {
		return Reason(r)
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		if e.IsNotFound {
			return ReasonDNSNotFound
		}
		return ReasonDNS
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return ReasonTimeout
	}
	if e, ok := errors.AsType[handshakeError](err); ok {
		return e.tlsReason()
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return ReasonRefused
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return ReasonUnreachable
	case isBrokenConnection(err):
		return ReasonConnection
	default:
		return ReasonBadResponse
	}
}

// isBrokenConnection reports whether a connection ended too early, as opposed to one that delivered invalid data.
func isBrokenConnection(err error) bool {
	if _, ok := errors.AsType[textproto.ProtocolError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	text := err.Error()
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(text, "http: server closed idle connection") ||
		strings.Contains(text, "http2: server sent GOAWAY") ||
		strings.Contains(text, "http2: client connection lost") ||
		strings.Contains(text, "stream error: ")
}

// handshakeError marks an error of a TLS handshake, which has many types or none.
type handshakeError struct{ error }

func (e handshakeError) Unwrap() error { return e.error }

func (e handshakeError) tlsReason() Reason {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](e.error); ok && invalid.Reason == x509.Expired {
		return ReasonTLSExpired
	}
	if _, ok := errors.AsType[x509.HostnameError](e.error); ok {
		return ReasonTLSHostname
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](e.error); ok {
		return ReasonTLSUntrusted
	}
	return ReasonTLS
}

// schedule holds the wait before each attempt; the first is due at once. Its ten attempts span a little more than three
// days, so that a receiver that breaks on a Friday evening gets its events on Monday.
//
//nolint:gochecknoglobals // a constant, which Go has no arrays of
var schedule = [...]time.Duration{
	0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
	5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// MaxAttempts is how many attempts an event gets.
const MaxAttempts = len(schedule)

const (
	// jitterShare is the maximum share of a wait that jitter adds to it, so that events that failed together are not
	// retried together.
	jitterShare = 0.2
	// usualRateLimit is the wait that most rate limiters ask for. It is granted if twice the schedule's own wait is
	// less.
	usualRateLimit = time.Minute
)

// NextAttempt returns when to try again after made attempts, the last of them at now. It is zero when the schedule is
// exhausted.
//
// retryAfter is the wait that the receiver asked for, or zero. It is granted between the schedule's own wait and twice
// that (or a minute, if that is more): a receiver can neither speed up the schedule nor delay its events for years. jitter
// returns numbers in [0, 1), as rand.Float64 does; it adds up to a fifth of the schedule's wait, so no attempt is earlier
// than scheduled or granted.
func NextAttempt(made int, now time.Time, retryAfter time.Duration, jitter func() float64) time.Time {
	if made >= MaxAttempts {
		return time.Time{}
	}
	base := schedule[max(0, made)]
	if base == 0 {
		return now
	}
	wait := max(base, grantedWait(base, retryAfter))
	return now.Add(wait + time.Duration(jitterShare*jitter()*float64(base)))
}

// grantedWait returns how much of the wait that a receiver asked for is granted where the schedule's is base.
func grantedWait(base, retryAfter time.Duration) time.Duration {
	return min(retryAfter, max(2*base, usualRateLimit))
}

// maxRetryAfter is more than any schedule allows; it keeps sums of times far from overflow.
const maxRetryAfter = 365 * 24 * time.Hour

// parseRetryAfter parses the header Retry-After: seconds, or an HTTP date, which it converts to a duration from now. It
// returns false for anything else (a sign, a fraction, words), which callers ignore.
func parseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.Trim(value, " \t")
	if value == "" || len(value) > 64 {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(0, date.Sub(now)), maxRetryAfter), true
}
