package system

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
)

// Owner returns the name of the replica that holds the other end of a connection to this process, according to the kernel;
// empty if no running replica does. It returns an error if the kernel cannot be queried.
func (p *Project) Owner(c net.Conn) (string, error) {
	inode, err := peerInode(c)
	switch {
	case errors.Is(err, errNoSocket):
		return "", nil
	case err != nil:
		return "", err
	}
	for _, r := range p.Replicas() {
		switch has, err := hasSocket(r.PID, inode); {
		case err != nil:
			return "", fmt.Errorf("search sockets of %s: %w", r.Name, err)
		case has:
			return r.Name, nil
		}
	}
	return "", nil
}

// The layout of the kernel's socket diagnosis: inet_diag_req_v2 after the header, and inet_diag_msg in the response.
const (
	sockDiagByFamily = 20
	headerSize       = syscall.SizeofNlMsghdr
	idSize           = 48
	requestSize      = 8 + idSize
	inodeOffset      = headerSize + 4 + idSize + 4*4
)

// errNoSocket is returned if the kernel no longer has the socket.
var errNoSocket = errors.New("no such socket")

// peerInode returns the inode of the socket at the other end of an IPv4 connection. It queries the kernel for that one
// socket, because the table in /proc takes a tenth of a second to read if there are many sockets, and may miss some.
func peerInode(c net.Conn) (uint64, error) {
	client, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return 0, fmt.Errorf("parse client address: %w", err)
	}
	server, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return 0, fmt.Errorf("parse server address: %w", err)
	}
	if !client.Addr().Is4() || !server.Addr().Is4() {
		return 0, fmt.Errorf("find socket of %s: not IPv4", client)
	}
	answer, err := askKernel(socketQuery(client, server))
	if err != nil {
		return 0, fmt.Errorf("find socket of %s: %w", client, err)
	}
	inode, err := readInode(answer)
	if err != nil {
		return 0, fmt.Errorf("find socket of %s: %w", client, err)
	}
	return inode, nil
}

// readInode returns the inode in a response of the kernel; errNoSocket if there is no such socket.
func readInode(answer []byte) (uint64, error) {
	if len(answer) < headerSize+4 {
		return 0, fmt.Errorf("parse response of %d bytes: %w", len(answer), io.ErrUnexpectedEOF)
	}
	switch kind := binary.NativeEndian.Uint16(answer[4:]); {
	case kind == syscall.NLMSG_ERROR:
		errno := syscall.Errno(-int32(binary.NativeEndian.Uint32(answer[headerSize:]))) // it is negative
		if errno == syscall.ENOENT {
			return 0, errNoSocket
		}
		return 0, errno
	case kind != sockDiagByFamily:
		return 0, fmt.Errorf("parse response: unexpected type %d", kind)
	case len(answer) < inodeOffset+4:
		return 0, fmt.Errorf("parse response of %d bytes: %w", len(answer), io.ErrUnexpectedEOF)
	}
	return uint64(binary.NativeEndian.Uint32(answer[inodeOffset:])), nil
}

// socketQuery returns the query for the TCP socket that is bound to local and connected to remote.
func socketQuery(local, remote netip.AddrPort) []byte {
	const anyState, noCookie = ^uint32(0), ^uint64(0)
	m := make([]byte, headerSize+requestSize)
	binary.NativeEndian.PutUint32(m, headerSize+requestSize)
	binary.NativeEndian.PutUint16(m[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(m[6:], syscall.NLM_F_REQUEST)
	request := m[headerSize:]
	request[0], request[1] = syscall.AF_INET, syscall.IPPROTO_TCP
	binary.NativeEndian.PutUint32(request[4:], anyState)
	id := request[8:]
	binary.BigEndian.PutUint16(id, local.Port())
	binary.BigEndian.PutUint16(id[2:], remote.Port())
	copy(id[4:], local.Addr().AsSlice())
	copy(id[20:], remote.Addr().AsSlice())
	binary.NativeEndian.PutUint64(id[40:], noCookie)
	return m
}

func askKernel(question []byte) ([]byte, error) {
	socket, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, syscall.NETLINK_INET_DIAG)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(socket) }() // nothing is lost if it fails
	if err := syscall.Sendto(socket, question, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return nil, err
	}
	answer := make([]byte, os.Getpagesize())
	n, _, err := syscall.Recvfrom(socket, answer, 0)
	if err != nil {
		return nil, err
	}
	return answer[:n], nil
}

// hasSocket reports whether a process holds a socket open. A process that has exited holds none.
func hasSocket(pid int, inode uint64) (bool, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		return false, unlessGone(err)
	}
	want := fmt.Sprintf("socket:[%d]", inode)
	for _, f := range files {
		to, err := os.Readlink(filepath.Join(dir, f.Name()))
		if err := unlessGone(err); err != nil {
			return false, err
		}
		if to == want {
			return true, nil
		}
	}
	return false, nil
}

// unlessGone returns err, or nil if it means that the process or its file is gone.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
