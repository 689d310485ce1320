package webhook

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// The tests below check due events that cannot be sent: no attempt is used up.

// TestSend_pausesWithoutTheSecret checks that nothing is dialed and no attempt is used up.
func TestSend_pausesWithoutTheSecret(t *testing.T) {
	g := NewWithT(t)
	c := newCanary(t, "127.0.0.1:0")
	s := newSender(t, Options{})
	to := NewEndpoint("shop", &settings.Webhook{URL: "http://127.0.0.1:" + c.listenPort(), Signed: true}).Reveal()
	_, err := s.Send(t.Context(), newEndpoint(to), testEvent())
	g.Expect(err).To(MatchError(ErrPaused))
	to.previous = fakeSecret{current: rawSecret}
	_, err = s.Send(t.Context(), newEndpoint(to), testEvent())
	g.Expect(err).To(MatchError(ErrPaused), "the previous secret alone does not sign")
	g.Expect(c.countConnections(t)).To(BeZero())
}

func TestSend_leaseLostBeforeTheDial(t *testing.T) {
	g := NewWithT(t)
	c := newCanary(t, "127.0.0.1:0")
	s := newSender(t, Options{MaySend: func() bool { return false }})
	for range 2 * MaxInFlight {
		_, err := s.Send(t.Context(), newEndpoint(testDestination("http://127.0.0.1:"+c.listenPort())), testEvent())
		g.Expect(err).To(MatchError(ErrNotLeading), "its slot must be released")
	}
	g.Expect(c.countConnections(t)).To(BeZero())
}

// TestSend_leaseLostDuringTheDial closes the gate between its first check and the write of the body.
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
			to := testDestination(server.URL)
			to.caBundle = bundleOf(server)
			_, err := s.Send(t.Context(), newEndpoint(to), testEvent())
			g.Expect(err).To(Equal(ErrNotLeading))
			g.Expect(asked.Load()).To(BeEquivalentTo(2))
			s.Close()
			server.Close() // waits for the handlers
			g.Expect(whole.Load()).To(BeZero())
			g.Expect(s.Free(newEndpoint(to))).To(Equal(SlowStart))
		})
	}
}

// TestSend_leaseLostWhileTheWindowIsShut uses an HTTP/2 receiver whose window has no room for the body until the lease
// is lost.
func TestSend_leaseLostWhileTheWindowIsShut(t *testing.T) {
	for name, lost := range map[string]bool{"lost": true, "kept": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var shut atomic.Bool
			var asked atomic.Int64
			whole := make(chan bool, 1)
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = quiet
			server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}
			server.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
				"h2": func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
					whole <- receiveLate(conn, func() {
						g.Eventually(asked.Load).WithTimeout(30*time.Second).Should(BeEquivalentTo(2), "before the dial, and for the first bytes")
						shut.Store(lost)
					})
				},
			}
			server.StartTLS()
			defer server.Close()
			s := newSender(t, Options{MaySend: func() bool {
				asked.Add(1)
				return !shut.Load()
			}})
			to := testDestination(server.URL)
			to.caBundle = bundleOf(server)
			g.Expect(sendEvent(t, s, to).Outcome).To(Equal(Delivered), "now it knows the window")
			asked.Store(0)
			_, err := s.Send(t.Context(), newEndpoint(to), testEvent())
			if lost {
				g.Expect(err).To(Equal(ErrNotLeading))
			} else {
				g.Expect(err).NotTo(HaveOccurred(), "an attempt without an answer")
			}
			s.Close()
			g.Eventually(whole).WithTimeout(30 * time.Second).Should(Receive(Equal(!lost)))
		})
	}
}

// The HTTP/2 frames of receiveLate.
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameReset        = 0x3
	frameSettings     = 0x4
	frameWindowUpdate = 0x8
	flagEndStream     = 0x1
	flagEndHeaders    = 0x4
	status204         = 0x89 // in HPACK
)

// receiveLate serves HTTP/2 and answers the first request with 204. For the second it opens the body's window only
// after the header has come and meanwhile has returned. It closes the connection at the end of the body, and reports
// whether that came.
func receiveLate(conn net.Conn, meanwhile func()) bool {
	defer func() { _ = conn.Close() }()
	frame := func(kind, flags byte, stream uint32, payload ...byte) {
		header := binary.BigEndian.AppendUint32([]byte{0, 0, byte(len(payload)), kind, flags}, stream)
		_, _ = conn.Write(append(header, payload...))
	}
	frame(frameSettings, 0, 0, 0, 4, 0, 0, 0, 0) // SETTINGS_INITIAL_WINDOW_SIZE is 0
	if _, err := io.CopyN(io.Discard, conn, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return false
	}
	for {
		var header [9]byte
		if _, err := io.ReadFull(conn, header[:]); err != nil {
			return false
		}
		length := int64(header[0])<<16 | int64(header[1])<<8 | int64(header[2])
		if _, err := io.CopyN(io.Discard, conn, length); err != nil {
			return false
		}
		const first = 1
		stream := binary.BigEndian.Uint32(header[5:])
		switch {
		case header[3] == frameHeaders:
			if stream != first {
				meanwhile()
			}
			frame(frameWindowUpdate, 0, stream, 0, 0, 0xff, 0xff)
		case header[3] == frameData && header[4]&flagEndStream != 0 && stream == first:
			frame(frameHeaders, flagEndStream|flagEndHeaders, first, status204)
		case header[3] == frameData && header[4]&flagEndStream != 0:
			return true
		case header[3] == frameReset && stream != first: // a client may reset the first after an answer that came very soon
			return false
		}
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
	_, err := s.Send(ctx, newEndpoint(testDestination(url)), testEvent())
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(s.Free(newEndpoint(testDestination(url)))).To(Equal(SlowStart))
	g.Expect(gatherText(g, registry)).NotTo(ContainSubstring("attempts_total"))
}

// TestSend_outOfFileDescriptors sends while the process may open no more files.
func TestSend_outOfFileDescriptors(t *testing.T) {
	g := NewWithT(t)
	server, _ := newReceiver(t, http.StatusOK)
	s := newSender(t, Options{})
	var files []*os.File
	restore := limitFiles(t)
	var err error
	for range 10 { // goroutines of earlier tests may close files meanwhile
		for {
			f, full := os.Open(os.DevNull)
			if full != nil {
				break
			}
			files = append(files, f)
		}
		if _, err = s.Send(t.Context(), newEndpoint(impatientDestination(server.URL)), testEvent()); err != nil {
			break
		}
	}
	restore()
	for _, f := range files {
		_ = f.Close()
	}
	g.Expect(err).To(Equal(ErrNoResources))
	g.Expect(s.Free(newEndpoint(testDestination(server.URL)))).To(Equal(SlowStart))
}
