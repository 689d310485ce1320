package pgproxy

import (
	"bufio"
	"bytes"
	"sync"
)

// Stop is an order to hold one commit and end its connection: before the commit reaches the server, or after the server has confirmed it
// and before the client learns that.
type Stop struct {
	// Operation is that of the transaction, and Mark is a part of one of its statements or arguments.
	Operation string
	Mark      []byte
	// After reports whether the server commits.
	After bool
	// Do is called while the commit, or its confirmation, is held, with the client's name.
	Do func(client string)

	once sync.Once
}

// StopCommit orders a stop, in place of the one before; nil withdraws it. It happens once.
func (p *Proxy) StopCommit(s *Stop) { p.stop.Store(s) }

// run calls Do for the first transaction that it fits, and reports whether this is it.
func (s *Stop) run(client string) (first bool) {
	s.once.Do(func() {
		first = true
		s.Do(client)
	})
	return first
}

// noteMark notes whether a message belongs to a transaction that is to be stopped. Its connection sends one after the other.
func (c *conn) noteMark(m message) {
	if s := c.proxy.stop.Load(); s != nil && c.marked == nil && bytes.Contains(m.raw, s.Mark) {
		c.marked = s
	}
}

// takeStop returns the order for a commit of an operation; nil if there is none. The next transaction begins without a mark.
func (c *conn) takeStop(m message, operation string) *Stop {
	s := c.marked
	if operation == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		if m.kind == typeSync && !c.session.explicit { // a transaction that only reads
			c.marked = nil
		}
		return nil
	}
	c.marked = nil
	if s == nil || s.Operation != operation {
		return nil
	}
	return s
}

// stopBefore holds a commit back for good if the order says so, and reports whether it did.
func (c *conn) stopBefore(s *Stop, to *bufio.Writer) (bool, error) {
	if s == nil || s.After {
		return false, nil
	}
	if done, err := c.finishStatements(to); !done || err != nil {
		return false, err
	}
	if !s.run(c.proxy.identify(c.Client.RemoteAddr().String())) {
		return false, nil
	}
	c.Reset()
	return true, nil
}

// stopAfter holds the confirmation of a commit back for good if the order says so, and reports whether it did.
func (c *conn) stopAfter(r result) bool {
	if r.stopping == nil || r.outcome != committed || !r.stopping.run(c.proxy.identify(c.Client.RemoteAddr().String())) {
		return false
	}
	c.Reset()
	return true
}
