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

// callsToBelieve is how often an impostor is tried before it is believed to get nothing.
const callsToBelieve = 3

var _ = Describe("An impostor in the place of the database", func() {
	const (
		noTLS          = "the database does not offer TLS; a connection without it takes sslmode=disable in the connection URI"
		authentication = "the database does not authenticate as require_auth"
	)

	DescribeTable("learns nothing", func(ctx SpecContext, d demand, withTLS bool, before, parameters, message string) {
		var certificate *tls.Certificate
		if withTLS {
			certificate = strangeCertificate()
		}
		i := newImpostor(d, certificate)
		s := begun(ctx, project, i.uri(before, parameters))
		Eventually(func() int {
			calls, _ := i.seen()
			return calls
		}).WithContext(ctx).WithTimeout(time.Minute).Should(BeNumerically(">=", callsToBelieve))
		_, gained := i.seen()
		Expect(gained).To(BeEmpty())
		Expect(s.Problem()).To(MatchError(ContainSubstring(message)))
	},
		Entry("that refuses TLS", demandClear, false, "", "", noTLS),
		Entry("that refuses TLS, as the second host", demandClear, false, "127.0.0.1:1,", "", "the database refuses connections"),
		Entry("that refuses TLS, where sslmode is empty", demandClear, false, "", "?sslmode=", noTLS),
		Entry("that may refuse TLS, but wants the password", demandClear, false, "", "?sslmode=prefer", authentication),
		Entry("that need not encrypt, but wants the password", demandClear, false, "", "?sslmode=disable", authentication),
		Entry("that need not encrypt, but wants a hash of the password", demandMD5, false, "", "?sslmode=allow", authentication),
		Entry("that encrypts, and wants the password", demandClear, true, "", "", authentication),
		Entry("that encrypts, and wants a hash of the password", demandMD5, true, "", "?sslmode=require", authentication),
		Entry("that encrypts, and wants requests without a password", demandNothing, true, "", "", authentication),
	)

	It("learns nothing where the environment goes without TLS", func(ctx SpecContext) {
		GinkgoT().Setenv("PGSSLMODE", "disable")
		GinkgoT().Setenv("PGREQUIREAUTH", "password")
		i := newImpostor(demandClear, nil)
		Expect(refusedWith(ctx, i.uri("", "")).Message).To(Equal(noTLS))
		_, gained := i.seen()
		Expect(gained).To(BeEmpty())
	})

	It("learns the password where the URI says so", func(ctx SpecContext) {
		i := newImpostor(demandClear, nil)
		begun(ctx, project, i.uri("", "?sslmode=disable&require_auth=password"))
		Eventually(func() string {
			_, gained := i.seen()
			return gained
		}).WithContext(ctx).WithTimeout(time.Minute).Should(ContainSubstring("canary"))
	})
})

// The roles of the server are named after the way in which it asks for their password.
var _ = Describe("A database beyond loopback", Ordered, func() {
	var (
		host   string
		remote *pgserver.Server
	)

	BeforeAll(func(ctx SpecContext) {
		host = ownHost()
		authority, err := pgserver.NewAuthority("nobody's")
		Expect(err).NotTo(HaveOccurred())
		certificate, err := authority.Certify("nobody.example")
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

	DescribeTable("serves", func(ctx SpecContext, role, parameters string, encrypted bool) {
		s := open(ctx, project, at(role, parameters))
		var ssl bool
		Expect(s.pool.Load().QueryRow(ctx, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(&ssl)).To(Succeed())
		Expect(ssl).To(Equal(encrypted))
		Expect(s.Unencrypted()).To(Equal(!encrypted))
	},
		Entry("encrypted, without a word about it", "scram", "", true),
		Entry("encrypted, if it is preferred", "scram", "?sslmode=prefer", true),
		Entry("unencrypted, if the URI says so", "scram", "?sslmode=disable", false),
		Entry("by a hash, if the URI says so", "md5", "?require_auth=md5", true),
		Entry("by the password itself, if the URI says so", "clear", "?require_auth=password", true),
		Entry("without a password, if the URI says so", "trust", "?require_auth=none", true),
	)

	DescribeTable("is refused", func(ctx SpecContext, role string) {
		Expect(refusedWith(ctx, at(role, ""))).To(Equal(errAuthentication))
	},
		Entry("if it wants a hash", "md5"),
		Entry("if it wants the password itself", "clear"),
		Entry("if it wants no password", "trust"),
	)

	It("is not unencrypted on loopback", func(ctx SpecContext) {
		s := open(ctx, project, remote.URI("postgres"))
		Expect(s.Unencrypted()).To(BeFalse())
	})

	It("refuses a relay that decrypts", func(ctx SpecContext) {
		address := relay(ctx, host, net.JoinHostPort(host, strconv.Itoa(remote.Port)))
		problem := refusedWith(ctx, "postgresql://scram:right@"+address+"/shop")
		Expect(problem.Rejected).To(BeTrue())
		Expect(problem.Message).To(ContainSubstring("channel binding"))
	})
})

// relay decrypts connections with a certificate of its own, and passes them on to a server, until the spec ends. It returns its
// address.
func relay(ctx context.Context, host, server string) (address string) {
	GinkgoHelper()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	Expect(err).NotTo(HaveOccurred())
	certificate := strangeCertificate()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { passOn(ctx, client, server, certificate) })
		}
	})
	DeferCleanup(func() {
		Expect(listener.Close()).To(Succeed())
		serving.Wait()
	})
	return listener.Addr().String()
}

func passOn(ctx context.Context, client net.Conn, server string, certificate *tls.Certificate) {
	defer func() { _ = client.Close() }()
	upstream, err := new(net.Dialer).DialContext(ctx, "tcp", server)
	if err != nil {
		return
	}
	defer func() { _ = upstream.Close() }()
	wish, answer := make([]byte, 8), make([]byte, 1) // the request for TLS is passed on as it is
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
