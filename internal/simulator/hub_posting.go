package simulator

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// delivery is one webhook as it was posted.
type delivery struct {
	Seq      int64     `json:"seq"`
	At       time.Time `json:"at"`
	Platform string    `json:"platform"`
	Account  string    `json:"account"`
	// URL is where it went, without the query.
	URL     string `json:"url"`
	Attempt int    `json:"attempt"`
	Bytes   int    `json:"bytes"`
	// Status is what was answered; 0 with an Error if nothing was.
	Status int    `json:"status"`
	Error  string `json:"error,omitempty"`
	// NextAt is when it is posted again.
	NextAt *time.Time `json:"nextAt,omitempty"`
}

// job is a webhook to be posted now.
type job struct {
	platform, account, url string
	header                 http.Header
	body                   []byte
	attempt                int
	// finish is called with what came of it, with the lock held. It returns when to post it again; zero for never.
	finish func(result) time.Time
}

// result is what came of a job.
type result struct {
	status     int
	retryAfter time.Duration
	failed     string
}

func (r result) ok() bool { return r.status >= 200 && r.status <= 299 }

// Start posts webhooks until ctx ends.
func (s *Simulator) Start(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(posts)
	for ctx.Err() == nil {
		s.mu.Lock()
		jobs, next := s.takeDueJobs(s.clock.Now())
		changed := s.changed
		s.mu.Unlock()
		for _, j := range jobs {
			group.Go(func() error {
				s.postWebhook(ctx, j)
				return nil
			})
		}
		timer := s.clock.NewTimer(max(0, next))
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C():
		}
		timer.Stop()
	}
	return group.Wait()
}

// takeDueJobs returns what is to be posted now, and how long nothing else will be. The lock is held.
func (s *Simulator) takeDueJobs(now time.Time) ([]job, time.Duration) {
	parcels, untilParcel := s.whatsApp.takeDueParcels(now)
	updates, untilUpdate := s.telegram.takeDueUpdates(now)
	return append(parcels, updates...), min(untilParcel, untilUpdate)
}

// postWebhook posts a webhook and keeps what came of it.
func (h *hub) postWebhook(ctx context.Context, j job) {
	r := h.sendWebhook(ctx, j)
	h.mu.Lock()
	defer h.mu.Unlock()
	d := delivery{
		Seq: h.seq + 1, At: h.clock.Now().UTC(), Platform: j.platform, Account: j.account, URL: withoutQuery(j.url),
		Attempt: j.attempt, Bytes: len(j.body), Status: r.status, Error: r.failed,
	}
	if again := j.finish(r); !again.IsZero() {
		d.NextAt = new(again.UTC())
	}
	h.deliveries = appendBounded(h.deliveries, d, maxDeliveries)
	h.publish(event{Type: "delivery", Platform: j.platform, Account: j.account, Status: r.status})
}

func (h *hub) sendWebhook(ctx context.Context, j job) result {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	to := h.redirect(j.url)
	if to == "" {
		return result{failed: notReachableReason}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(j.body))
	if err != nil {
		return result{failed: "the URL cannot be read"}
	}
	request.Header = j.header
	response, err := h.client.Do(request)
	if err != nil {
		return result{failed: describeError(err)}
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswerBytes)) // only the status counts
	r := result{status: response.StatusCode}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		r.retryAfter = min(maxRetry, time.Duration(seconds)*time.Second)
	}
	return r
}

// notReachableReason is why nothing is posted to a callback that Redirect leads nowhere.
const notReachableReason = "webhooks do not go there from here"

func withoutQuery(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	u.RawQuery, u.User = "", nil
	return u.String()
}

// describeError returns an error of net/http without its URL, whose query may hold a token.
func describeError(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return err.Error()
}

// newClient returns what posts to callbacks: it follows no redirects, as the platforms do not, and does not reach
// link-local addresses, where clouds keep their metadata.
func newClient(roots *x509.CertPool) *http.Client {
	dialer := &net.Dialer{Timeout: postTimeout, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		if to, err := netip.ParseAddrPort(address); err != nil || to.Addr().Unmap().IsLinkLocalUnicast() {
			return errors.New("callbacks do not go to link-local addresses")
		}
		return nil
	}}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: postTimeout,
			MaxIdleConnsPerHost: posts,
			IdleConnTimeout:     time.Minute,
			ForceAttemptHTTP2:   true,
		},
	}
}

func retryDelay(first time.Duration, attempt int) time.Duration {
	return min(maxRetry, first<<(attempt-1))
}
