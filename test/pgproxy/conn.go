package pgproxy

import (
	"bufio"
	"io"
	"net"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/test/tcpline"
)

const (
	// statementsTime bounds the wait for the results of the statements of a transaction that is to be cut.
	statementsTime = 5 * time.Second
	bufferSize     = 32 << 10
)

// conn is a connection of a client, and what is known of its session.
type conn struct {
	*tcpline.Pair

	proxy *Proxy

	mu      sync.Mutex
	session session
	moved   chan struct{} // closed at the server's next answer; nil if nobody waits
	doomed  string        // the operation whose answer is to be lost; empty if none is
}

// carry passes on what both sides send, until one ends or the commit is cut.
func (p *Proxy) carry(pair *tcpline.Pair) {
	c := &conn{Pair: pair, proxy: p, session: newSession(p.classify)}
	from := bufio.NewReaderSize(c.Client, bufferSize)
	if alone, err := c.start(from); err != nil || alone {
		if err == nil { // the request to cancel a query: it has no answer
			_, _ = io.Copy(io.Discard, c.Server)
		}
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		if err := c.forward(from); err != nil {
			c.Close()
		}
	})
	both.Go(func() {
		_ = c.answer() // either side has ended
		c.Close()
	})
	both.Wait()
}

// start passes the startup message on. It declines encryption, which would hide the protocol. alone reports that the
// message is all that the connection is for.
func (c *conn) start(from *bufio.Reader) (alone bool, err error) {
	for {
		raw, code, err := readStartup(from)
		if err != nil {
			return false, err
		}
		if code == codeTLS || code == codeGSS {
			if _, err := c.Client.Write([]byte{'N'}); err != nil {
				return false, err
			}
			continue
		}
		_, err = c.Server.Write(raw)
		return code == codeCancel, err
	}
}

// forward passes on what the client sends, but for the commit of a transaction that is to be cut.
func (c *conn) forward(from *bufio.Reader) error {
	to := bufio.NewWriterSize(c.Server, bufferSize)
	for {
		m, err := readMessage(from)
		if err != nil {
			return err
		}
		if ended, err := c.breakCommit(m, to); ended || err != nil {
			return err
		}
		if err := c.note(m); err != nil {
			return err
		}
		if _, err := to.Write(m.raw); err != nil {
			return err
		}
		if from.Buffered() == 0 {
			if err := to.Flush(); err != nil {
				return err
			}
		}
	}
}

// breakCommit ends the connection if the message is a commit that is to be cut, and dooms its answer if that is to be lost.
func (c *conn) breakCommit(m message, to *bufio.Writer) (ended bool, err error) {
	operation := c.committing(m)
	switch {
	case operation == "":
	case c.proxy.choose(operation):
		if ended, err = c.finishStatements(to); ended {
			c.proxy.count(&c.proxy.cut, operation, c.Pair)
			c.Reset()
		}
	case c.proxy.dooms(operation):
		c.mu.Lock()
		defer c.mu.Unlock()
		c.doomed = operation
	}
	return ended, err
}

func (c *conn) committing(m message) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.committing(m)
}

func (c *conn) note(m message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.sent(m)
}

// finishStatements has the server run all that it was sent, and reports whether it did so without an error. Then a commit is
// all that the transaction lacks.
func (c *conn) finishStatements(to *bufio.Writer) (bool, error) {
	if _, err := to.Write(flush); err != nil {
		return false, err
	}
	if err := to.Flush(); err != nil {
		return false, err
	}
	timer := time.NewTimer(statementsTime)
	defer timer.Stop()
	for {
		c.mu.Lock()
		running, failed := c.session.running, c.session.failed
		if c.moved == nil {
			c.moved = make(chan struct{})
		}
		moved := c.moved
		c.mu.Unlock()
		if running == 0 || failed {
			return !failed, nil
		}
		select {
		case <-moved:
		case <-timer.C:
			return false, nil
		case <-c.Ended():
			return false, net.ErrClosed
		}
	}
}

// answer passes on what the server sends.
func (c *conn) answer() error {
	from, to := bufio.NewReaderSize(c.Server, bufferSize), bufio.NewWriterSize(c.Client, bufferSize)
	for {
		m, err := readMessage(from)
		if err != nil {
			return err
		}
		if lost := c.receive(m); lost {
			c.Reset()
			return nil
		}
		if _, err := to.Write(m.raw); err != nil {
			return err
		}
		if from.Buffered() == 0 {
			if err := to.Flush(); err != nil {
				return err
			}
		}
	}
}

// receive notes an answer of the server, and wakes who waits for it. It reports whether the answer is to be lost.
func (c *conn) receive(m message) (lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	refused, committed := c.session.received(m)
	if refused != "" {
		c.proxy.count(&c.proxy.refused, refused, c.Pair)
	}
	if c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
	switch {
	case c.doomed == "":
	case m.kind == typeErrorResponse:
		c.proxy.spare(c.doomed)
		c.doomed = ""
	case committed:
		c.proxy.count(&c.proxy.lost, c.doomed, c.Pair)
		return true
	}
	return false
}
