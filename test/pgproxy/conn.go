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
}

// carry passes on what both sides send, until one ends or the connection is cut.
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
	c.abandon()
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
		operation := c.committing(m)
		if operation != "" {
			if cut, err := c.cutBefore(operation, to); cut || err != nil {
				return err
			}
		}
		if err := c.note(m, operation); err != nil {
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

// cutBefore cuts the connection before a commit, if that is to be, and reports whether it did.
func (c *conn) cutBefore(operation string, to *bufio.Writer) (bool, error) {
	o := c.proxy.chooseCut(operation)
	if o == nil {
		return false, nil
	}
	defer o.open.Done()
	done, err := c.finishStatements(to)
	if !done || err != nil {
		return false, err
	}
	c.proxy.count(&c.proxy.cut, operation, c.Pair)
	c.Reset()
	return true, nil
}

func (c *conn) committing(m message) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.committing(m)
}

// note notes a message before it is sent, with the orders that concern it if it is a commit.
func (c *conn) note(m message, operation string) error {
	a := awaited{kind: m.kind, operation: operation}
	if operation != "" {
		a.losing, a.noting = c.proxy.chooseLoss(operation), c.proxy.chooseNote()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.sent(m, a)
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
		unanswered, failed := len(c.session.queue), c.session.failed
		if c.moved == nil {
			c.moved = make(chan struct{})
		}
		moved := c.moved
		c.mu.Unlock()
		if unanswered == 0 || failed {
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

// answer passes on what the server sends, but for the answer to a commit that is to be lost.
func (c *conn) answer() error {
	from, to := bufio.NewReaderSize(c.Server, bufferSize), bufio.NewWriterSize(c.Client, bufferSize)
	for {
		m, err := readMessage(from)
		if err != nil {
			return err
		}
		if lost := c.receive(m); lost {
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

// receive notes an answer of the server, and wakes who waits for it. It reports whether the connection was cut instead of
// passing the answer on.
func (c *conn) receive(m message) (lost bool) {
	c.mu.Lock()
	results := c.session.received(m)
	if c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
	c.mu.Unlock()
	for _, r := range results {
		lost = c.conclude(r, m) || lost
	}
	return lost
}

// conclude carries out the orders that concern a message whose outcome m decides, and reports whether the connection was cut.
func (c *conn) conclude(r result, m message) (lost bool) {
	if r.noting != nil {
		if r.outcome == refused && errorOf(m) == r.noting.message {
			c.proxy.count(&c.proxy.refused, r.operation, c.Pair)
		}
		r.noting.open.Done()
	}
	if r.losing == nil {
		return false
	}
	defer r.losing.open.Done()
	if r.outcome != committed {
		c.proxy.giveBack(r.losing, r.operation)
		return false
	}
	c.proxy.count(&c.proxy.lost, r.operation, c.Pair)
	c.Reset()
	return true
}

// abandon ends what orders still await of a connection that has ended.
func (c *conn) abandon() {
	c.mu.Lock()
	queue := c.session.queue
	c.session.queue = nil
	c.mu.Unlock()
	for _, a := range queue {
		c.conclude(result{awaited: a}, message{})
	}
}
