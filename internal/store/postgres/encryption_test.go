package postgres

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/pgserver"
)

// minImpostorCalls is the number of connections to an impostor after which it is assumed to learn nothing.
const minImpostorCalls = 3

var _ = Describe("An impostor in the place of the database", func() {
	const (
		noTLS          = "the database does not offer TLS; a connection without it takes sslmode=disable in the connection URI"
		authentication = "the database does not authenticate as require_auth"
	)

	DescribeTable("learns nothing", func(ctx SpecContext, d authDemand, withTLS bool, before, parameters, message string) {
		var certificate *tls.Certificate
		if withTLS {
			certificate = untrustedCertificate()
		}
		i := newImpostor(d, certificate)
		s := startStore(ctx, project, i.databaseURI(before, parameters))
		Eventually(func() int {
			calls, _ := i.seenAnswers()
			return calls
		}).WithContext(ctx).WithTimeout(time.Minute).Should(BeNumerically(">=", minImpostorCalls))
		_, gained := i.seenAnswers()
		Expect(gained).To(BeEmpty())
		Expect(s.Problem()).To(MatchError(ContainSubstring(message)))
	},
		Entry("that refuses TLS", demandClear, false, "", "", noTLS),
		Entry("that refuses TLS, as the second host", demandClear, false, "127.0.0.1:1,", "", "the database refuses connections"),
		Entry("that refuses TLS, with an empty sslmode", demandClear, false, "", "?sslmode=", noTLS),
		Entry("that may refuse TLS, and asks for the password", demandClear, false, "", "?sslmode=prefer", authentication),
		Entry("that need not encrypt, and asks for the password", demandClear, false, "", "?sslmode=disable", authentication),
		Entry("that need not encrypt, and asks for a hash of the password", demandMD5, false, "", "?sslmode=allow", authentication),
		Entry("that encrypts, and asks for the password", demandClear, true, "", "", authentication),
		Entry("that encrypts, and asks for a hash of the password", demandMD5, true, "", "?sslmode=require", authentication),
		Entry("that encrypts, and accepts any client without a password", demandNothing, true, "", "", authentication),
	)

	It("learns nothing if the environment disables TLS", func(ctx SpecContext) {
		GinkgoT().Setenv("PGSSLMODE", "disable")
		GinkgoT().Setenv("PGREQUIREAUTH", "password")
		i := newImpostor(demandClear, nil)
		Expect(waitForRefusal(ctx, i.databaseURI("", "")).Message).To(Equal(noTLS))
		_, gained := i.seenAnswers()
		Expect(gained).To(BeEmpty())
	})

	It("learns the password if the URI allows it", func(ctx SpecContext) {
		i := newImpostor(demandClear, nil)
		startStore(ctx, project, i.databaseURI("", "?sslmode=disable&require_auth=password"))
		Eventually(func() string {
			_, gained := i.seenAnswers()
			return gained
		}).WithContext(ctx).WithTimeout(time.Minute).Should(ContainSubstring("canary"))
	})
})

