package boundedhttp

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	. "github.com/onsi/gomega"
)

// TestSocketCost measures the kernel memory of a connection whose client pipelines requests and reads no answers.
func TestSocketCost(t *testing.T) {
	get := "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, test := range map[string]struct {
		answer int // bytes
		window int // the client's receive buffer; zero for the kernel's default
		chunk  int // bytes of a write
	}{
		"small answers, small window": {100, 2 << 10, 64 << 10},
		"small answers, large window": {100, 0, 64 << 10},
		"large answers, small window": {1 << 20, 2 << 10, 64 << 10},
		"large answers, large window": {1 << 20, 0, 64 << 10},
		"huge window":                 {1 << 20, 4 << 20, 64 << 10},
		"small segments":              {100, 0, 10},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			body := make([]byte, test.answer)
			l := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }), nil)
			c := dialServer(t, l, nil).(*net.TCPConn)
			if test.window > 0 {
				g.Expect(c.SetReadBuffer(test.window)).To(Succeed())
			}
			g.Expect(c.SetNoDelay(true)).To(Succeed())
			go func() {
				// The write fails when the connection is closed, because the kernel does not buffer all of this.
				for sent := []byte(strings.Repeat(get, 300_000)); len(sent) > 0; {
					n, err := c.Write(sent[:min(len(sent), test.chunk)])
					if err != nil {
						return
					}
					sent = sent[n:]
				}
			}()
			var most int64
			g.Consistently(func() int64 {
				for _, at := range l.pool.waitingConns() {
					most = max(most, socketBytes(t, at.raw))
				}
				return most
			}).WithTimeout(time.Second).WithPolling(2 * time.Millisecond).Should(BeNumerically("<=", socketCost))
			t.Logf("%d bytes", most)
			g.Expect(most).To(BeNumerically(">", sendBufferBytes), "the client reads nothing")
		})
	}
}

// socketBytes returns the memory that the kernel has charged for a socket's queues.
func socketBytes(t *testing.T, c net.Conn) int64 {
	t.Helper()
	const (
		soMeminfo                               = 55
		readQueue, reserve, writeQueue, backlog = 0, 4, 5, 7
	)
	raw, err := c.(syscall.Conn).SyscallConn()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var info [9]uint32
	size := uint32(unsafe.Sizeof(info))
	_ = raw.Control(func(fd uintptr) { // a socket closed meanwhile uses no memory
		_, _, _ = syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.SOL_SOCKET, soMeminfo,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	})
	return int64(info[readQueue]) + int64(info[reserve]) + int64(info[writeQueue]) + int64(info[backlog])
}
