package webhook

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/net/dns/dnsmessage"
)

// dnsServer is a name server on loopback, by UDP and TCP.
type dnsServer struct {
	udp    net.PacketConn
	tcp    net.Listener
	answer func(*dnsmessage.Message)
}

// newDNS starts a name server. answer completes each response; if it is nil, the server never responds.
func newDNS(t testing.TB, answer func(*dnsmessage.Message)) *dnsServer {
	t.Helper()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = udp.Close() })
	d := &dnsServer{udp: udp, tcp: listenOn(t, "127.0.0.1:0"), answer: answer}
	go d.serveUDP()
	go acceptAll(d.tcp, d.serveTCP)
	return d
}

func (d *dnsServer) newResolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var dialer net.Dialer
		if strings.HasPrefix(network, "tcp") {
			return dialer.DialContext(ctx, "tcp", d.tcp.Addr().String())
		}
		return dialer.DialContext(ctx, "udp", d.udp.LocalAddr().String())
	}}
}

func (d *dnsServer) serveUDP() {
	buf := make([]byte, 4096)
	for {
		n, from, err := d.udp.ReadFrom(buf)
		if err != nil {
			return
		}
		reply := d.buildReply(buf[:n])
		if len(reply) > 1200 {
			reply = truncateReply(reply)
		}
		if reply != nil {
			_, _ = d.udp.WriteTo(reply, from)
		}
	}
}

func (d *dnsServer) serveTCP(conn net.Conn) {
	for {
		var length [2]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		if reply := d.buildReply(query); reply != nil {
			_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
		}
	}
}

func (d *dnsServer) buildReply(query []byte) []byte {
	var m dnsmessage.Message
	if d.answer == nil || m.Unpack(query) != nil {
		return nil
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	d.answer(&m)
	reply, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return reply
}

func truncateReply(reply []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(reply) != nil {
		return nil
	}
	m.Truncated, m.Answers = true, nil
	reply, _ = m.Pack()
	return reply
}

// answerA answers any name with IPv4 addresses.
func answerA(addresses ...netip.Addr) func(*dnsmessage.Message) {
	return func(m *dnsmessage.Message) {
		q := m.Questions[0]
		if q.Type != dnsmessage.TypeA {
			return
		}
		for _, ip := range addresses {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: ip.As4()},
			})
		}
	}
}

func answerError(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeServerFailure }

func answerLoop(m *dnsmessage.Message) {
	q := m.Questions[0]
	m.Answers = []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeCNAME, Class: q.Class},
		Body:   &dnsmessage.CNAMEResource{CNAME: q.Name},
	}}
}

// TestSend_dns checks that a broken name costs one attempt with a reason, and leaves no goroutine behind.
func TestSend_dns(t *testing.T) {
	thousand := func(format string) []netip.Addr {
		var addresses []netip.Addr
		for i := range 1000 {
			addresses = append(addresses, netip.MustParseAddr(fmt.Sprintf(format, i/250, i%250+1)))
		}
		return addresses
	}
	for name, c := range map[string]struct {
		answer func(*dnsmessage.Message)
		want   Reason
	}{
		"SERVFAIL":                {answerError, ReasonDNS},
		"NXDOMAIN":                {func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeNameError }, ReasonDNSNotFound},
		"REFUSED":                 {func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeRefused }, ReasonDNS},
		"no records":              {func(*dnsmessage.Message) {}, ReasonDNSNotFound},
		"CNAME loop":              {answerLoop, ReasonDNSNotFound},
		"no response":             {nil, ReasonTimeout},
		"1,000 addresses":         {answerA(thousand("127.9.%d.%d")...), ReasonRefused},
		"1,000 blocked addresses": {answerA(thousand("169.254.%d.%d")...), ReasonBlockedAddress},
		"blocked ones first":      {answerA(append(thousand("169.254.%d.%d"), netip.MustParseAddr("127.0.0.1"))...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server, _ := newReceiver(t, http.StatusOK)
			_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
			s := newSender(t, Options{Resolver: newDNS(t, c.answer).newResolver()})
			to := testDestination("http://shop.test.:" + port)
			if c.answer == nil {
				to.timeout = patience
			}
			before := runtime.NumGoroutine()
			g.Expect(sendEvent(t, s, to).Reason).To(Equal(c.want))
			s.Close()
			// A dial outlives its attempt by at most maxDial; here the resolver's own timeout is the longest.
			g.Eventually(runtime.NumGoroutine, 3*maxDial).Should(BeNumerically("<=", before+2))
		})
	}
}

// TestSend_rebinding uses a name that resolves to an allowed address first, then to a refused one. Loopback has enough
// addresses for both.
func TestSend_rebinding(t *testing.T) {
	g := NewWithT(t)
	var c *canary
	listener, err := net.Listener(nil), error(syscall.EADDRINUSE)
	for errors.Is(err, syscall.EADDRINUSE) { // another program may have the port on 127.0.0.2
		c = newCanary(t, "127.0.0.1:0")
		listener, err = net.Listen("tcp", "127.0.0.2:"+c.listenPort())
	}
	g.Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()

	var queries atomic.Int64
	dns := newDNS(t, func(m *dnsmessage.Message) {
		if m.Questions[0].Type != dnsmessage.TypeA {
			return
		}
		ip := netip.MustParseAddr("127.0.0.2")
		if queries.Add(1) > 1 {
			ip = netip.MustParseAddr("127.0.0.1")
		}
		answerA(ip)(m)
	})
	guard := NewGuard(GuardConfig{})
	guard.loopback = parsePrefixes("127.0.0.2/32")
	s := newSender(t, Options{Guard: guard, Resolver: dns.newResolver()})
	to := testDestination("http://rebind.test.:" + c.listenPort())
	g.Expect(sendEvent(t, s, to).Outcome).To(Equal(Delivered))
	for range 3 {
		g.Expect(sendEvent(t, s, to).Reason).To(Equal(ReasonBlockedAddress))
	}
	g.Expect(queries.Load()).To(BeNumerically(">", 1))
	g.Expect(c.countConnections(t)).To(BeZero())
}
