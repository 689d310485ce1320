package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Errors of Send. None of them is an attempt: the caller records nothing, and the event stays due.
var (
	// ErrPaused means that the endpoint is signed and its secret cannot be read. Nothing was dialed.
	ErrPaused = errors.New("the webhook's secret cannot be read")
	// ErrNotLeading means that the lease is not held, or not for long enough to send.
	ErrNotLeading = errors.New("the lease to send webhooks is not held")
)

// Options configure a Sender.
type Options struct {
	// Guard checks every address. Required.
	Guard *Guard
	// Version is this program's, for the User-Agent header.
	Version string
	// MaySend is the lease gate. Send calls it right before it dials, and again when the connection reads the body,
	// because DNS, a dial and a handshake can take longer than a lease. It is called from several goroutines. Nil means
	// always.
	MaySend func() bool
	// Registerer registers the metrics. Nil means that they are not exported.
	Registerer prometheus.Registerer
	// Resolver resolves names. Nil means the system's.
	Resolver *net.Resolver
	// Clock returns the time. Nil means the real one.
	Clock clock.PassiveClock
}

// Sender sends events. It is safe for concurrent use. A process has one, so that limits apply and connections are
// shared.
type Sender struct {
	transports *transports
	limiter    *limiter
	metrics    *metrics
	userAgent  string
	maySend    func() bool
	clock      clock.PassiveClock
}

// NewSender returns a sender. Close it when it is no longer used.
func NewSender(o Options) *Sender {
	s := &Sender{
		transports: newTransports(o.Guard, o.Resolver),
		limiter:    newLimiter(),
		metrics:    newMetrics(o.Registerer),
		userAgent:  "PhoneProof/" + o.Version,
		maySend:    o.MaySend,
		clock:      o.Clock,
	}
	if s.maySend == nil {
		s.maySend = func() bool { return true }
	}
	if s.clock == nil {
		s.clock = clock.RealClock{}
	}
	return s
}

// Close closes idle connections.
func (s *Sender) Close() { s.transports.closeIdle() }

// Result is the result of an attempt.
type Result struct {
	Verdict

	// Duration is how long the attempt took.
	Duration time.Duration
}

// Attempt converts the result to the form that a request records, as attempt number (from 1), which ended at at. jitter
// is NextAttempt's.
func (r Result) Attempt(number int, epoch int64, at time.Time, jitter func() float64) verification.Attempt {
	a := verification.Attempt{
		Number: number, Epoch: epoch, At: at,
		StatusCode: r.StatusCode, Reason: string(r.Reason.publicReason()), Delivered: r.Outcome == Delivered,
	}
	if r.Outcome == Retry {
		a.Next = NextAttempt(number, at, r.RetryAfter, jitter)
	}
	if r.RetryAfter > 0 {
		a.ExtraFrom = at.Add(r.RetryAfter)
	}
	return a
}

// ExtraAttempt is Attempt for one beside the schedule of d, which goes on as it was, or after the wait that the receiver asked for.
func (r Result) ExtraAttempt(d verification.Delivery, epoch int64, at time.Time) verification.Attempt {
	a := r.Attempt(d.Attempts+1, epoch, at, func() float64 { return 0 })
	a.After, a.ExtraFrom = d.LastAttemptAt, at.Add(max(r.RetryAfter, verification.ExtraGap))
	if r.Outcome != Delivered { // also 410: only the schedule gives an event up
		a.Next = d.NextAttemptAt
		if granted := grantedWait(schedule[min(d.Attempts, MaxAttempts-1)], r.RetryAfter); a.Next.Before(at.Add(granted)) {
			a.Next = at.Add(granted)
		}
	}
	return a
}

