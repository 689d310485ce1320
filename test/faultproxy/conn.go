package faultproxy

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// chunk is what is passed on at once.
const chunk = 32 << 10

// conn is a client's connection and the one to the server that goes with it.
type conn struct {
	client, server net.Conn
	owner          string
	ended          chan struct{}
	end            func()
	doomed         atomic.Bool
}

// carry passes on what both sides send, until one ends or the line breaks.
func (p *Proxy) carry(client net.Conn) {
	owner := p.identify(client)                                    // while it is there for sure
	server, err := net.DialTimeout("tcp", p.target, 5*time.Second) //nolint:noctx // it ends with the line
	if err != nil {
		abort(client)
		return
	}
	c := &conn{client: client, server: server, owner: owner, ended: make(chan struct{})}
	c.end = sync.OnceFunc(func() { close(c.ended) })
	if !p.keep(c) {
		c.reset()
		return
	}
	defer p.drop(c)
	var both sync.WaitGroup
	both.Go(func() { p.pump(c, client, server, true) })
	both.Go(func() { p.pump(c, server, client, false) })
	both.Wait()
	c.end()
	_ = client.Close()
	_ = server.Close()
}

// pump passes on one direction.
func (p *Proxy) pump(c *conn, from, to net.Conn, upstream bool) {
	buffer := make([]byte, chunk)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if upstream && p.dooms(c, buffer[:n]) {
				c.doomed.Store(true)
			}
			if !upstream && c.doomed.Load() {
				c.reset()
				return
			}
			if !p.endure(c, n) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				c.close()
				return
			}
		}
		if err != nil {
			c.close()
			return
		}
	}
}

// endure waits as long as the weather wants n bytes to take, and tells whether the connection is there still.
func (p *Proxy) endure(c *conn, n int) bool {
	weather, changed := p.now()
	for weather.Hole {
		select {
		case <-c.ended:
			return false
		case <-changed:
			weather, changed = p.now()
		}
	}
	wait := weather.Delay
	if weather.BytesPerSecond > 0 {
		wait += time.Duration(n) * time.Second / time.Duration(weather.BytesPerSecond)
	}
	if wait == 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-c.ended:
		return false
	case <-changed:
	case <-timer.C:
	}
	return true
}

// close ends both sides in order.
func (c *conn) close() {
	c.end()
	_ = c.client.Close()
	_ = c.server.Close()
}

// reset ends both sides at once: the client sees a connection reset by its peer.
func (c *conn) reset() {
	c.end()
	abort(c.client)
	abort(c.server)
}

func abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
