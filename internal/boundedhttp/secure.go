package boundedhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// errNoProgress ends a TLS connection that sends too much and no byte of a request.
var errNoProgress = errors.New("too many bytes of TLS and none of a request")

// secureConn is a TLS connection whose client cannot send messages of any size.
type secureConn struct {
	*tls.Conn

	meter *meter
}

func newSecureConn(raw net.Conn, config *tls.Config) *secureConn {
	m := &meter{Conn: raw}
	return &secureConn{Conn: tls.Server(m, config), meter: m}
}

// Read completes the handshake first, within its own bound. Only one goroutine of net/http reads at a time.
func (c *secureConn) Read(p []byte) (int, error) {
	if !c.meter.shaken {
		c.meter.left = handshakeBytes
		if err := c.HandshakeContext(context.Background()); err != nil {
			return 0, err //nolint:wrapcheck // net/http asks it what kind it is
		}
		c.meter.shaken = true
	}
	c.meter.left = recordBytes
	return c.Conn.Read(p) //nolint:wrapcheck // as above
}

// meter lets a bounded number of bytes pass.
type meter struct {
	net.Conn

	shaken bool
	left   int
}

// Read fails when none is left.
func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: errNoProgress}
	}
	n, err := m.Conn.Read(p[:min(len(p), m.left)])
	m.left -= n
	return n, err //nolint:wrapcheck // tls asks it what kind it is
}