// Busy returns the *BusyError that Send would return if no slot is free, else nil. It saves callers the preparation of
// an event that cannot be sent now.
func (s *Sender) Busy(to Endpoint) error {
	d := to.Reveal()
	u, err := parseURL(d.url)
	if err != nil {
		return nil //nolint:nilerr // Send reports what is wrong with the URL
	}
	return s.limiter.checkBusy(d.receiverKey(u), s.clock.Now())
}

// Free returns how many events could be sent to an endpoint right now. A loop that claims work before it sends should
// not claim more.
func (s *Sender) Free(to Endpoint) int {
	d := to.Reveal()
	u, err := parseURL(d.url)
	if err != nil {
		return SlowStart
	}
	return s.limiter.freeSlots(d.receiverKey(u))
}

// Send makes one attempt to deliver an event, never more. After an attempt it returns a result, which the caller must
// record; else one of the errors ErrPaused, *BusyError, ErrNotLeading, ErrNoResources, or ctx's error. After ctx's
// error the receiver may or may not have the event.
func (s *Sender) Send(ctx context.Context, to Endpoint, e Event) (Result, error) {
	d := to.Reveal()
	headers, err := s.buildHeaders(d, e)
	if err != nil {
		return Result{}, s.countHeld(heldPaused, err)
	}
	u, transport, bad := s.findRoute(d)
	if bad != "" {
		return s.rejectEndpoint(d, bad), nil
	}
	key := d.receiverKey(u)
	if err := s.limiter.tryAcquire(key, s.clock.Now()); err != nil {
		return Result{}, s.countHeld(heldBusy, err)
	}
	if !s.maySend() {
		s.limiter.releaseUnused(key)
		return Result{}, s.countHeld(heldLease, ErrNotLeading)
	}
	m := &message{url: u, header: headers, body: e.body.Reveal(), maySend: s.maySend}
	return s.runAttempt(ctx, transport, key, d, m)
}

// findRoute returns the URL and the connection pool of an endpoint, or the reason why it cannot be called.
func (s *Sender) findRoute(d destination) (*url.URL, *http.Transport, Reason) {
	u, err := parseURL(d.url)
	if err != nil {
		return nil, nil, ReasonBadURL
	}
	if isPortBlocked(portOf(u)) { // before DNS: the reason must not reveal whether the name exists
		return nil, nil, ReasonBlockedPort
	}
	transport, err := s.transports.transportFor(d.namespace, d.caBundle)
	if err != nil {
		return nil, nil, ReasonBadCABundle
	}
	return u, transport, ""
}

// buildHeaders returns the headers of one attempt, with fresh signatures. It returns ErrPaused for a signed endpoint
// without a usable secret.
func (s *Sender) buildHeaders(d destination, e Event) (http.Header, error) {
	h := http.Header{
		"Content-Type": {"application/json"},
		"User-Agent":   {s.userAgent},
	}
	now := s.clock.Now()
	if !d.signed {
		setEventHeaders(h, e, now)
		return h, nil
	}
	secrets := activeSecrets(d.current, d.previous, now)
	if len(secrets) == 0 {
		return nil, ErrPaused
	}
	signEvent(h, e, secrets, now)
	return h, nil
}

// runAttempt sends an event in a slot of the limiter, and releases the slot.
func (s *Sender) runAttempt(ctx context.Context, rt http.RoundTripper, key string, d destination, m *message) (Result, error) {
	s.metrics.inFlight.Inc()
	defer s.metrics.inFlight.Dec()
	start := s.clock.Now()
	verdict, err := s.sendMessage(ctx, rt, d.timeout, m)
	took := s.clock.Since(start)
	if err != nil {
		s.limiter.releaseUnused(key)
		switch {
		case errors.Is(err, ErrNotLeading):
			return Result{}, s.countHeld(heldLease, err)
		case errors.Is(err, ErrNoResources):
			return Result{}, s.countHeld(heldResources, err)
		}
		return Result{}, err
	}
	s.limiter.release(key, verdict.Outcome == Delivered, took)
	s.metrics.recordAttempt(d.test, verdict, took)
	return Result{Verdict: verdict, Duration: took}, nil
}

