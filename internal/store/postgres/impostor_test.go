package postgres

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/pgserver"
)

// ownHost returns an address of this machine that is not loopback.
func ownHost() string {
	GinkgoHelper()
	host, err := pgserver.OwnAddress()
	Expect(err).NotTo(HaveOccurred())
	if host == "" {
		Skip("this machine has no IPv4 address but loopback")
	}
	return host
}

// demand is how an impostor asks for the password.
type demand struct {
	message pgproto3.BackendMessage
	answer  uint32 // the kind of answer that is expected
}

var (
	demandClear   = demand{&pgproto3.AuthenticationCleartextPassword{}, pgproto3.AuthTypeCleartextPassword}
	demandMD5     = demand{&pgproto3.AuthenticationMD5Password{Salt: [4]byte{1, 2, 3, 4}}, pgproto3.AuthTypeMD5Password}
	demandNothing = demand{&pgproto3.AuthenticationOk{}, pgproto3.AuthTypeOk}
)

// impostor answers in the place of a database, and keeps what it is given after it has named its demand.
type impostor struct {
	host, port string

	listener    net.Listener
	certificate *tls.Certificate // nil to refuse TLS
	demand      demand

	mu     sync.Mutex
	calls  int
	gained []string
}

// newImpostor listens until the spec ends.
func newImpostor(demand demand, certificate *tls.Certificate) *impostor {
	GinkgoHelper()
	host := ownHost()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	Expect(err).NotTo(HaveOccurred())
	_, port, err := net.SplitHostPort(listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	i := &impostor{host: host, port: port, listener: listener, certificate: certificate, demand: demand}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				i.serve(conn)
			})
		}
	})
	DeferCleanup(func() {
		Expect(listener.Close()).To(Succeed())
		serving.Wait()
	})
	return i
}

// uri returns the address of the impostor as that of a database, with more hosts before it.
func (i *impostor) uri(before, parameters string) string {
	return fmt.Sprintf("postgresql://app:canary@%s%s:%s/shop%s", before, i.host, i.port, parameters)
}

func (i *impostor) serve(conn net.Conn) {
	i.note(func() { i.calls++ })
	backend := pgproto3.NewBackend(conn, conn)
	for {
		message, err := backend.ReceiveStartupMessage()
		if err != nil {
			return
		}
		if _, wantsTLS := message.(*pgproto3.SSLRequest); !wantsTLS {
			break
		}
		if i.certificate == nil {
			_, _ = conn.Write([]byte("N"))
			continue
		}
		_, _ = conn.Write([]byte("S"))
		conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*i.certificate}, MinVersion: tls.VersionTLS12})
		backend = pgproto3.NewBackend(conn, conn)
	}
	backend.Send(i.demand.message)
	if i.demand.answer == pgproto3.AuthTypeOk {
		backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	}
	if backend.Flush() != nil || backend.SetAuthType(i.demand.answer) != nil {
		return
	}
	answer, err := backend.Receive()
	if err == nil {
		i.note(func() { i.gained = append(i.gained, fmt.Sprintf("%+v", answer)) })
	}
}

func (i *impostor) note(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// seen returns how often it was called, and what it was given.
func (i *impostor) seen() (calls int, gained string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls, strings.Join(i.gained, "\n")
}

// strangeCertificate is one that a server may show by which it is nobody.
func strangeCertificate() *tls.Certificate {
	GinkgoHelper()
	authority, err := pgserver.NewAuthority("strange")
	Expect(err).NotTo(HaveOccurred())
	certificate, err := authority.Certify("strange.example")
	Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(certificate.Chain, certificate.Key)
	Expect(err).NotTo(HaveOccurred())
	return &pair
}
