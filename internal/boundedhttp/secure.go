package boundedhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// errNoProgress closes a TLS connection that sends too many bytes and none of a request.
var errNoProgress = errors.New("too many bytes of TLS and none of a request")

// secureConn is a TLS connection that limits the size of handshake messages and records.
type secureConn struct {
	*tls.Conn

	meter *meter
}

func newSecureConn(raw net.Conn, config *tls.Config) *secureConn {
	m := &meter{Conn: raw}
	return &secureConn{Conn: tls.Server(m, config), meter: m}
}

// Read first completes the handshake, within its own limit. Only one goroutine of net/http reads at a time.
func (c *secureConn) Read(p []byte) (int, error) {
	if !c.meter.shaken {
		c.meter.left = handshakeBytes
		if err := c.HandshakeContext(context.Background()); err != nil {
			return 0, err //nolint:wrapcheck // net/http checks its type
		}
		c.meter.shaken = true
	}
	c.meter.left = recordBytes
	return c.Conn.Read(p)
}

// meter is a connection from which only a limited number of bytes can be read.
type meter struct {
	net.Conn

	shaken bool
	left   int
}

// Read returns an error when no bytes are left.
func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: errNoProgress}
	}
	n, err := m.Conn.Read(p[:min(len(p), m.left)])
	m.left -= n
	return n, err
}
