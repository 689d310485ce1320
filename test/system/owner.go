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

// Owner returns the name of the replica that holds the other end of a connection to this process, as the kernel tells it;
// empty if no running replica does, and an error if the kernel does not tell.
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
			return "", fmt.Errorf("look through the sockets of %s: %w", r.Name, err)
		case has:
			return r.Name, nil
		}
	}
	return "", nil
}

// The layout of the kernel's socket diagnosis: inet_diag_req_v2 after the header, and inet_diag_msg in the answer.
const (
	sockDiagByFamily = 20
	headerSize       = syscall.SizeofNlMsghdr
	idSize           = 48
	requestSize      = 8 + idSize
	inodeOffset      = headerSize + 4 + idSize + 4*4
)

// errNoSocket says that the kernel has no such socket any more.
var errNoSocket = errors.New("the kernel knows no such socket")

// peerInode asks the kernel for the inode of the socket at the other end of a connection over IPv4. It asks for that one
// socket: the table in /proc takes a tenth of a second to read where there are many, and may miss some.
func peerInode(c net.Conn) (uint64, error) {
	client, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return 0, fmt.Errorf("read the client's address: %w", err)
	}
	server, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return 0, fmt.Errorf("read the server's address: %w", err)
	}
	if !client.Addr().Is4() || !server.Addr().Is4() {
		return 0, fmt.Errorf("ask for %s: it is not IPv4", client)
	}
	answer, err := askKernel(diagnose(client, server))
	if err != nil {
		return 0, fmt.Errorf("ask the kernel for %s: %w", client, err)
	}
	inode, err := readInode(answer)
	if err != nil {
		return 0, fmt.Errorf("ask the kernel for %s: %w", client, err)
	}
	return inode, nil
}

// readInode returns the inode in an answer of the kernel; errNoSocket if it knows no such socket.
func readInode(answer []byte) (uint64, error) {
	if len(answer) < headerSize+4 {
		return 0, fmt.Errorf("read an answer of %d bytes: %w", len(answer), io.ErrUnexpectedEOF)
	}
	switch kind := binary.NativeEndian.Uint16(answer[4:]); {
	case kind == syscall.NLMSG_ERROR:
		errno := syscall.Errno(-int32(binary.NativeEndian.Uint32(answer[headerSize:]))) // it is negative
		if errno == syscall.ENOENT {
			return 0, errNoSocket
		}
		return 0, errno
	case kind != sockDiagByFamily:
		return 0, fmt.Errorf("read an answer of type %d", kind)
	case len(answer) < inodeOffset+4:
		return 0, fmt.Errorf("read an answer of %d bytes: %w", len(answer), io.ErrUnexpectedEOF)
	}
	return uint64(binary.NativeEndian.Uint32(answer[inodeOffset:])), nil
}

// diagnose is the question for the socket of TCP that is bound to local and connected to remote.
func diagnose(local, remote netip.AddrPort) []byte {
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
	defer func() { _ = syscall.Close(socket) }() // it was only asked
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

// hasSocket reports whether a process holds a socket open. One that has ended holds none.
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

// unlessGone returns an error other than that the process, or its file, is gone.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
