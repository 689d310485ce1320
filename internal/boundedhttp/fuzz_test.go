package boundedhttp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// seenRequest is a request as its handler received it.
type seenRequest struct {
	Method, Target string
	Fields, Bytes  int
	Body           string
	Broken         bool
	Chunked        bool
}

// FuzzServer_agreesWithNetHTTP compares the requests that handlers receive with and without the limits: they are the same up
// to the first one over a limit, and none over a limit is received.
func FuzzServer_agreesWithNetHTTP(f *testing.F) {
	for _, stream := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\nHost: a\nContent-Length: 3\n\n\n\n\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nB: c\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}GET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n  c\r\n \r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n" + manyFields(MaxHeaderFields-1) + "\r\nGET / HTTP/1.1\r\nHost: a\r\n" + manyFields(MaxHeaderFields) + "\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("b", MaxHeaderBytes) + "\r\n\r\n",
	} {
		f.Add([]byte(stream), uint16(1))
		f.Add([]byte(stream), uint16(10_000))
	}
	f.Fuzz(func(t *testing.T, stream []byte, chunk uint16) {
		g := NewWithT(t)
		var unbounded []seenRequest
		server := &http.Server{Handler: recordRequests(&unbounded), MaxHeaderBytes: 1 << 20, DisableGeneralOptionsHandler: true}
		serveOne(t, server, func(l net.Listener) net.Listener { return l }, stream, chunk)

		var bounded []seenRequest
		var listener *Listener
		server, listener = NewServer(Options{Handler: recordRequests(&bounded)})
		serveOne(t, server, func(l net.Listener) net.Listener {
			listener.Listener = l
			return listener
		}, stream, chunk)

		g.Expect(len(bounded)).To(BeNumerically("<=", len(unbounded)))
		for i, request := range bounded {
			g.Expect(request).To(Equal(unbounded[i]))
			g.Expect(request.Fields).To(BeNumerically("<=", MaxHeaderFields))
			g.Expect(request.Bytes).To(BeNumerically("<=", MaxHeaderBytes))
		}
		if n := len(bounded); n < len(unbounded) && (n == 0 || !bounded[n-1].Chunked) {
			g.Expect(len(stream) > MaxHeaderBytes || bytes.Count(stream, []byte("\n")) > MaxHeaderFields).To(BeTrue(),
				"a request is missing, although none was over a limit")
		}
	})
}

func recordRequests(all *[]seenRequest) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		request := seenRequest{Method: r.Method, Target: r.RequestURI, Chunked: r.ContentLength < 0}
		for name, values := range r.Header {
			request.Fields += len(values)
			for _, value := range values {
				request.Bytes += len(name) + len(value)
			}
		}
		body, err := io.ReadAll(r.Body)
		request.Body, request.Broken = string(body), err != nil
		*all = append(*all, request)
	})
}

// serveOne serves a connection that sends the stream in pieces.
func serveOne(t *testing.T, server *http.Server, bound func(net.Listener) net.Listener, stream []byte, chunk uint16) {
	t.Helper()
	c := &scriptedConn{stream: stream, chunk: int(max(chunk, 1)), closed: make(chan struct{})}
	l := bound(&onceListener{conns: make(chan net.Conn, 1), over: c.closed})
	l.(interface{ offer(net.Conn) }).offer(c)
	err := server.Serve(l)
	NewWithT(t).Expect(err).To(MatchError(net.ErrClosed))
}

// onceListener is a listener of one connection.
type onceListener struct {
	conns chan net.Conn
	over  chan struct{}
}

func (o *onceListener) offer(c net.Conn) { o.conns <- c }

func (l *Listener) offer(c net.Conn) { l.Listener.(*onceListener).offer(c) }

func (o *onceListener) Accept() (net.Conn, error) {
	select {
	case c := <-o.conns:
		return c, nil
	default:
	}
	<-o.over
	return nil, net.ErrClosed
}

func (o *onceListener) Close() error { return nil }

func (o *onceListener) Addr() net.Addr { return &net.TCPAddr{} }

// scriptedConn is a connection whose client sends a stream and reads every answer.
type scriptedConn struct {
	mu     sync.Mutex
	stream []byte
	chunk  int
	once   sync.Once
	closed chan struct{}
}

func (s *scriptedConn) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.stream) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.stream[:min(s.chunk, len(s.stream))])
	s.stream = s.stream[n:]
	return n, nil
}

func (s *scriptedConn) Write(p []byte) (int, error) {
	select {
	case <-s.closed:
		return 0, errors.New("closed")
	default:
		return len(p), nil
	}
}

func (s *scriptedConn) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (s *scriptedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *scriptedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *scriptedConn) SetDeadline(time.Time) error      { return nil }
func (s *scriptedConn) SetReadDeadline(time.Time) error  { return nil }
func (s *scriptedConn) SetWriteDeadline(time.Time) error { return nil }
