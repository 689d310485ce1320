package faultproxy

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/phoneproof/phoneproof/test/tcpline"
)

// chunk is the largest number of bytes that are forwarded at once.
const chunk = 32 << 10

// conn is a client's connection, and the order to cut its next answer; nil if there is none.
type conn struct {
	*tcpline.Pair

	doomed atomic.Pointer[cut]
}

// carryConnection forwards both directions until one side ends or the line breaks.
func (p *Proxy) carryConnection(pair *tcpline.Pair) {
	p.recordCaller(pair)
	c := &conn{Pair: pair}
	var both sync.WaitGroup
	both.Go(func() { p.forwardBytes(c, c.Client, c.Server, true) })
	both.Go(func() { p.forwardBytes(c, c.Server, c.Client, false) })
	both.Wait()
	p.giveBack(c)
}

// forwardBytes forwards one direction.
func (p *Proxy) forwardBytes(c *conn, from, to net.Conn, upstream bool) {
	buffer := make([]byte, chunk)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if upstream {
				p.markForCut(c)
			}
			if !upstream && p.loseAnswer(c) {
				return
			}
			if !p.delayBytes(c, n) {
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

// delayBytes waits as long as n bytes take in the current weather, and reports whether the connection is still open.
func (p *Proxy) delayBytes(c *conn, n int) bool {
	weather, changed := p.currentWeather()
	for weather.Hole {
		select {
		case <-c.Ended():
			return false
		case <-changed:
			weather, changed = p.currentWeather()
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
