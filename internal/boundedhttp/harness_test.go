package boundedhttp

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestMain sets a timeout of Eventually that is long enough for a slow machine.
func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(20 * time.Second)
	m.Run()
}

// startServer serves a handler on loopback until the test ends.
func startServer(t *testing.T, handler http.Handler, config *tls.Config) *Listener {
	t.Helper()
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	server, bounded := NewServer(Options{
		Handler: handler, Listener: listener, TLS: config,
		ReadHeader: time.Minute, Read: time.Minute, Write: time.Minute, Idle: time.Minute,
	})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(bounded) }()
	t.Cleanup(func() {
		g.Expect(server.Close()).To(Succeed())
		g.Expect(errors.Is(<-ended, http.ErrServerClosed)).To(BeTrue())
	})
	return bounded
}

// dialServer opens a connection and sends the bytes, as far as the server reads them.
func dialServer(t *testing.T, to *Listener, sent []byte) net.Conn {
	t.Helper()
	g := NewWithT(t)
	c, err := net.Dial("tcp", to.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = c.Close() })
	g.Expect(c.SetDeadline(time.Now().Add(time.Minute))).To(Succeed())
	_, _ = c.Write(sent) // fails if the server refuses before it has read all
	return c
}
