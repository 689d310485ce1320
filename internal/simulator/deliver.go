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

// parcel is a webhook of Meta's that waits to be posted. Parcels wait independently of each other: Meta promises no order.
type parcel struct {
	to       *business
	body     []byte
	user     *user // whose message it is; nil if nobody's
	line     *line // which shows what became of it; nil if none does
	attempt  int
	due      time.Time
	inFlight bool
}

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
	// Attack is what forged it.
	Attack string `json:"attack,omitempty"`
	// NextAt is when it is posted again.
	NextAt *time.Time `json:"nextAt,omitempty"`
}

// job is a webhook to be posted now.
type job struct {
	platform, account, url string
	header                 http.Header
	body                   []byte
	attempt                int
	attack                 string
	// finish is called with what came of it, with s.mu held. It returns when to post it again; zero for never.
	finish func(result) time.Time
}

// result is what came of a job.
type result struct {
	status     int
	retryAfter time.Duration
	failed     string
}

func (r result) ok() bool { return r.status >= 200 && r.status <= 299 }

// dispatch has a webhook posted, once Start runs. It returns false if nobody told where to. s.mu is held.
func (s *Simulator) dispatch(b *business, v waValue, u *user, l *line) bool {
	if b.callback() == "" || b.secret() == "" || len(s.parcels) >= maxParcels {
		return false
	}
	s.parcels = append(s.parcels, &parcel{to: b, body: escaped(envelope(v)), user: u, line: l, due: s.clock.Now()})
	s.wake()
	return true
}

// Start posts webhooks until ctx ends.
func (s *Simulator) Start(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(posts)
	for ctx.Err() == nil {
		s.mu.Lock()
		jobs, next := s.due(s.clock.Now())
		changed := s.changed
		s.mu.Unlock()
		for _, j := range jobs {
			group.Go(func() error {
				s.post(ctx, j)
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

// due returns what is to be posted now, and how long nothing else will be. s.mu is held.
func (s *Simulator) due(now time.Time) ([]job, time.Duration) {
	jobs, next := []job{}, time.Minute
	for _, p := range s.parcels {
		switch wait := p.due.Sub(now); {
		case p.inFlight:
		case wait > 0:
			next = min(next, wait)
		default:
			p.inFlight = true
			p.attempt++
			jobs = append(jobs, s.jobOf(p))
		}
	}
	for _, b := range s.bots {
		more, wait := b.due(s, now)
		jobs, next = append(jobs, more...), min(next, wait)
	}
	return jobs, next
}

func (s *Simulator) jobOf(p *parcel) job {
	j := metaJob(p.to, p.body, metaMAC([]byte(p.to.secret()), p.body))
	j.attempt = p.attempt
	j.finish = func(r result) time.Time { return s.finishParcel(p, r) }
	return j
}

// metaJob returns a webhook with a signature; none if that is empty.
func metaJob(to *business, body []byte, signature string) job {
	h := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"facebookexternalua"}}
	if signature != "" {
		h.Set(metaSignature, signature)
	}
	return job{platform: onWhatsApp, account: to.ID, url: to.callback(), header: h, body: body, attempt: 1}
}

// finishParcel forgets a parcel that was taken: Meta wants 200 and nothing else. Others come again, later each time.
func (s *Simulator) finishParcel(p *parcel, r result) time.Time {
	p.inFlight = false
	var again time.Time
	switch {
	case r.status == http.StatusOK:
		p.line.became(stateDelivered, r)
		if p.user != nil && p.line != nil {
			p.to.captured[p.user.ID] = p.body
		}
	case p.attempt >= attempts:
		p.line.became(stateFailed, r)
	default:
		again = s.clock.Now().Add(backoff(s.retry, p.attempt))
		p.due = again
		p.line.became(stateWaiting, r)
		return again
	}
	for i := range s.parcels {
		if s.parcels[i] == p {
			s.parcels = append(s.parcels[:i:i], s.parcels[i+1:]...)
			break
		}
	}
	return again
}

func (l *line) became(state string, r result) {
	if l != nil {
		l.State, l.Status = state, r.status
	}
}

func backoff(first time.Duration, attempt int) time.Duration {
	return min(maxRetry, first<<(attempt-1))
}

// post posts a webhook and keeps what came of it.
func (s *Simulator) post(ctx context.Context, j job) result {
	r := s.exchange(ctx, j)
	s.mu.Lock()
	defer s.mu.Unlock()
	d := delivery{
		Seq: s.seq + 1, At: s.clock.Now().UTC(), Platform: j.platform, Account: j.account, URL: withoutQuery(j.url),
		Attempt: j.attempt, Bytes: len(j.body), Status: r.status, Error: r.failed, Attack: j.attack,
	}
	if j.finish != nil {
		if again := j.finish(r); !again.IsZero() {
			d.NextAt = new(again.UTC())
		}
	}
	s.deliveries = keep(s.deliveries, d, maxDeliveries)
	s.tell(event{Type: "delivery", Platform: j.platform, Account: j.account, Status: r.status, Attack: j.attack})
	return r
}

func (s *Simulator) exchange(ctx context.Context, j job) result {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	to := s.redirect(j.url)
	if to == "" {
		return result{failed: notHere}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(j.body))
	if err != nil {
		return result{failed: "the URL cannot be read"}
	}
	request.Header = j.header
	response, err := s.client.Do(request)
	if err != nil {
		return result{failed: reason(err)}
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswerBytes)) // only the status counts
	r := result{status: response.StatusCode}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		r.retryAfter = min(maxRetry, time.Duration(seconds)*time.Second)
	}
	return r
}

// notHere is why nothing is posted to a callback that Redirect leads nowhere.
const notHere = "webhooks do not go there from here"

func withoutQuery(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	u.RawQuery, u.User = "", nil
	return u.String()
}

// reason returns what may be told of an error of net/http: not the URL, whose query may hold a token.
func reason(err error) string {
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

// writeToBusiness sends a text to a WhatsApp account. s.mu is held.
func (s *Simulator) writeToBusiness(u *user, c *chat, l *line) {
	s.toBusiness(u, c, u.textOf(c.business, l.Text, l.At), l)
}

// shareWithBusiness answers a request for the contact. s.mu is held.
func (s *Simulator) shareWithBusiness(u *user, c *chat, l *line) {
	c.AsksForContact, c.Button = false, ""
	s.toBusiness(u, c, u.cardOf(c.business, u.Phone, u.WhatsAppID, "contact_request", l.At), l)
}

func (s *Simulator) toBusiness(u *user, c *chat, v waValue, l *line) {
	l.ID = v.Messages[0].ID
	if !s.dispatch(c.business, v, u, l) {
		l.State = stateNowhere
	}
}
