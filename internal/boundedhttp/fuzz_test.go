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

// seen is a request as a handler got it.
type seen struct {
	Method, Target string
	Fields, Bytes  int
	Body           string
	Broken         bool
	Chunked        bool
}

// FuzzServer_agreesWithNetHTTP compares what handlers get with and without the bound: the same requests, up to one that is
// over a limit, and never one that makes net/http hold more.
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
		var unbounded []seen
		server := &http.Server{Handler: record(&unbounded), MaxHeaderBytes: 1 << 20, DisableGeneralOptionsHandler: true}
		serveOne(t, server, func(l net.Listener) net.Listener { return l }, stream, chunk)

		var bounded []seen
		var listener *Listener
		server, listener = NewServer(Options{Handler: record(&bounded)})
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
				"a request is missing, and nothing was over a limit")
		}
	})
}

func record(all *[]seen) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		request := seen{Method: r.Method, Target: r.RequestURI, Chunked: r.ContentLength < 0}
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
	c := &script{stream: stream, chunk: int(max(chunk, 1)), closed: make(chan struct{})}
	l := bound(&once{conns: make(chan net.Conn, 1), over: c.closed})
	l.(interface{ offer(net.Conn) }).offer(c)
	err := server.Serve(l)
	NewWithT(t).Expect(err).To(MatchError(net.ErrClosed))
}

// once is a listener of one connection.
type once struct {
	conns chan net.Conn
	over  chan struct{}
}

func (o *once) offer(c net.Conn) { o.conns <- c }

func (l *Listener) offer(c net.Conn) { l.Listener.(*once).offer(c) }

func (o *once) Accept() (net.Conn, error) {
	select {
	case c := <-o.conns:
		return c, nil
	default:
	}
	<-o.over
	return nil, net.ErrClosed
}

func (o *once) Close() error { return nil }

func (o *once) Addr() net.Addr { return &net.TCPAddr{} }

// script is a connection whose client sends a stream and takes every answer.
type script struct {
	mu     sync.Mutex
	stream []byte
	chunk  int
	once   sync.Once
	closed chan struct{}
}

func (s *script) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.stream) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.stream[:min(s.chunk, len(s.stream))])
	s.stream = s.stream[n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error) {
	select {
	case <-s.closed:
		return 0, errors.New("closed")
	default:
		return len(p), nil
	}
}

func (s *script) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (s *script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
