package messenger

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/http2"
)

// TestPlatform_noProxyToTheSimulator: a proxy would learn what is meant for the simulator alone, and may lead elsewhere.
func TestPlatform_noProxyToTheSimulator(t *testing.T) {
	g := NewWithT(t)
	proxy := &url.URL{Scheme: "http", Host: "proxy.example.com:3128"}
	of := proxyExcept("simulator.example.com:8090", func(*http.Request) (*url.URL, error) { return proxy, nil })
	g.Expect(of(httptest.NewRequest(http.MethodPost, "http://simulator.example.com:8090/botsim_x/getMe", http.NoBody))).To(BeNil())
	g.Expect(of(httptest.NewRequest(http.MethodPost, "https://api.telegram.org/bot1:x/getMe", http.NoBody))).To(Equal(proxy))
}

// TestPlatform_callsOnce: net/http repeats a call over HTTP/2 whose stream was reset for a protocol error, also one that was sent whole.
func TestPlatform_callsOnce(t *testing.T) {
	g := NewWithT(t)
	var calls atomic.Int32
	server := httptest.NewUnstartedServer(nil)
	server.EnableHTTP2 = true
	server.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
		framer := http2.NewFramer(conn, conn)
		_, _ = io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
		_ = framer.WriteSettings()
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				return
			}
			if data, isData := frame.(*http2.DataFrame); isData && data.StreamEnded() {
				calls.Add(1)
				_ = framer.WriteRSTStream(data.StreamID, http2.ErrCodeProtocol)
			}
		}
	}}
	server.StartTLS()
	defer server.Close()
	p, err := NewPlatform(PlatformOptions{URL: server.URL, Transport: server.Client().Transport})
	g.Expect(err).NotTo(HaveOccurred())
	call := Call{Method: http.MethodPost, URL: server.URL, Body: "a code", Timeout: 30 * time.Second}
	err = p.Do(t.Context(), call, func(a Answer) error { return a.Err })
	g.Expect(err).To(HaveOccurred())
	g.Expect(Unanswered(err).Unsent).To(BeFalse())
	g.Expect(calls.Load()).To(BeEquivalentTo(1))
}
