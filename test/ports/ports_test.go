package ports_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/ports"
)

func reservePort(t *testing.T) *ports.Reservation {
	t.Helper()
	g := NewWithT(t)
	r, err := ports.Reserve()
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(r.Close()).To(Succeed()) })
	return r
}

func TestReserve_letsAProgramListenAndComeBack(t *testing.T) {
	g := NewWithT(t)
	r := reservePort(t)
	_, err := net.Dial("tcp", r.Address())
	g.Expect(err).To(MatchError(syscall.ECONNREFUSED), "nothing listens yet")
	for range 2 {
		listener, err := net.Listen("tcp", r.Address())
		g.Expect(err).NotTo(HaveOccurred())
		client, err := net.Dial("tcp", r.Address())
		g.Expect(err).NotTo(HaveOccurred())
		server, err := listener.Accept()
		g.Expect(err).NotTo(HaveOccurred())
		_, err = net.Listen("tcp", r.Address())
		g.Expect(err).To(MatchError(syscall.EADDRINUSE), "a second listener")
		g.Expect(errors.Join(server.Close(), client.Close(), listener.Close())).To(Succeed())
	}
}

// The kernel may choose only from a range that consists of the reserved port.
func TestReserve_keepsThePortFromOtherSockets(t *testing.T) {
	g := NewWithT(t)
	reserved := reservePort(t).Port()
	listener, err := net.Listen("tcp", ports.Address(t))
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	target := listener.Addr().(*net.TCPAddr).Port

	loopback := [4]byte{127, 0, 0, 1}
	g.Expect(syscall.Bind(newSocket(t, reserved), &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 2}})).
		To(Succeed(), "the range contains a port")
	g.Expect(syscall.Bind(newSocket(t, reserved), &syscall.SockaddrInet4{Addr: loopback})).
		To(MatchError(syscall.EADDRINUSE))
	g.Expect(syscall.Connect(newSocket(t, reserved), &syscall.SockaddrInet4{Addr: loopback, Port: target})).
		To(MatchError(syscall.EADDRNOTAVAIL))
}

// newSocket returns a socket for which the kernel may choose one port only.
func newSocket(t *testing.T, port int) int {
	t.Helper()
	const localPortRange = 51 // IP_LOCAL_PORT_RANGE
	g := NewWithT(t)
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = syscall.Close(fd) })
	g.Expect(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)).To(Succeed())
	err = syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, localPortRange, port<<16|port)
	if errors.Is(err, syscall.ENOPROTOOPT) {
		t.Skip("needs Linux 6.3 or later to limit the ports of one socket")
	}
	g.Expect(err).NotTo(HaveOccurred())
	return fd
}

func TestAddress_isReleasedWithItsTest(t *testing.T) {
	const files = 100
	g := NewWithT(t)
	var limit syscall.Rlimit
	g.Expect(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)).To(Succeed())
	g.Expect(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: limit.Max})).To(Succeed())
	t.Cleanup(func() { g.Expect(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)).To(Succeed()) })
	for range files {
		test := &finishedTest{TB: t}
		ports.Address(test)
		test.cleanup()
	}
}

// finishedTest is a test that its caller can end.
type finishedTest struct {
	testing.TB

	cleanup func()
}

func (t *finishedTest) Cleanup(f func()) { t.cleanup = f }
