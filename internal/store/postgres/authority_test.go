package postgres

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

const (
	unknownAuthority = "the database's certificate is signed by an unknown authority"
	anotherHost      = "the database's certificate is for another host"
)

// The certificate of the server is for localhost; 127.0.0.1 reaches it under a name that the certificate does not have.
var _ = Describe("A database with a certificate of a private authority", Ordered, func() {
	var (
		ours, other *pgserver.Authority
		private     *pgserver.Server
	)

	BeforeAll(func(ctx SpecContext) {
		var err error
		ours, err = pgserver.NewAuthority("ours")
		Expect(err).NotTo(HaveOccurred())
		other, err = pgserver.NewAuthority("other")
		Expect(err).NotTo(HaveOccurred())
		certificate, err := ours.Certify("localhost")
		Expect(err).NotTo(HaveOccurred())
		private, err = pgserver.Start(ctx, pgserver.Options{Output: GinkgoWriter, Certificate: certificate})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(private.Stop)
	})

	at := func(host, parameters string) []byte {
		return fmt.Appendf(nil, "postgresql://postgres@%s:%d/postgres%s", host, private.Port, parameters)
	}

	DescribeTable("is trusted", func(ctx SpecContext, host, parameters string, bundle func() []byte, encrypted bool) {
		address := Address{URI: redact.New(at(host, parameters)), OwnCA: true, CA: bundle()}
		s := startStoreAt(ctx, project, func() Address { return address })
		Eventually(s.Ready).WithContext(ctx).WithArguments(ctx).WithTimeout(time.Minute).Should(Succeed(), func() string { return fmt.Sprint(s.Problem()) })
		var ssl bool
		Expect(s.pool.Load().QueryRow(ctx, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(&ssl)).To(Succeed())
		Expect(ssl).To(Equal(encrypted))
	},
		Entry("with verify-full", "localhost", "?sslmode=verify-full", func() []byte { return ours.PEM }, true),
		Entry("with verify-full, by one of two authorities", "localhost", "?sslmode=verify-full",
			func() []byte { return slices.Concat(other.PEM, ours.PEM) }, true),
		Entry("with verify-ca and another name", "127.0.0.1", "?sslmode=verify-ca", func() []byte { return ours.PEM }, true),
		Entry("with require and another name", "127.0.0.1", "?sslmode=require", func() []byte { return ours.PEM }, true),
		Entry("without sslmode", "localhost", "", func() []byte { return ours.PEM }, true),
		Entry("as the second of two hosts", "127.0.0.1:1,localhost", "?sslmode=verify-full", func() []byte { return ours.PEM }, true),
		Entry("with any sslrootcert", "localhost", "?sslmode=verify-full&sslrootcert=/nowhere/ca.crt", func() []byte { return ours.PEM }, true),
		Entry("with prefer, unchecked", "127.0.0.1", "?sslmode=prefer", func() []byte { return other.PEM }, true),
		Entry("with disable, without TLS", "127.0.0.1", "?sslmode=disable", func() []byte { return other.PEM }, false),
	)

	DescribeTable("is not trusted", func(ctx SpecContext, host, parameters string, bundle func() []byte, message string) {
		address := Address{URI: redact.New(at(host, parameters)), OwnCA: true, CA: bundle()}
		s := startStoreAt(ctx, project, func() Address { return address })
		Expect(waitForProblem(ctx, s)).To(Equal(&DatabaseError{Message: message}))
		_, err := s.Read(ctx, "vr")
		Expect(err).To(MatchError(&verification.Error{Code: verification.CodeStoreUnavailable}))
	},
		Entry("with verify-full and another authority", "localhost", "?sslmode=verify-full", func() []byte { return other.PEM }, unknownAuthority),
		Entry("with verify-ca and another authority", "localhost", "?sslmode=verify-ca", func() []byte { return other.PEM }, unknownAuthority),
		Entry("with require and another authority", "localhost", "?sslmode=require", func() []byte { return other.PEM }, unknownAuthority),
		Entry("without sslmode and with another authority", "localhost", "", func() []byte { return other.PEM }, unknownAuthority),
		Entry("with verify-full under another name", "127.0.0.1", "?sslmode=verify-full", func() []byte { return ours.PEM }, anotherHost),
		Entry("without sslmode under another name", "127.0.0.1", "", func() []byte { return ours.PEM }, anotherHost),
		Entry("under another name with sslrootcert=system", "127.0.0.1", "?sslmode=require&sslrootcert=system",
			func() []byte { return ours.PEM }, anotherHost),
		Entry("without a configured authority", "localhost", "?sslmode=verify-full", func() []byte { return nil },
			"there is no certificate authority to check the database by"),
	)

	It("is not trusted by the system's authorities", func(ctx SpecContext) {
		s := startStoreAt(ctx, project, func() Address { return Address{URI: redact.New(at("localhost", "?sslmode=verify-full"))} })
		Expect(waitForProblem(ctx, s)).To(Equal(&DatabaseError{Message: unknownAuthority}))
	})

	It("is trusted once the right authority is configured, and stays in use when a wrong one or none follows", func(ctx SpecContext) {
		var bundle atomic.Pointer[[]byte]
		bundle.Store(&other.PEM)
		uri := at("localhost", "?sslmode=verify-full")
		s := startStoreAt(ctx, project, func() Address { return Address{URI: redact.New(uri), OwnCA: true, CA: *bundle.Load()} })
		Expect(waitForProblem(ctx, s).Message).To(Equal(unknownAuthority))

		bundle.Store(&ours.PEM)
		Eventually(s.Problem).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
		Expect(s.Ready(ctx)).To(Succeed())
		first := s.pool.Load()

		By("removing the authority")
		bundle.Store(new([]byte))
		Consistently(s.Problem).WithContext(ctx).WithTimeout(3 * healthInterval).WithPolling(healthInterval / 10).Should(Succeed())

		By("configuring a wrong one")
		bundle.Store(&other.PEM)
		Eventually(s.Problem).WithContext(ctx).WithTimeout(time.Minute).Should(MatchError(unknownAuthority))
		Expect(s.Ready(ctx)).To(Succeed())
		Expect(s.pool.Load()).To(BeIdenticalTo(first), "a working pool is kept")

		By("adding the right one")
		both := slices.Concat(other.PEM, ours.PEM)
		bundle.Store(&both)
		Eventually(s.Problem).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
		Expect(s.Ready(ctx)).To(Succeed())
		Expect(s.pool.Load()).NotTo(BeIdenticalTo(first))
	})
})
