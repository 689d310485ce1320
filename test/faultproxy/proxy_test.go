package faultproxy_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/faultproxy"
)

const patience = 30 * time.Second

// fixture is a proxy of a server that echoes and counts the lines that it receives.
type fixture struct {
	Gomega

	proxy *faultproxy.Proxy
	lines atomic.Int64
	seen  atomic.Value // the address that the last line came from
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{Gomega: NewWithT(t)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	go func() { // ends with the listener
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the connection
				defer func() { _ = c.Close() }()
				for lines := bufio.NewReader(c); ; {
					line, err := lines.ReadBytes('\n')
					if err != nil {
						return
					}
					w.lines.Add(1)
					w.seen.Store(c.RemoteAddr().String())
					if _, err := c.Write(line); err != nil {
						return
					}
				}
			}()
		}
	}()
	w.proxy, err = faultproxy.Listen(t.Context(), listener.Addr().String(),
		func(client net.Conn) string { return "owner of " + client.RemoteAddr().String() })
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(w.proxy.Close()).To(Succeed()) })
	return w
}

func (w *fixture) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", w.proxy.Address)
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = c.Close() })
	w.Expect(c.SetDeadline(time.Now().Add(patience))).To(Succeed())
	return c
}

// askLine sends a line and returns what comes back.
func askLine(c net.Conn, line string) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	answer := make([]byte, len(line)+1)
	_, err := io.ReadFull(c, answer)
	return string(bytes.TrimSpace(answer)), err
}

func TestProxy_carries(t *testing.T) {
	w := newFixture(t)
	c := w.dial(t)
	for range 3 {
		w.Expect(askLine(c, "hello")).To(Equal("hello"))
	}
	w.Expect(w.proxy.Caller(w.seen.Load().(string))).To(Equal("owner of " + c.LocalAddr().String()))
	w.Expect(w.proxy.Caller("127.0.0.1:1")).To(BeEmpty())
}

func TestProxy_cutsTheAnswerToWhatArrived(t *testing.T) {
	w := newFixture(t)
	c := w.dial(t)
	w.Expect(askLine(c, "begin")).To(Equal("begin"))
	w.proxy.CutAnswers(1)
	_, err := askLine(c, "commit")
	w.Expect(errors.Is(err, syscall.ECONNRESET)).To(BeTrue(), "%v", err)
	w.Expect(w.lines.Load()).To(BeEquivalentTo(2), "the server got it")
	w.Expect(w.proxy.Cuts()).To(HaveExactElements("owner of " + c.LocalAddr().String()))
	w.Expect(askLine(w.dial(t), "commit")).To(Equal("commit"), "only as often as ordered")
}

func TestProxy_cutsNothingAnyMore(t *testing.T) {
	w := newFixture(t)
	w.proxy.CutAnswers(1)
	c := w.dial(t)
	_, err := io.WriteString(c, "half ") // it has no answer yet
	w.Expect(err).NotTo(HaveOccurred())
	w.Eventually(w.proxy.Left).WithTimeout(patience).Should(BeZero())
	w.proxy.CutAnswers(0)
	w.Expect(askLine(c, "line")).To(Equal("half"))
	w.Expect(w.proxy.Cuts()).To(BeEmpty())
}

func TestProxy_cutsAnotherAnswer(t *testing.T) {
	w := newFixture(t)
	w.proxy.CutAnswers(1)
	c := w.dial(t)
	_, err := io.WriteString(c, "half a line")
	w.Expect(err).NotTo(HaveOccurred())
	w.Eventually(w.proxy.Left).WithTimeout(patience).Should(BeZero())
	w.Expect(c.Close()).To(Succeed())
	w.Eventually(w.proxy.Left).WithTimeout(patience).Should(Equal(1), "there was no answer to lose")
	_, err = askLine(w.dial(t), "line")
	w.Expect(errors.Is(err, syscall.ECONNRESET)).To(BeTrue(), "%v", err)
	w.Expect(w.proxy.Cuts()).To(HaveLen(1))
}

func TestProxy_delays(t *testing.T) {
	w := newFixture(t)
	w.proxy.Set(faultproxy.Weather{Delay: 100 * time.Millisecond})
	began := time.Now()
	w.Expect(askLine(w.dial(t), "hello")).To(Equal("hello"))
	w.Expect(time.Since(began)).To(BeNumerically(">=", 200*time.Millisecond), "there and back")
}

func TestProxy_throttles(t *testing.T) {
	w := newFixture(t)
	w.proxy.Set(faultproxy.Weather{BytesPerSecond: 100})
	began := time.Now()
	w.Expect(askLine(w.dial(t), "0123456789")).To(Equal("0123456789"))
	w.Expect(time.Since(began)).To(BeNumerically(">=", 200*time.Millisecond), "11 bytes there and back")
}

func TestProxy_swallowsUntilTheWeatherChanges(t *testing.T) {
	w := newFixture(t)
	c := w.dial(t)
	w.Expect(askLine(c, "before")).To(Equal("before"))
	w.proxy.Set(faultproxy.Weather{Hole: true})
	answered := make(chan string, 1)
	go func() { // ends with the connection
		answer, _ := askLine(c, "swallowed")
		answered <- answer
	}()
	w.Consistently(answered).WithTimeout(200 * time.Millisecond).ShouldNot(Receive())
	w.proxy.Set(faultproxy.Weather{})
	w.Eventually(answered).WithTimeout(patience).Should(Receive(Equal("swallowed")))
}