// The roles of the server are named after their authentication method.
var _ = Describe("A database that is not on loopback", Ordered, func() {
	var (
		host   string
		remote *pgserver.Server
	)

	BeforeAll(func(ctx SpecContext) {
		host = ownHost()
		authority, err := pgserver.NewAuthority("unknown")
		Expect(err).NotTo(HaveOccurred())
		certificate, err := authority.Certify("unknown.example")
		Expect(err).NotTo(HaveOccurred())
		o := pgserver.Options{
			Output: GinkgoWriter, Certificate: certificate,
			Settings: map[string]string{"listen_addresses": "'127.0.0.1," + host + "'"},
		}
		for role, method := range map[string]string{"scram": "scram-sha-256", "md5": "md5", "clear": "password", "trust": "trust"} {
			o.Access = append(o.Access, fmt.Sprintf("host all %s %s/32 %s", role, host, method))
		}
		remote, err = pgserver.Start(ctx, o)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(remote.Stop)
		for _, statement := range []string{
			"CREATE ROLE scram LOGIN PASSWORD 'right'", "CREATE DATABASE shop OWNER scram",
			"SET password_encryption = 'md5'; CREATE ROLE md5 LOGIN PASSWORD 'right' IN ROLE scram",
			"CREATE ROLE clear LOGIN PASSWORD 'right' IN ROLE scram", "CREATE ROLE trust LOGIN IN ROLE scram",
		} {
			Expect(remote.Exec(ctx, "postgres", statement)).To(Succeed())
		}
	})

	at := func(role, parameters string) string {
		return fmt.Sprintf("postgresql://%s:right@%s/shop%s", role, net.JoinHostPort(host, strconv.Itoa(remote.Port)), parameters)
	}

	DescribeTable("connects", func(ctx SpecContext, role, parameters string, encrypted bool) {
		s := openStore(ctx, project, at(role, parameters))
		var ssl bool
		Expect(s.pool.Load().QueryRow(ctx, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(&ssl)).To(Succeed())
		Expect(ssl).To(Equal(encrypted))
		Expect(s.Unencrypted()).To(Equal(!encrypted))
	},
		Entry("encrypted, by default", "scram", "", true),
		Entry("encrypted, with sslmode=prefer", "scram", "?sslmode=prefer", true),
		Entry("unencrypted, if the URI allows it", "scram", "?sslmode=disable", false),
		Entry("by a hash, if the URI allows it", "md5", "?require_auth=md5", true),
		Entry("by the password itself, if the URI allows it", "clear", "?require_auth=password", true),
		Entry("without a password, if the URI allows it", "trust", "?require_auth=none", true),
	)

	DescribeTable("is refused", func(ctx SpecContext, role string) {
		Expect(waitForRefusal(ctx, at(role, ""))).To(Equal(errAuthentication))
	},
		Entry("if it asks for a hash", "md5"),
		Entry("if it asks for the password itself", "clear"),
		Entry("if it asks for no password", "trust"),
	)

	It("is not unencrypted on loopback", func(ctx SpecContext) {
		s := openStore(ctx, project, remote.URI("postgres"))
		Expect(s.Unencrypted()).To(BeFalse())
	})

	It("rejects a relay that decrypts", func(ctx SpecContext) {
		address := startRelay(ctx, host, net.JoinHostPort(host, strconv.Itoa(remote.Port)))
		problem := waitForRefusal(ctx, "postgresql://scram:right@"+address+"/shop")
		Expect(problem.Rejected).To(BeTrue())
		Expect(problem.Message).To(ContainSubstring("channel binding"))
	})
})

// startRelay starts a relay that decrypts connections with its own certificate and forwards them to a server, until the spec
// ends. It returns its address.
func startRelay(ctx context.Context, host, server string) (address string) {
	GinkgoHelper()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	Expect(err).NotTo(HaveOccurred())
	certificate := untrustedCertificate()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { relayConnection(ctx, client, server, certificate) })
		}
	})
	DeferCleanup(func() {
		Expect(listener.Close()).To(Succeed())
		serving.Wait()
	})
	return listener.Addr().String()
}

func relayConnection(ctx context.Context, client net.Conn, server string, certificate *tls.Certificate) {
	defer func() { _ = client.Close() }()
	upstream, err := new(net.Dialer).DialContext(ctx, "tcp", server)
	if err != nil {
		return
	}
	defer func() { _ = upstream.Close() }()
	wish, answer := make([]byte, 8), make([]byte, 1) // the TLS request is forwarded unchanged
	if _, err := io.ReadFull(client, wish); err != nil {
		return
	}
	_, _ = upstream.Write(wish)
	if _, err := io.ReadFull(upstream, answer); err != nil {
		return
	}
	_, _ = client.Write(answer)
	in := tls.Server(client, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12})
	out := tls.Client(upstream, &tls.Config{InsecureSkipVerify: true})
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(out, in); _ = upstream.Close() })
	both.Go(func() { _, _ = io.Copy(in, out); _ = client.Close() })
	both.Wait()
}
