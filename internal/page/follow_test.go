package page

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// stream is an open stream of events.
type stream struct {
	site    *site
	events  chan string
	cancel  context.CancelFunc
	refused int
	header  http.Header
}

// followPage opens the stream of a page, as a browser that knows the event of the last id; empty for none.
func (s *site) followPage(page string, last ...string) *stream {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, page+"/events", nil)
	s.Expect(err).NotTo(HaveOccurred())
	for _, id := range last {
		r.Header.Set("Last-Event-ID", id)
	}
	response, err := http.DefaultTransport.RoundTrip(r) //nolint:bodyclose // closed by the goroutine below
	s.Expect(err).NotTo(HaveOccurred())
	f := &stream{site: s, events: make(chan string, 100), cancel: cancel, refused: response.StatusCode, header: response.Header}
	go func() {
		defer response.Body.Close()
		defer close(f.events)
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
				f.events <- data
			} else if lines.Text() == ":" {
				f.events <- heartbeatLine
			}
		}
	}()
	return f
}

// next returns the next event or heartbeat; empty at the end of the stream.
func (f *stream) next() string {
	f.site.t.Helper()
	select {
	case event := <-f.events:
		return event
	case <-time.After(30 * time.Second):
		f.site.t.Fatal("no event, heartbeat or end of the stream in 30 seconds")
		return ""
	}
}

func TestEvents_followTheRequestToItsEnd(t *testing.T) {
	s := newSite(t)
	initiated, page := s.start()
	f := s.followPage(page)
	s.Expect(f.next()).To(Equal("ready"))
	s.update(initiated.Request.ID, addHint(verification.HintOtherNumber))
	s.Expect(f.next()).To(Equal("other-number"))
	s.Expect(testutil.ToFloat64(s.handler.following)).To(Equal(1.0))
	s.verify(initiated.Request.ID)
	s.Expect(f.next()).To(Equal("verified"))
	s.Expect(f.next()).To(BeEmpty(), "the stream ends with the request")
	s.Eventually(func() float64 { return testutil.ToFloat64(s.handler.following) }).Should(BeZero())

	s.Expect(s.followPage(page).next()).To(Equal("verified"), "who comes back gets the present state")
}

// TestEvents_doNotSetBack a browser that heard more from another replica.
func TestEvents_doNotSetBack(t *testing.T) {
	var store laggingStore
	s := newSite(t)
	store.Store = s.store
	s.handler.Service = verification.NewService(verification.NewCodeSpace("books/shop"), &store)
	initiated, page := s.start()
	store.known.Store(&initiated.Request)
	s.update(initiated.Request.ID, addHint(verification.HintOtherNumber))
	f := s.followPage(page, "1")
	s.Eventually(func() float64 { return testutil.ToFloat64(s.handler.following) }).Should(Equal(1.0))
	store.known.Store(nil)
	s.verify(initiated.Request.ID)
	s.Expect(f.next()).To(Equal(heartbeatLine), "nothing yet, and not what is older")
	s.Expect(f.next()).To(Equal("verified"))
	s.Expect(f.next()).To(BeEmpty())
}

func TestEvents_endWhenTheServerDrains(t *testing.T) {
	s := newSite(t)
	_, page := s.start()
	f := s.followPage(page)
	s.Expect(f.next()).To(Equal("ready"))
	close(s.drain)
	s.Expect(f.next()).To(BeEmpty())
}

// holdPages returns the limiter of a site where that many pages may be open.
func holdPages(most int64) *boundedhttp.HoldLimiter {
	return boundedhttp.NewHoldLimiter(2 * most * boundedhttp.ConnectionCost)
}

func TestEvents_areBounded(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Holds = holdPages(6) })
	_, first := s.start()
	_, second := s.start()
	var open []*stream
	for range maxFollowersPerTicket {
		open = append(open, s.followPage(first))
		s.Expect(open[len(open)-1].next()).To(Equal("ready"))
	}
	newest := s.followPage(first)
	s.Expect(newest.next()).To(Equal("ready"), "a fifth of one ticket")
	s.Expect(open[0].next()).To(BeEmpty(), "takes the place of the oldest, whose browser may be gone")
	open = append(open[1:], newest)
	for range 2 {
		open = append(open, s.followPage(second))
		s.Expect(open[len(open)-1].next()).To(Equal("ready"))
	}
	s.Expect(s.followPage(second).refused).To(Equal(http.StatusTooManyRequests), "a seventh in all")
	s.Expect(s.stateOf(second)).To(Equal("ready"), "the page itself is served")
	s.Expect(s.get(second+"/state?since=ready")).To(Equal(`{"state":"ready","progress":0}`+"\n"), "and polls, which are answered at once")
	for _, f := range open {
		f.cancel()
	}
	s.Eventually(func() float64 { return testutil.ToFloat64(s.handler.following) }).WithTimeout(30 * time.Second).Should(BeZero())
	s.Expect(s.handler.followers.byID).To(BeEmpty())
}

// awaitFollowing waits until as many pages follow their request.
func (s *site) awaitFollowing(n int) {
	s.t.Helper()
	s.Eventually(func() float64 { return testutil.ToFloat64(s.handler.following) }).WithTimeout(30 * time.Second).Should(BeEquivalentTo(n))
}

