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
	// continueAnswer is written by net/http when a handler reads a body that its client waits to send.
	continueAnswer = "HTTP/1.1 100 Continue\r\n\r\n"

	// endless is the length of a body whose length is unknown.
	endless = math.MaxInt64
)

// errTooLarge is the read error that makes net/http close the connection of a refused header.
var errTooLarge = errors.New("the header is too large")

// conn is a connection that passes a header to net/http only within the limits.
type conn struct {
	net.Conn

	// raw is the connection to close: closing a TLS connection would first send an alert to its client.
	raw  net.Conn
	pool *pool
	seat seat

	mu     sync.Mutex // net/http reads ahead while a handler starts
	header header
	body   int64  // bytes of the body that net/http has not read yet
	held   []byte // read, and not passed to net/http yet
}

func newConn(raw net.Conn, config *tls.Config, p *pool) *conn {
	raw = boundSocket(raw)
	c := &conn{Conn: raw, raw: raw, pool: p}
	if config != nil {
		c.Conn = newSecureConn(raw, config)
	}
	return c
}

// Read returns bytes of one header or one body, and never a byte of the one after it.
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

// change is the effect of a read on the cost and the state of the connection.
type change int

const (
	none change = iota
	headerIsLong
	headerIsTooLarge
	bodyIsReceived
)

// countRead counts the bytes that were read. It returns how many of them belong to the current header or body.
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
	n := c.header.countBytes(p)
	switch {
	case c.header.isTooLarge():
		return n, headerIsTooLarge
	case c.header.isLong():
		return n, headerIsLong
	default:
		return n, none
	}
}

// finishRead applies the change of a read of n bytes into p, and returns the result for net/http.
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
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: errTooLarge} // net/http sends no answer after a net.OpError
	}
	return n, err
}

// rejectHeader answers 431, and then reads some of what the client still sends, into p: a reset would lose the answer.
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

// beginBody is called when net/http has parsed a header. length is the length of its body; -1 for a body in chunks.
func (c *conn) beginBody(length int64) {
	chunked := length < 0
	if chunked {
		length = endless
	}
	c.mu.Lock()
	c.header = header{} // the one byte that net/http may have read ahead is not counted
	c.body = length
	c.mu.Unlock()
	c.pool.beginHandler(c, length > 0)
	if chunked {
		c.pool.addCost(c, chunkedCost)
	}
}

// Write records the begin of an answer.
func (c *conn) Write(p []byte) (int, error) {
	if string(p) != continueAnswer {
		c.pool.beginAnswer(c)
	}
	return c.Conn.Write(p)
}

// CloseWrite is called by net/http so that a client that is still sending can read the answer.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// connKey is the context key of the connection of a request.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}
