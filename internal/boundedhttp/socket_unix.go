//go:build unix

package boundedhttp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// socket is a TCP connection whose kernel memory does not exceed socketCost.
type socket struct {
	*net.TCPConn

	raw syscall.RawConn
}

// boundSocket returns a TCP connection as a socket, and any other connection unchanged.
func boundSocket(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c // it is closed
	}
	return &socket{TCPConn: tcp, raw: raw}
}

// Write writes small records. Without MSG_EOR the kernel would grow a waiting segment to 64 KiB, whatever SO_SNDBUF is set
// to.
func (s *socket) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n, err := s.writeRecord(p[written:min(len(p), written+sendBufferBytes)])
		written += n
		if err != nil {
			return written, &net.OpError{Op: "write", Net: "tcp", Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: err}
		}
	}
	return written, nil
}

func (s *socket) writeRecord(p []byte) (int, error) {
	var n int
	var sendErr error
	err := s.raw.Write(func(fd uintptr) bool {
		for {
			n, sendErr = syscall.SendmsgN(int(fd), p, nil, nil, syscall.MSG_EOR)
			if !errors.Is(sendErr, syscall.EINTR) {
				return !errors.Is(sendErr, syscall.EAGAIN)
			}
		}
	})
	switch {
	case err != nil:
		return 0, err
	case sendErr != nil:
		return 0, os.NewSyscallError("sendmsg", sendErr)
	case n == 0:
		return 0, io.ErrUnexpectedEOF
	default:
		return n, nil
	}
}

// boundBuffers limits the buffers of all connections that a listener will accept, and how many wait to be accepted. Accepted
// connections inherit the buffers, so they apply from the first byte.
func boundBuffers(l net.Listener) error {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return fmt.Errorf("access listener: %w", err)
	}
	var setErr error
	err = raw.Control(func(fd uintptr) {
		setErr = errors.Join(
			syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, receiveBufferBytes),
			syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, sendBufferBytes),
			syscall.Listen(int(fd), maxBacklog))
	})
	if err = errors.Join(err, setErr); err != nil {
		return fmt.Errorf("bound socket buffers: %w", err)
	}
	return nil
}
