package system

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestPeerInode(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	client, err := net.Dial("tcp", listener.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = client.Close() })
	server, err := listener.Accept()
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = server.Close() })

	inode, err := peerInode(server)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(hasSocket(os.Getpid(), inode)).To(BeTrue())
	g.Expect(hasSocket(os.Getppid(), inode)).To(BeFalse(), "only this process holds it")
	other, err := peerInode(client)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other).NotTo(Equal(inode), "each end is a socket of its own")

	_, err = peerInode(closedConn{server})
	g.Expect(err).To(MatchError(errNoSocket))
	g.Expect((&Project{}).Owner(closedConn{server})).To(BeEmpty(), "the socket is gone")
	g.Expect((&Project{}).Owner(server)).To(BeEmpty(), "no replica holds it")
	_, err = (&Project{}).Owner(ipv6Conn{server})
	g.Expect(err).To(MatchError(ContainSubstring("not IPv4")), "a failed query is not an unowned socket")
}

func TestReadInode(t *testing.T) {
	answer := func(kind uint16, size int, first int32) []byte {
		m := make([]byte, headerSize+size)
		binary.NativeEndian.PutUint16(m[4:], kind)
		binary.NativeEndian.PutUint32(m[headerSize:], uint32(first))
		return m
	}
	for name, c := range map[string]struct {
		answer []byte
		err    error
	}{
		"no such socket":  {answer(syscall.NLMSG_ERROR, 20, -int32(syscall.ENOENT)), errNoSocket},
		"not allowed":     {answer(syscall.NLMSG_ERROR, 20, -int32(syscall.EPERM)), syscall.EPERM},
		"nothing":         {nil, io.ErrUnexpectedEOF},
		"half a response": {answer(sockDiagByFamily, 8, 0), io.ErrUnexpectedEOF},
		"another type":    {answer(sockDiagByFamily+1, requestSize, 0), nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := readInode(c.answer)
			g.Expect(err).To(HaveOccurred())
			if c.err != nil {
				g.Expect(err).To(MatchError(c.err))
			}
			g.Expect(errors.Is(err, errNoSocket)).To(Equal(errors.Is(c.err, errNoSocket)))
		})
	}
}

func TestHasSocket_ofAProcessThatEnded(t *testing.T) {
	g := NewWithT(t)
	ended := exec.Command("true")
	g.Expect(ended.Start()).To(Succeed())
	g.Eventually(func() ([]byte, error) { return os.ReadFile(fmt.Sprintf("/proc/%d/stat", ended.Process.Pid)) }).
		WithTimeout(patience).Should(ContainSubstring(") Z "))
	g.Expect(hasSocket(ended.Process.Pid, 1)).To(BeFalse(), "a zombie: its parent has not waited for it yet")
	g.Expect(ended.Wait()).To(Succeed())
	g.Expect(hasSocket(ended.Process.Pid, 1)).To(BeFalse(), "it is gone")
}

const patience = time.Minute

// ipv6Conn is a connection for which the kernel cannot be queried.
type ipv6Conn struct{ net.Conn }

func (ipv6Conn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv6loopback, Port: 1} }

// closedConn is a connection whose client is gone.
type closedConn struct{ net.Conn }

func (closedConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
