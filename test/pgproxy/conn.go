package pgproxy

import (
	"bufio"
	"io"
	"net"
	"sync"
	"time"
)

const (
	dialTimeout = 5 * time.Second
	// statementsTime bounds the wait for the results of the statements of a transaction that is to be cut.
	statementsTime = 5 * time.Second
	bufferSize     = 32 << 10
)

// conn is a client's connection and the one to the server that goes with it.
type conn struct {
	proxy          *Proxy
	client, server net.Conn
	ended          chan struct{}
	end            func()

	mu      sync.Mutex
	session session
	moved   chan struct{} // closed at the server's next answer; nil if nobody waits
}

// carry passes on what both sides send, until one ends or the commit is cut.
func (p *Proxy) carry(client net.Conn) {
	server, err := net.DialTimeout("tcp", p.target, dialTimeout) //nolint:noctx // it ends with the line
	if err != nil {
		abort(client)
		return
	}
	c := &conn{proxy: p, client: client, server: server, ended: make(chan struct{}), session: newSession(p.classify)}
	c.end = sync.OnceFunc(func() { close(c.ended) })
	if !p.keep(c) {
		c.reset()
		return
	}
	defer p.drop(c)
	from := bufio.NewReaderSize(client, bufferSize)
	if alone, err := c.start(from); err != nil || alone {
		if err == nil { // the request to cancel a query: it has no answer
			_, _ = io.Copy(io.Discard, server)
		}
		c.close()
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		if err := c.forward(from); err != nil {
			c.close()
		}
	})
	both.Go(func() {
		_ = c.answer() // either side has ended
		c.close()
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
			if _, err := c.client.Write([]byte{'N'}); err != nil {
				return false, err
			}
			continue
		}
		_, err = c.server.Write(raw)
		return code == codeCancel, err
	}
}

// forward passes on what the client sends, but for the commit of a transaction that is to be cut.
func (c *conn) forward(from *bufio.Reader) error {
	to := bufio.NewWriterSize(c.server, bufferSize)
	for {
		m, err := readMessage(from)
		if err != nil {
			return err
		}
		if operation := c.committing(m); operation != "" && c.proxy.choose(operation) {
			done, err := c.finishStatements(to)
			if err != nil {
				return err
			}
			if done {
				c.proxy.count(operation)
				c.reset()
				return nil
			}
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
		case <-c.ended:
			return false, net.ErrClosed
		}
	}
}

// answer passes on what the server sends.
func (c *conn) answer() error {
	from, to := bufio.NewReaderSize(c.server, bufferSize), bufio.NewWriterSize(c.client, bufferSize)
	for {
		m, err := readMessage(from)
		if err != nil {
			return err
		}
		c.hear(m)
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

// hear notes an answer of the server, and wakes who waits for it.
func (c *conn) hear(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session.received(m)
	if c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
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
