package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Errors of Send. None of them is an attempt: nothing is to be recorded, and the event stays due.
var (
	// ErrPaused says that the endpoint is signed and its secret cannot be read. Nothing was dialed.
	ErrPaused = errors.New("the webhook's secret cannot be read")
	// ErrNotLeading says that the lease is not, or no longer, held firmly enough to send.
	ErrNotLeading = errors.New("the lease to send webhooks is not held")
)

// Options are what a Sender needs.
type Options struct {
	// Guard judges every address. Required.
	Guard *Guard
	// Version is ours, for the User-Agent header.
	Version string
	// MaySend is the lease gate: Send asks it right before it dials, and again when the body is handed to the
	// connection, because a name, a dial and a handshake can take longer than a lease. It is asked from several
	// goroutines. Nil means always.
	MaySend func() bool
	// Registerer gets the metrics. Nil means that nobody reads them.
	Registerer prometheus.Registerer
	// Resolver resolves names. Nil means the system's.
	Resolver *net.Resolver
	// Clock tells the time. Nil means the real one.
	Clock clock.PassiveClock
}

// Sender sends events. It is safe for concurrent use; a process has one, so that its limits hold and its connections are
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

// Close closes the connections that no attempt uses.
func (s *Sender) Close() { s.transports.closeIdle() }

// Result is what came of an attempt.
type Result struct {
	Verdict

	// Duration is how long it took.
	Duration time.Duration
}

// Attempt is the result in the form that a request records, as its attempt of that number (from 1), which ended at at.
// jitter is NextAttempt's.
func (r Result) Attempt(number int, epoch int64, at time.Time, jitter func() float64) verification.Attempt {
	a := verification.Attempt{
		Number: number, Epoch: epoch, At: at,
		StatusCode: r.StatusCode, Reason: string(r.Reason.publicReason()), Delivered: r.Outcome == Delivered,
	}
	if r.Outcome == Retry {
		a.Next = NextAttempt(number, at, r.RetryAfter, jitter)
	}
	return a
}

// Busy returns the *BusyError that Send would return for want of a slot; nil while there are any. It spares a caller what
// he would do for an event that cannot be sent now.
func (s *Sender) Busy(to Endpoint) error {
	u, err := parseURL(to.Reveal().url)
	if err != nil {
		return nil //nolint:nilerr // Send says what is wrong with the URL
	}
	return s.limiter.checkBusy(receiverOf(u), s.clock.Now())
}

// Free returns how many events could be sent to an endpoint right now. A loop that has to claim work before it sends
// claims no more.
func (s *Sender) Free(to Endpoint) int {
	u, err := parseURL(to.Reveal().url)
	if err != nil {
		return SlowStart
	}
	return s.limiter.freeSlots(receiverOf(u))
}

// Send makes one attempt to deliver an event, and never more than one. It returns a result if there was an attempt, to be
// recorded whatever it is, and otherwise an error: ErrPaused, a *BusyError, ErrNotLeading, ErrNoResources, or ctx's
// error. After the latter the receiver may or may not have the event.
func (s *Sender) Send(ctx context.Context, to Endpoint, e Event) (Result, error) {
	d := to.Reveal()
	headers, err := s.buildHeaders(d, e)
	if err != nil {
		return Result{}, s.countHeld(heldPaused, err)
	}
	u, transport, bad := s.findRoute(d)
	if bad != "" {
		return s.rejectEndpoint(bad), nil
	}
	key := receiverOf(u)
	if err := s.limiter.tryAcquire(key, s.clock.Now()); err != nil {
		return Result{}, s.countHeld(heldBusy, err)
	}
	if !s.maySend() {
		s.limiter.releaseUnused(key)
		return Result{}, s.countHeld(heldLease, ErrNotLeading)
	}
	m := &message{url: u, header: headers, body: e.body.Reveal(), maySend: s.maySend}
	return s.runAttempt(ctx, transport, key, d.timeout, m)
}

// findRoute returns where to send to and over which connections, or what is wrong with the endpoint.
func (s *Sender) findRoute(d destination) (*url.URL, *http.Transport, Reason) {
	u, err := parseURL(d.url)
	if err != nil {
		return nil, nil, ReasonBadURL
	}
	if isPortBlocked(portOf(u)) { // before the name is resolved: the reason must not tell whether it exists
		return nil, nil, ReasonBlockedPort
	}
	transport, err := s.transports.transportFor(d.namespace, d.caBundle)
	if err != nil {
		return nil, nil, ReasonBadCABundle
	}
	return u, transport, ""
}

// buildHeaders are those of one attempt, its signatures made now. There are none without a usable secret where the endpoint is
// signed.
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

// attempt sends an event while it holds a slot of the limiter, and gives the slot back.
func (s *Sender) runAttempt(ctx context.Context, rt http.RoundTripper, key string, timeout time.Duration, m *message) (Result, error) {
	s.metrics.inFlight.Inc()
	defer s.metrics.inFlight.Dec()
	start := s.clock.Now()
	verdict, err := s.sendMessage(ctx, rt, timeout, m)
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
	s.metrics.recordAttempt(verdict, took)
	return Result{Verdict: verdict, Duration: took}, nil
}

// sendMessage sends the event and judges what comes back. It uses the transport itself and not an http.Client, whose
// redirects, cookies and errors with URLs in them are all unwanted.
func (s *Sender) sendMessage(ctx context.Context, rt http.RoundTripper, timeout time.Duration, m *message) (Verdict, error) {
	attempt, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resp, err := rt.RoundTrip(m.newRequest(attempt))
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
		return classifyFailure(err)
	}
}

// rejectEndpoint is the result of an attempt that ends before anything is dialed.
func (s *Sender) rejectEndpoint(reason Reason) Result {
	v := Verdict{Outcome: Retry, Reason: reason}
	s.metrics.recordAttempt(v, 0)
	return Result{Verdict: v}
}

func (s *Sender) countHeld(cause string, err error) error {
	s.metrics.waiting.WithLabelValues(cause).Inc()
	return err
}
