//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// verificationRun is a set of clients whose users verify their numbers, one after another. A client retries until it is
// acknowledged, a user until the number is verified. A collector keeps all events, because the receiver keeps only the last.
type verificationRun struct {
	shop   *shop
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu     sync.Mutex
	acked  []string // ids of requests that were acknowledged
	proven int
	errors []string
	events map[int64]event // by their position at the receiver
}

// startVerifications starts clients of several shops, two for each messenger. The shops share a receiver: a run collects the events of all
// of them. Each client begins a verification at every pause, if it has ended the last one.
func startVerifications(ctx context.Context, pause time.Duration, shops ...*shop) (runs []*verificationRun) {
	GinkgoHelper()
	shops[0].mustSend(ctx, http.MethodDelete, shops[0].sim+"/receiver/deliveries", nil, nil)
	for _, s := range shops {
		ctx, cancel := context.WithCancel(ctx)
		p := &verificationRun{shop: s, cancel: cancel, events: map[int64]event{}}
		for _, method := range []string{"WHATSAPP", "TELEGRAM", "WHATSAPP", "TELEGRAM"} {
			p.group.Go(func() { repeatEvery(ctx, pause, func() { p.verifyOnce(context.WithoutCancel(ctx), method) }) })
		}
		p.group.Go(func() { repeatEvery(ctx, pace, func() { p.collectEvents(context.WithoutCancel(ctx)) }) })
		DeferCleanup(p.cancel)
		runs = append(runs, p)
	}
	return runs
}

// verifyOnce begins a verification and, if that is acknowledged, verifies the number, however long it takes.
func (p *verificationRun) verifyOnce(ctx context.Context, method string) {
	s := p.shop
	r := request{number: newNumber()}
	body := map[string]string{"phoneNumber": r.number, "method": method}
	if !s.trySendRequest(ctx, http.MethodPost, s.api+"/api/verify/init", body, &r) {
		return // stored or not: no client has its id
	}
	p.mu.Lock()
	p.acked = append(p.acked, r.ID)
	p.mu.Unlock()
	s.trySendRequest(ctx, http.MethodPost, s.sim+"/sim/users", map[string]string{"name": "Ada", "phone": r.number}, nil)
	s.trySendMessage(ctx, r)
	proven := waitFor(ctx, func() bool { return s.isVerified(ctx, r) }, patience)
	s.trySendRequest(ctx, http.MethodDelete, s.sim+"/sim/users/"+r.number, nil, nil) // the simulator keeps a limited number of users
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proven++
	if !proven {
		p.errors = append(p.errors, r.ID+" was acknowledged and is "+s.readStatus(ctx, r.ID))
	}
}

// trySendRequest sends a request that may fail, and reports whether it was acknowledged.
func (s *shop) trySendRequest(ctx context.Context, method, url string, body, into any) bool {
	got, err := s.sendRequest(ctx, s.http, method, url, s.key, body)
	if err != nil || got.code < 200 || got.code > 299 {
		return false
	}
	return into == nil || json.Unmarshal([]byte(got.body), into) == nil
}

// trySendMessage is sendMessage that may fail.
func (s *shop) trySendMessage(ctx context.Context, r request) {
	user := s.sim + "/sim/users/" + r.number
	sent := s.trySendRequest(ctx, http.MethodPost, user+"/send", map[string]string{"link": r.WaLink + r.TgLink}, nil)
	if sent && r.TgLink != "" {
		s.trySendRequest(ctx, http.MethodPost, user+"/share-contact", map[string]string{"wait": "5s"}, nil)
	}
}

// isVerified reports whether a number is verified; if nothing happens, the user sends the message again.
func (s *shop) isVerified(ctx context.Context, r request) bool {
	switch s.readStatus(ctx, r.ID+"&wait=3s") {
	case "VERIFIED":
		return true
	case "PENDING":
		s.trySendMessage(ctx, r)
	}
	return false
}

// collectEvents collects the receiver's events since the last call.
func (p *verificationRun) collectEvents(ctx context.Context) {
	var last deliveries
	if !p.shop.trySendRequest(ctx, http.MethodGet, p.shop.sim+"/receiver/deliveries", nil, &last) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range last.Deliveries {
		p.events[e.Seq] = e
	}
}

// countVerified returns the number of verified numbers.
func (p *verificationRun) countVerified() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proven
}

// awaitMore waits for more verifications, so that an effect of the previous fault would be seen.
func (p *verificationRun) awaitMore(ctx context.Context, more int) {
	GinkgoHelper()
	Eventually(p.countVerified).WithContext(ctx).Should(BeNumerically(">=", p.countVerified()+more))
}

// stop stops the clients after each has finished its verification.
func (p *verificationRun) stop() {
	p.cancel()
	p.group.Wait()
}

// checkResults checks the clients' answers against the receiver's events, and returns a summary.
func (p *verificationRun) checkResults(ctx context.Context) string {
	GinkgoHelper()
	Expect(p.errors).To(BeEmpty())
	for _, id := range p.acked {
		Eventually(p.shop.readStatus).WithContext(ctx).WithArguments(id).Should(Equal("VERIFIED"), id)
	}
	var (
		delivered  map[string][]event
		duplicates int
	)
	Eventually(func(g Gomega) {
		p.collectEvents(ctx)
		delivered = p.byRequest()
		var missing []string
		for _, id := range p.acked {
			if len(delivered[id]) == 0 {
				missing = append(missing, id)
			}
		}
		g.Expect(missing).To(BeEmpty(), "requests without an event")
	}).WithContext(ctx).Should(Succeed())
	owners := map[string]string{}
	for id, events := range delivered {
		duplicates += len(events) - 1
		webhookID := events[0].Headers["webhook-id"]
		Expect(webhookID).NotTo(BeEmpty())
		Expect(owners).NotTo(HaveKey(webhookID), "one id of two events")
		owners[webhookID] = id
		for _, e := range events {
			Expect(e).To(accepted)
			Expect(e.Body).To(Equal(events[0].Body), "a repetition has the same bytes")
			Expect(e.Headers["webhook-id"]).To(Equal(webhookID), "and the same id")
		}
	}
	return fmt.Sprintf("%d requests acknowledged, all VERIFIED and delivered; %d events twice", len(p.acked), duplicates)
}

// byRequest returns the events of each request in order, and fails if the collector missed any.
func (p *verificationRun) byRequest() map[string][]event {
	GinkgoHelper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.events) == 0 {
		return nil
	}
	var first, last int64
	for seq := range p.events {
		if first == 0 || seq < first {
			first = seq
		}
		last = max(last, seq)
	}
	Expect(last-first+1).To(BeEquivalentTo(len(p.events)), "the receiver dropped events before they were collected")
	delivered := map[string][]event{}
	for seq := first; seq <= last; seq++ {
		var body struct {
			RequestID string `json:"requestId"`
		}
		Expect(json.Unmarshal([]byte(p.events[seq].Body), &body)).To(Succeed())
		delivered[body.RequestID] = append(delivered[body.RequestID], p.events[seq])
	}
	return delivered
}