// sendMessage sends the event and classifies the answer. It uses the transport and not an http.Client, because it must
// not follow redirects, keep cookies or return errors that hold URLs.
func (s *Sender) sendMessage(ctx context.Context, rt http.RoundTripper, timeout time.Duration, m *message) (Verdict, error) {
	attempt, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resp, err := rt.RoundTrip(m.newRequest(context.WithValue(attempt, certificateAsked{}, &m.asked)))
	switch {
	case m.refused.Load():
		if err == nil {
			_ = resp.Body.Close()
		}
		return Verdict{}, ErrNotLeading
	case err == nil:
		drainBody(resp.Body, cancel)
		return classifyAnswer(resp.StatusCode, resp.Header, s.clock.Now()), nil
	case ctx.Err() != nil:
		return Verdict{}, fmt.Errorf("send event: %w", ctx.Err())
	default:
		verdict, err := classifyFailure(err)
		// With TLS 1.3 a server refuses a missing client certificate after the handshake, by an alert that net/http may not show.
		if m.asked.Load() && (verdict.Reason == ReasonConnection || verdict.Reason == ReasonBadResponse) {
			verdict.Reason = ReasonTLS
		}
		return verdict, err
	}
}

// rejectEndpoint returns the result of an attempt that ends before anything is dialed.
func (s *Sender) rejectEndpoint(d destination, reason Reason) Result {
	v := Verdict{Outcome: Retry, Reason: reason}
	s.metrics.recordAttempt(d.test, v, 0)
	return Result{Verdict: v}
}

func (s *Sender) countHeld(cause string, err error) error {
	s.metrics.waiting.WithLabelValues(cause).Inc()
	return err
}

// message is the request of one attempt. Its body checks the lease gate on every read: the header may already be sent
// by then, but no complete event leaves once the gate is shut.
type message struct {
	url     *url.URL
	header  http.Header
	body    []byte
	maySend func() bool
	refused atomic.Bool
	asked   atomic.Bool // for a client certificate, by the connection that was dialed for it
}

func (m *message) newRequest(ctx context.Context) *http.Request {
	req := &http.Request{
		Method: http.MethodPost, URL: m.url, Host: m.url.Host, Header: m.header,
		Body: m.newBodyReader(), ContentLength: int64(len(m.body)),
		// Called only if nothing was written, on a connection that the receiver had just closed. Bytes that may have
		// arrived are not sent again within one attempt, because the schedule would not count that.
		GetBody: func() (io.ReadCloser, error) { return m.newBodyReader(), nil },
	}
	return req.WithContext(ctx)
}

func (m *message) newBodyReader() io.ReadCloser {
	return &gatedReader{message: m, rest: bytes.NewReader(m.body)}
}

type gatedReader struct {
	message *message
	rest    *bytes.Reader
}

// Read returns ErrNotLeading instead of bytes if the gate is shut. The last byte gets its own read: HTTP/2 reads ahead
// of the receiver's flow-control window, and a receiver that opens it late must not get the end of an event after the
// gate has shut.
func (r *gatedReader) Read(p []byte) (int, error) {
	left := r.rest.Len()
	if left == 0 {
		return 0, io.EOF
	}
	if !r.message.maySend() {
		r.message.refused.Store(true)
		return 0, ErrNotLeading
	}
	return r.rest.Read(p[:min(len(p), max(left-1, 1))])
}

// Close does nothing: the bytes belong to the event.
func (r *gatedReader) Close() error { return nil }

// drainBody reads the rest of an answer so that its connection can be reused, at most maxBody bytes and for at most
// maxDrain; then cancel ends the read. Its errors are ignored because the status has decided the outcome.
func drainBody(body io.ReadCloser, cancel context.CancelFunc) {
	timer := time.AfterFunc(maxDrain, cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, body, maxBody)
	_ = body.Close()
}
