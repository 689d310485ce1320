package boundedhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"sync"
	"time"
)

const (
	tooLargeAnswer = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\n" +
		"Connection: close\r\n\r\n431 Request Header Fields Too Large"
	// continueAnswer is what net/http writes when a handler reads a body that its client waits to send.
	continueAnswer = "HTTP/1.1 100 Continue\r\n\r\n"

	// endless is the length of a body whose length is unknown.
	endless = math.MaxInt64
)

// errTooLarge ends the connection of a header that was refused.
var errTooLarge = errors.New("the header is too large")

// conn is a connection that gives net/http a header only within the limits.
type conn struct {
	net.Conn

	// raw is what to close: a TLS connection would first tell its client.
	raw  net.Conn
	pool *pool
	seat seat

	mu     sync.Mutex // net/http reads ahead while a handler begins
	header header
	body   int64  // bytes of the body that net/http has not got yet
	held   []byte // read, and not given to net/http yet
}

func newConn(raw net.Conn, config *tls.Config, p *pool) *conn {
	raw = boundSocket(raw)
	c := &conn{Conn: raw, raw: raw, pool: p}
	if config != nil {
		c.Conn = newSecureConn(raw, config)
	}
	return c
}

// Read gives net/http the rest of a header or of a body, never a byte of what follows.
func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	if c.body > 0 {
		p = p[:min(int64(len(p)), c.body)]
	}
	if len(c.held) > 0 {
		n, change := c.countRead(p[:copy(p, c.held)])
		c.held = c.held[n:]
		c.mu.Unlock()
		return c.finishRead(p, n, change, nil)
	}
	c.mu.Unlock()

	read, err := c.Conn.Read(p)
	if read <= 0 {
		return read, err
	}
	c.mu.Lock()
	n, change := c.countRead(p[:read])
	c.held = append([]byte(nil), p[n:read]...)
	c.mu.Unlock()
	return c.finishRead(p, n, change, err)
}

// change is what a read means for the connection.
type change int

const (
	none change = iota
	headerIsLong
	headerIsTooLarge
	bodyIsReceived
)

// countRead counts what was read. It returns how much of it belongs to the header or the body that is being read.
func (c *conn) countRead(p []byte) (int, change) {
	if c.body > 0 {
		if c.body != endless {
			c.body -= int64(len(p))
		}
		if c.body == 0 {
			return len(p), bodyIsReceived
		}
		return len(p), none
	}
	n := c.header.scan(p)
	switch {
	case c.header.tooLarge():
		return n, headerIsTooLarge
	case c.header.long():
		return n, headerIsLong
	default:
		return n, none
	}
}

func (c *conn) finishRead(p []byte, n int, change change, err error) (int, error) {
	switch change {
	case none:
	case headerIsLong:
		c.pool.addCost(c, longHeaderCost)
	case bodyIsReceived:
		c.pool.finishBody(c)
	case headerIsTooLarge:
		c.pool.markUnserved(c)
		c.rejectHeader(p)
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: errTooLarge} // net/http answers nothing to one of these
	}
	return n, err
}

// rejectHeader answers 431 and takes in some of what is still sent, into p: a connection that is reset would lose the answer.
func (c *conn) rejectHeader(p []byte) {
	end := time.Now().Add(lingerTime)
	if c.SetDeadline(end) != nil {
		return
	}
	if _, err := io.WriteString(c.Conn, tooLargeAnswer); err != nil || c.CloseWrite() != nil {
		return
	}
	for taken := 0; taken < lingerBytes; {
		n, err := c.Conn.Read(p)
		if err != nil {
			return
		}
		taken += n
	}
}

// beginBody is called when net/http has parsed a header: a body of that length follows, -1 for one in chunks.
func (c *conn) beginBody(length int64) {
	chunked := length < 0
	if chunked {
		length = endless
	}
	c.mu.Lock()
	c.header = header{} // net/http may have read one byte ahead, which is not counted
	c.body = length
	c.mu.Unlock()
	c.pool.beginHandler(c, length > 0)
	if chunked {
		c.pool.addCost(c, chunkedCost)
	}
}

// Write notes that an answer begins.
func (c *conn) Write(p []byte) (int, error) {
	if string(p) != continueAnswer {
		c.pool.beginAnswer(c)
	}
	return c.Conn.Write(p)
}

// CloseWrite is what net/http calls so that a client reads the answer that it did not expect.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// connKey finds the connection in a request's context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}
