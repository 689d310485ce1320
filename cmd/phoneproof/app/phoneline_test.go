package app

import (
	"bytes"
	"io"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/tcpline"
)

// phoneLine is the network of a phone that is put away: streams that are open then carry nothing any more, and no end either.
// The connections that idle are closed, as a phone does.
type phoneLine struct {
	t *testing.T

	mu      sync.Mutex
	pairs   []*tcpline.Pair
	streams map[*tcpline.Pair]bool // whether it is lost
	opened  int
}

// openLine returns the address of a line to another address.
func (l *phoneLine) openLine(target string) string {
	l.t.Helper()
	l.streams = map[*tcpline.Pair]bool{}
	line, err := tcpline.Listen(l.t.Context(), target, l.forwardBytes, nil)
	NewWithT(l.t).Expect(err).NotTo(HaveOccurred())
	l.t.Cleanup(func() { _ = line.Close() }) // nothing was written to it itself
	return line.Address
}

// forwardBytes forwards the bytes of a connection.
func (l *phoneLine) forwardBytes(pair *tcpline.Pair) {
	l.mu.Lock()
	l.pairs = append(l.pairs, pair)
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(pair.Server, pair.Client)
		pair.Close()
	})
	both.Go(func() {
		_, _ = io.Copy(writer(func(content []byte) (int, error) {
			if l.noteAnswer(pair, content) {
				return len(content), nil
			}
			return pair.Client.Write(content)
		}), pair.Server)
		if !l.noteAnswer(pair, nil) {
			pair.Close()
		}
	})
	both.Wait()
}

// noteAnswer notes a stream that begins, and reports whether it is lost.
func (l *phoneLine) noteAnswer(pair *tcpline.Pair, content []byte) (lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Contains(content, []byte("text/event-stream")) {
		l.opened++
		l.streams[pair] = false
	}
	return l.streams[pair]
}

// countStreams returns how many streams have begun so far.
func (l *phoneLine) countStreams() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened
}

// loseStreams loses the open streams without an end, as when the phone is put away.
func (l *phoneLine) loseStreams() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pair := range l.pairs {
		if _, streams := l.streams[pair]; streams {
			l.streams[pair] = true
		} else {
			pair.Reset()
		}
	}
	l.pairs = nil
}

// writer is a function as an io.Writer.
type writer func([]byte) (int, error)

func (w writer) Write(content []byte) (int, error) { return w(content) }
