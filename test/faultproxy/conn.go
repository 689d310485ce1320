package faultproxy

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/phoneproof/phoneproof/test/tcpline"
)

// chunk is what is passed on at once.
const chunk = 32 << 10

// conn is a connection of a client, and the order by which its next answer is to be lost; nil if it is not.
type conn struct {
	*tcpline.Pair

	doomed atomic.Pointer[cut]
}

// carry passes on what both sides send, until one ends or the line breaks.
func (p *Proxy) carry(pair *tcpline.Pair) {
	if !p.meet(pair) {
		pair.Reset()
		return
	}
	c := &conn{Pair: pair}
	var both sync.WaitGroup
	both.Go(func() { p.pump(c, c.Client, c.Server, true) })
	both.Go(func() { p.pump(c, c.Server, c.Client, false) })
	both.Wait()
	p.spare(c)
}

// pump passes on one direction.
func (p *Proxy) pump(c *conn, from, to net.Conn, upstream bool) {
	buffer := make([]byte, chunk)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if upstream {
				p.doom(c, buffer[:n])
			}
			if !upstream && p.loseAnswer(c) {
				return
			}
			if !p.endure(c, n) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				c.Close()
				return
			}
		}
		if err != nil {
			c.Close()
			return
		}
	}
}

// endure waits as long as the weather wants n bytes to take, and tells whether the connection is there still.
func (p *Proxy) endure(c *conn, n int) bool {
	weather, changed := p.now()
	for weather.Hole {
		select {
		case <-c.Ended():
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
	case <-c.Ended():
		return false
	case <-changed:
	case <-timer.C:
	}
	return true
}
