package system

import (
	"net"
	"os"
	"testing"

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
	g.Expect(hasSocket(os.Getppid(), inode)).To(BeFalse(), "it is ours alone")
	other, err := peerInode(client)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other).NotTo(Equal(inode), "the two ends are two sockets")

	_, err = peerInode(unconnected{server})
	g.Expect(err).To(MatchError(errNoSocket))
}

// unconnected is a connection whose client has gone long ago.
type unconnected struct{ net.Conn }

func (unconnected) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
