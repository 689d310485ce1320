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
	// statementsTime bounds the wait for the results of the statements of a transaction before it is cut.
	statementsTime = 5 * time.Second
	bufferSize     = 32 << 10
)

// conn is a client's connection with the state of its session.
type conn struct {
	*tcpline.Pair

	proxy  *Proxy
	marked *Stop // of the open transaction

	mu      sync.Mutex
	session session
	moved   chan struct{} // closed at the server's next message; nil if there is no waiter
}

// carryConnection forwards both directions until one side ends or the connection is cut.
func (p *Proxy) carryConnection(pair *tcpline.Pair) {
	c := &conn{Pair: pair, proxy: p, session: newSession(p.classify)}
	from := bufio.NewReaderSize(c.Client, bufferSize)
	if alone, err := c.forwardStartup(from); err != nil || alone {
		if err == nil { // the request to cancel a query has no response
			_, _ = io.Copy(io.Discard, c.Server)
		}
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		if err := c.forwardRequests(from); err != nil {
			c.Close()
		}
	})
	both.Go(func() {
		_ = c.forwardAnswers() // either side has ended
		c.Close()
	})
	both.Wait()
	c.endOrders()
}

// forwardStartup forwards the startup message. It declines encryption, which would hide the protocol. alone reports whether
// the connection consists of that message only.
func (c *conn) forwardStartup(from *bufio.Reader) (alone bool, err error) {
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

// forwardRequests forwards the client's messages, except for the commit of a transaction that is cut.
func (c *conn) forwardRequests(from *bufio.Reader) error {
	to := bufio.NewWriterSize(c.Server, bufferSize)
	for {
		m, err := readMessage(from)
		if err != nil {
			return err
		}
		c.noteMark(m)
		operation := c.committedOperation(m)
		stop := c.takeStop(m, operation)
		if operation != "" {
			if cut, err := c.stopBefore(stop, to); cut || err != nil {
				return err
			}
			if cut, err := c.cutBefore(operation, to); cut || err != nil {
				return err
			}
		}
		if err := c.recordSent(m, operation, stop); err != nil {
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

// cutBefore cuts the connection before a commit if it is ordered to, and reports whether it did.
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
	c.proxy.countHit(&c.proxy.cut, operation, c.Pair)
	c.Reset()
	return true, nil
}

func (c *conn) committedOperation(m message) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.committedOperation(m)
}

// recordSent records a message before it is sent, with the orders that concern it if it is a commit.
func (c *conn) recordSent(m message, operation string, stop *Stop) error {
	a := awaited{kind: m.kind, operation: operation, stopping: stop}
	if operation != "" {
		a.losing, a.noting = c.proxy.chooseLoss(operation), c.proxy.chooseNote()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.recordSent(m, a)
}

// finishStatements makes the server run all statements that it was sent, and reports whether none failed. Then the transaction
// lacks only its commit.
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

// forwardAnswers forwards the server's messages, except for the answer to a commit that is lost by order.
func (c *conn) forwardAnswers() error {
	from, to := bufio.NewReaderSize(c.Server, bufferSize), bufio.NewWriterSize(c.Client, bufferSize)
	for {
		m, err := readMessage(from)
		if err != nil {
			return err
		}
		if lost := c.recordAnswer(m); lost {
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

// recordAnswer records a message of the server and notifies finishStatements. It reports whether the connection was cut instead
// of forwarding the message.
func (c *conn) recordAnswer(m message) (lost bool) {
	c.mu.Lock()
	results := c.session.recordAnswer(m)
	if c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
	c.mu.Unlock()
	for _, r := range results {
		lost = c.applyOrders(r, m) || lost
	}
	return lost
}

// applyOrders applies the orders for a message whose outcome m decides, and reports whether the connection was cut.
func (c *conn) applyOrders(r result, m message) (lost bool) {
	if r.noting != nil {
		if r.outcome == refused && errorOf(m) == r.noting.message {
			c.proxy.countHit(&c.proxy.refused, r.operation, c.Pair)
		}
		r.noting.open.Done()
	}
	lost = c.stopAfter(r)
	if r.losing == nil {
		return lost
	}
	defer r.losing.open.Done()
	if r.outcome != committed {
		c.proxy.giveBack(r.losing, r.operation)
		return false
	}
	c.proxy.countHit(&c.proxy.lost, r.operation, c.Pair)
	c.Reset()
	return true
}

// endOrders ends the orders that still wait for a connection that has ended.
func (c *conn) endOrders() {
	c.mu.Lock()
	queue := c.session.queue
	c.session.queue = nil
	c.mu.Unlock()
	for _, a := range queue {
		c.applyOrders(result{awaited: a}, message{})
	}
}
