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
		Skip("this machine has no IPv4 address other than loopback")
	}
	return host
}

// authDemand is the way in which an impostor asks for the password.
type authDemand struct {
	message pgproto3.BackendMessage
	answer  uint32 // the type of the expected answer
}

var (
	demandClear   = authDemand{&pgproto3.AuthenticationCleartextPassword{}, pgproto3.AuthTypeCleartextPassword}
	demandMD5     = authDemand{&pgproto3.AuthenticationMD5Password{Salt: [4]byte{1, 2, 3, 4}}, pgproto3.AuthTypeMD5Password}
	demandNothing = authDemand{&pgproto3.AuthenticationOk{}, pgproto3.AuthTypeOk}
)

// impostor answers in place of a database, and records the clients' answers to its demand.
type impostor struct {
	host, port string

	listener    net.Listener
	certificate *tls.Certificate // nil to refuse TLS
	demand      authDemand

	mu      sync.Mutex
	calls   int
	answers []string
}

// newImpostor listens until the spec ends.
func newImpostor(demand authDemand, certificate *tls.Certificate) *impostor {
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
				i.serveConn(conn)
			})
		}
	})
	DeferCleanup(func() {
		Expect(listener.Close()).To(Succeed())
		serving.Wait()
	})
	return i
}

// databaseURI returns a URI of the impostor as a database, with other hosts before it.
func (i *impostor) databaseURI(before, parameters string) string {
	return fmt.Sprintf("postgresql://app:canary@%s%s:%s/shop%s", before, i.host, i.port, parameters)
}

func (i *impostor) serveConn(conn net.Conn) {
	i.withLock(func() { i.calls++ })
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
		i.withLock(func() { i.answers = append(i.answers, fmt.Sprintf("%+v", answer)) })
	}
}

func (i *impostor) withLock(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// seenAnswers returns the number of connections, and the recorded answers.
func (i *impostor) seenAnswers() (calls int, gained string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls, strings.Join(i.answers, "\n")
}

// untrustedCertificate returns a certificate of an authority that no client trusts.
func untrustedCertificate() *tls.Certificate {
	GinkgoHelper()
	authority, err := pgserver.NewAuthority("strange")
	Expect(err).NotTo(HaveOccurred())
	certificate, err := authority.Certify("strange.example")
	Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(certificate.Chain, certificate.Key)
	Expect(err).NotTo(HaveOccurred())
	return &pair
}
