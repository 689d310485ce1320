//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// proofs are clients whose users prove their numbers, one after another. A client tries until it is acknowledged, a user
// until the number is verified, and a collector keeps all that the receiver got, which itself remembers the last of it.
type proofs struct {
	shop   *shop
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu     sync.Mutex
	acked  []string // ids of requests that were acknowledged
	proven int
	errors []string
	events map[int64]event // by their place in what the receiver got
}

// prove starts the clients, two for each messenger.
func (s *shop) prove(ctx context.Context) *proofs {
	GinkgoHelper()
	s.must(ctx, http.MethodDelete, s.sim+"/receiver/deliveries", nil, nil)
	ctx, cancel := context.WithCancel(ctx)
	p := &proofs{shop: s, cancel: cancel, events: map[int64]event{}}
	for _, method := range []string{"WHATSAPP", "TELEGRAM", "WHATSAPP", "TELEGRAM"} {
		p.group.Go(func() { every(ctx, pace, func() { p.once(context.WithoutCancel(ctx), method) }) })
	}
	p.group.Go(func() { every(ctx, pace, func() { p.collect(context.WithoutCancel(ctx)) }) })
	DeferCleanup(p.cancel)
	return p
}

// once begins a verification and, if that is acknowledged, proves the number, however long that takes.
func (p *proofs) once(ctx context.Context, method string) {
	s := p.shop
	r := request{number: newNumber()}
	body := map[string]string{"phoneNumber": r.number, "method": method}
	if !s.tell(ctx, http.MethodPost, s.api+"/api/verify/init", body, &r) {
		return // whether it is stored or not: nobody has its id
	}
	p.mu.Lock()
	p.acked = append(p.acked, r.ID)
	p.mu.Unlock()
	s.tell(ctx, http.MethodPost, s.sim+"/sim/users", map[string]string{"name": "Ada", "phone": r.number}, nil)
	s.trySend(ctx, r)
	proven := eventually(ctx, func() bool { return s.proves(ctx, r) }, patience)
	s.tell(ctx, http.MethodDelete, s.sim+"/sim/users/"+r.number, nil, nil) // the simulator has room for so many
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proven++
	if !proven {
		p.errors = append(p.errors, r.ID+" was acknowledged and is "+s.status(ctx, r.ID))
	}
}

// tell does an exchange that may fail, and says whether it was acknowledged.
func (s *shop) tell(ctx context.Context, method, url string, body, into any) bool {
	got, err := s.do(ctx, s.http, method, url, s.key, body)
	if err != nil || got.code < 200 || got.code > 299 {
		return false
	}
	return into == nil || json.Unmarshal([]byte(got.body), into) == nil
}

// trySend is send for when it may not work.
func (s *shop) trySend(ctx context.Context, r request) {
	user := s.sim + "/sim/users/" + r.number
	sent := s.tell(ctx, http.MethodPost, user+"/send", map[string]string{"link": r.WaLink + r.TgLink}, nil)
	if sent && r.TgLink != "" {
		s.tell(ctx, http.MethodPost, user+"/share-contact", map[string]string{"wait": "5s"}, nil)
	}
}

// proves says whether a number is verified; one who waits for nothing sends the message again.
func (s *shop) proves(ctx context.Context, r request) bool {
	switch s.status(ctx, r.ID+"&wait=3s") {
	case "VERIFIED":
		return true
	case "PENDING":
		s.trySend(ctx, r)
	}
	return false
}

// collect keeps what the receiver got since the last time.
func (p *proofs) collect(ctx context.Context) {
	var last deliveries
	if !p.shop.tell(ctx, http.MethodGet, p.shop.sim+"/receiver/deliveries", nil, &last) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range last.Deliveries {
		p.events[e.Seq] = e
	}
}

// count returns how many numbers were proved.
func (p *proofs) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proven
}

// keepsOn waits for further proofs, so that what happened just before had the chance to hurt.
func (p *proofs) keepsOn(ctx context.Context) {
	GinkgoHelper()
	Eventually(p.count).WithContext(ctx).Should(BeNumerically(">=", p.count()+20))
}

// end stops the clients; each brings what it began to its end.
func (p *proofs) end() {
	p.cancel()
	p.group.Wait()
}

// judge looks through all that the clients were told and all that the receiver got, and sums it up.
func (p *proofs) judge(ctx context.Context) string {
	GinkgoHelper()
	Expect(p.errors).To(BeEmpty())
	for _, id := range p.acked {
		Eventually(p.shop.status).WithContext(ctx).WithArguments(id).Should(Equal("VERIFIED"), id)
	}
	var (
		told       map[string][]event
		duplicates int
	)
	Eventually(func(g Gomega) {
		p.collect(ctx)
		told = p.byRequest()
		var missing []string
		for _, id := range p.acked {
			if len(told[id]) == 0 {
				missing = append(missing, id)
			}
		}
		g.Expect(missing).To(BeEmpty(), "no event for these")
	}).WithContext(ctx).Should(Succeed())
	owners := map[string]string{}
	for id, events := range told {
		duplicates += len(events) - 1
		webhookID := events[0].Headers["webhook-id"]
		Expect(webhookID).NotTo(BeEmpty())
		Expect(owners).NotTo(HaveKey(webhookID), "an id of two events")
		owners[webhookID] = id
		for _, e := range events {
			Expect(e).To(accepted)
			Expect(e.Body).To(Equal(events[0].Body), "a repetition has the same bytes")
			Expect(e.Headers["webhook-id"]).To(Equal(webhookID), "and the same id")
		}
	}
	return fmt.Sprintf("%d requests acknowledged, all VERIFIED and told of; %d events twice", len(p.acked), duplicates)
}

// byRequest returns the events of each request, in their order, if none was missed.
func (p *proofs) byRequest() map[string][]event {
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
	Expect(last-first+1).To(BeEquivalentTo(len(p.events)), "the receiver forgot some before they were collected")
	told := map[string][]event{}
	for seq := first; seq <= last; seq++ {
		var body struct {
			RequestID string `json:"requestId"`
		}
		Expect(json.Unmarshal([]byte(p.events[seq].Body), &body)).To(Succeed())
		told[body.RequestID] = append(told[body.RequestID], p.events[seq])
	}
	return told
}

// kill ends the process of a container at once. Its control group tells which that is.
func kill(containerID string) error {
	_, id, _ := strings.Cut(containerID, "://")
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return err
	}
	for _, file := range groups {
		content, err := os.ReadFile(file)
		if err != nil || id == "" || !strings.Contains(string(content), id) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	return fmt.Errorf("no process has the control group of container %q", id)
}