// TestEvents_refuseACrowd opens far more pages at once than may be open.
func TestEvents_refuseACrowd(t *testing.T) {
	const most, crowd = 8, 80
	s := newSite(t, func(o *Options) { o.Holds = holdPages(most) })
	var pages []string
	for range crowd {
		_, page := s.start()
		pages = append(pages, page)
	}
	opened := make(chan *stream, crowd)
	for _, page := range pages {
		go func() { opened <- s.followPage(page) }()
	}
	var open []*stream
	for range crowd {
		f := <-opened
		if f.refused == http.StatusOK {
			open = append(open, f)
			continue
		}
		s.Expect(f.refused).To(Equal(http.StatusTooManyRequests))
		s.Expect(f.header.Get("Retry-After")).To(Equal("10"))
	}
	s.Expect(open).To(HaveLen(most))
	s.Expect(testutil.ToFloat64(s.handler.refused.WithLabelValues(refusedFollow))).To(BeEquivalentTo(crowd - most))

	s.Expect(s.get(pages[0]+"/state?since=ready")).To(ContainSubstring(`"ready"`), "a poll takes such a place, too, or is answered at once")
	s.backend.Fail(errors.New("down"))
	s.Expect(s.followPage(pages[0]).header.Get("Retry-After")).To(Equal("10"), "a refusal needs no store")
	s.backend.Fail(nil)

	open[0].cancel()
	s.awaitFollowing(most - 1)
	s.Expect(s.followPage(pages[0]).next()).To(Equal("ready"), "the place of one that left")
}

// TestEvents_ofClientsThatDoNotRead frees the slots of some that leave, and of one that stays for as long as a stream may.
func TestEvents_ofClientsThatDoNotRead(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	s := newSite(t, func(o *Options) { o.Holds, o.Clock = holdPages(4), now })
	_, page := s.start()
	at, err := url.Parse(page)
	s.Expect(err).NotTo(HaveOccurred())
	var conns []net.Conn
	for range 4 {
		conn, err := net.Dial("tcp", at.Host)
		s.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, "GET "+at.Path+"/events HTTP/1.1\r\nHost: a\r\n\r\n")
		s.Expect(err).NotTo(HaveOccurred())
		conns = append(conns, conn)
	}
	s.awaitFollowing(4)
	_, other := s.start()
	s.Expect(s.followPage(other).refused).To(Equal(http.StatusTooManyRequests))
	for _, conn := range conns[1:] {
		s.Expect(conn.Close()).To(Succeed())
	}
	s.awaitFollowing(1)
	began := now.Now()
	s.Eventually(func() float64 {
		if now.HasWaiters() {
			now.Step(heartbeat)
		}
		return testutil.ToFloat64(s.handler.following)
	}).WithTimeout(30 * time.Second).Should(BeZero())
	s.Expect(s.handler.followers.byID).To(BeEmpty())
	s.Expect(now.Now().Sub(began)).To(BeNumerically("~", followTime, heartbeat))
}

func TestEvents_showThatTheyLiveWithoutTheStore(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	s := newSite(t, func(o *Options) { o.Clock = now })
	initiated, page := s.start()
	f := s.followPage(page)
	s.Expect(f.next()).To(Equal("ready"))
	s.backend.Fail(errors.New("down"))
	for range 2 {
		s.Eventually(now.HasWaiters).WithTimeout(30 * time.Second).Should(BeTrue())
		now.Step(heartbeat)
		s.Expect(f.next()).To(Equal(heartbeatLine))
	}
	s.backend.Fail(nil)
	s.verify(initiated.Request.ID)
	s.Expect(f.next()).To(Equal("verified"))
}

// TestState_beginsItsAnswerAtOnce needs that so that the connection of a long poll may be ended when there are too many.
func TestState_beginsItsAnswerAtOnce(t *testing.T) {
	s := newSite(t)
	initiated, page := s.start()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page+"/state?since=ready", nil)
	s.Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultTransport.RoundTrip(r)
	s.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	s.awaitFollowing(1)
	s.verify(initiated.Request.ID)
	s.Expect(io.ReadAll(response.Body)).To(MatchJSON(fmt.Sprintf(`{"state":"verified","progress":%d}`, len(verification.HintKinds())+2)))
}

func TestState_answersWhenItChanges(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Holds = holdPages(1) })
	initiated, page := s.start()
	read := func(since string) any {
		var answer map[string]any
		s.Expect(json.Unmarshal([]byte(s.get(page+"/state?since="+since)), &answer)).To(Succeed())
		return answer["state"]
	}
	s.Expect(read("opened")).To(Equal("ready"), "another state at once")
	answered := make(chan any, 1)
	go func() { answered <- read("ready") }()
	s.Eventually(func() float64 { return testutil.ToFloat64(s.handler.following) }).WithTimeout(30 * time.Second).Should(Equal(1.0))
	s.Expect(read("ready")).To(Equal("ready"), "at once, because no other can be held")
	s.verify(initiated.Request.ID)
	s.Eventually(answered).WithTimeout(30 * time.Second).Should(Receive(Equal("verified")))
	s.Expect(read("verified")).To(Equal("verified"), "an end is answered at once")
}
