// Package ports reserves free ports on loopback for programs that cannot choose one themselves.
//
// The invariant: while a reservation is held, the kernel assigns its port to no socket that requests any free port, neither to
// a listener nor as the source of a connection, in any process. The program that receives the address can listen there, and
// again after a restart.
package ports

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
)

var loopback = [4]byte{127, 0, 0, 1}

// Reservation is a reserved port.
//
// It holds a socket that is bound and does not listen. Linux lets another socket with SO_REUSEADDR bind the same port by number,
// as the listeners of Go, PostgreSQL and PgBouncer do, but never assigns that port itself.
type Reservation struct {
	port  int
	close func() error
}

// Reserve reserves a free port. The caller must Close it after its last use.
func Reserve() (*Reservation, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve port: %w", os.NewSyscallError("socket", err))
	}
	port, err := bindSocket(fd)
	if err != nil {
		_ = syscall.Close(fd) // nothing was written to it
		return nil, fmt.Errorf("reserve port: %w", err)
	}
	return &Reservation{port: port, close: sync.OnceValue(func() error {
		return os.NewSyscallError("close", syscall.Close(fd))
	})}, nil
}

func bindSocket(fd int) (port int, err error) {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: loopback}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	address, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("the socket is bound to a %T", name)
	}
	return address.Port, nil
}

// Port returns the reserved port.
func (r *Reservation) Port() int { return r.port }

// Address returns the reserved port's address as host:port.
func (r *Reservation) Address() string {
	return net.JoinHostPort(net.IP(loopback[:]).String(), strconv.Itoa(r.port))
}

// Close ends the reservation. A second call does nothing.
func (r *Reservation) Close() error { return r.close() }

// TB is the part of testing.TB that Address uses; GinkgoT() implements it, too.
type TB interface {
	Helper()
	Cleanup(f func())
	Fatalf(format string, args ...any)
}

// Address reserves a free port until the test ends and returns its address as host:port.
func Address(t TB) string {
	t.Helper()
	r, err := Reserve()
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = r.Close() }) // nothing was written to it
	return r.Address()
}
