package webhook

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// The tests below are about events that are due and yet not sent: no attempt is used.

// TestSend_pausesWithoutTheSecret shows that nothing is dialed and no attempt is used.
func TestSend_pausesWithoutTheSecret(t *testing.T) {
	g := NewWithT(t)
	c := newCanary(t, "127.0.0.1:0")
	s := newSender(t, Options{})
	to := NewEndpoint("shop", &settings.Webhook{URL: "http://127.0.0.1:" + c.port(), Signed: true})
	_, err := s.Send(t.Context(), to, testEvent())
	g.Expect(err).To(MatchError(ErrPaused))
	to.previous = fakeSecret{current: rawSecret}
	_, err = s.Send(t.Context(), to, testEvent())
	g.Expect(err).To(MatchError(ErrPaused), "the previous secret alone does not sign")
	g.Expect(c.count(t)).To(BeZero())
}

func TestSend_leaseLostBeforeTheDial(t *testing.T) {
	g := NewWithT(t)
	c := newCanary(t, "127.0.0.1:0")
	s := newSender(t, Options{MaySend: func() bool { return false }})
	for range 2 * MaxInFlight {
		_, err := s.Send(t.Context(), endpoint("http://127.0.0.1:"+c.port()), testEvent())
		g.Expect(err).To(MatchError(ErrNotLeading), "and its slot is given back")
	}
	g.Expect(c.count(t)).To(BeZero())
}

// TestSend_leaseLostDuringTheDial shuts the gate between the first question and the writing of the body.
func TestSend_leaseLostDuringTheDial(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){
		"HTTP/1": (*httptest.Server).Start, "HTTP/2": startHTTP2,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var whole, asked atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.ReadAll(r.Body); err == nil {
					whole.Add(1)
				}
			}))
			server.Config.ErrorLog = quiet
			start(server)
			defer server.Close()
			s := newSender(t, Options{MaySend: func() bool { return asked.Add(1) == 1 }})
			to := endpoint(server.URL)
			to.caBundle = bundleOf(server)
			_, err := s.Send(t.Context(), to, testEvent())
			g.Expect(err).To(Equal(ErrNotLeading))
			g.Expect(asked.Load()).To(BeEquivalentTo(2))
			s.Close()
			server.Close() // waits for the handlers
			g.Expect(whole.Load()).To(BeZero())
			g.Expect(s.Free(to)).To(Equal(SlowStart))
		})
	}
}

func TestSend_interruptedIsNoAttempt(t *testing.T) {
	g := NewWithT(t)
	arrived := make(chan struct{})
	url := serveRaw(t, func(conn *net.TCPConn) {
		close(arrived)
		_, _ = conn.Read(make([]byte, 1))
	})
	registry := prometheus.NewRegistry()
	s := newSender(t, Options{Registerer: registry})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := s.Send(ctx, endpoint(url), testEvent())
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(s.Free(endpoint(url))).To(Equal(SlowStart))
	g.Expect(gathered(g, registry)).NotTo(ContainSubstring("attempts_total"))
}

// TestSend_outOfFileDescriptors is what happens when the process may open no more files.
func TestSend_outOfFileDescriptors(t *testing.T) {
	g := NewWithT(t)
	server, _ := newReceiver(t, http.StatusOK)
	s := newSender(t, Options{})
	var files []*os.File
	restore := limitFiles(t)
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		files = append(files, f)
	}
	_, err := s.Send(t.Context(), endpoint(server.URL), testEvent())
	restore()
	for _, f := range files {
		_ = f.Close()
	}
	g.Expect(err).To(Equal(ErrNoResources))
	g.Expect(s.Free(endpoint(server.URL))).To(Equal(SlowStart))
}
