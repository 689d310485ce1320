package postgres

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/pgserver"
)

func TestChecked(t *testing.T) {
	const full, ca = "sslmode=verify-full&sslrootcert=", "sslmode=verify-ca&sslrootcert="
	for uri, want := range map[string]string{
		"postgresql://db/shop":                                    "postgresql://db/shop?" + full,
		"postgresql://db/shop?":                                   "postgresql://db/shop?" + full,
		"postgresql://app:p@db/shop?a=b&":                         "postgresql://app:p@db/shop?a=b&" + full,
		"postgres://app:p?q@a:1,b:2/shop?a=b":                     "postgres://app:p?q@a:1,b:2/shop?a=b&" + full,
		"postgresql://app:sslmode=disable?@db/shop":               "postgresql://app:sslmode=disable?@db/shop?" + full,
		"postgresql://db?host=a,b":                                "postgresql://db?host=a,b&" + full,
		"postgresql://db/shop?sslmode=verify-full":                "postgresql://db/shop?" + full,
		"postgresql://db/shop?sslmode=verify-ca":                  "postgresql://db/shop?" + ca,
		"postgresql://db/shop?sslmode=require":                    "postgresql://db/shop?" + ca,
		"postgresql://db/shop?ssl=true":                           "postgresql://db/shop?" + ca,
		"postgresql://db/shop?sslmode=disable":                    "postgresql://db/shop?sslmode=disable&sslrootcert=",
		"postgresql://db/shop?sslmode=allow":                      "postgresql://db/shop?sslmode=allow&sslrootcert=",
		"postgresql://db/shop?sslmode=prefer&a=b":                 "postgresql://db/shop?a=b&sslmode=prefer&sslrootcert=",
		"postgresql://db/shop?sslmode=disable&sslmode=verify-ca":  "postgresql://db/shop?" + ca,
		"postgresql://db/shop?sslrootcert=/a.crt&sslmode=require": "postgresql://db/shop?" + ca,
		"postgresql://db/shop?sslrootcert=system&sslmode=require": "postgresql://db/shop?" + full,
		"postgresql://db/shop?%73slmode=disable":                  "postgresql://db/shop?%73slmode=disable&" + full,
	} {
		NewWithT(t).Expect(checked(uri)).To(Equal(want), uri)
	}
}

func TestAddressParse_everyHostIsChecked(t *testing.T) {
	g := NewWithT(t)
	authority, err := pgserver.NewAuthority("ours")
	g.Expect(err).NotTo(HaveOccurred())
	config, err := Address{URI: []byte("postgresql://a,b,c/shop\n"), OwnCA: true, CA: authority.PEM}.parse()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.ConnConfig.TLSConfig.ServerName).To(Equal("a"))
	g.Expect(config.ConnConfig.TLSConfig.InsecureSkipVerify).To(BeFalse())
	roots := config.ConnConfig.TLSConfig.RootCAs
	g.Expect(roots).NotTo(BeNil())
	g.Expect(config.ConnConfig.Fallbacks).To(HaveLen(2))
	for _, host := range config.ConnConfig.Fallbacks {
		g.Expect(host.TLSConfig.RootCAs).To(BeIdenticalTo(roots))
		g.Expect(host.TLSConfig.ServerName).To(Equal(host.Host))
		g.Expect(host.TLSConfig.InsecureSkipVerify).To(BeFalse())
	}
}

func TestAddressParse_goesByNothingButTheAuthority(t *testing.T) {
	t.Setenv("PGSSLROOTCERT", "/nowhere/root.crt")
	t.Setenv("PGSSLMODE", "disable")
	g := NewWithT(t)
	authority, err := pgserver.NewAuthority("ours")
	g.Expect(err).NotTo(HaveOccurred())
	config, err := Address{URI: []byte("postgresql://a/shop"), OwnCA: true, CA: authority.PEM}.parse()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.ConnConfig.TLSConfig.RootCAs).NotTo(BeNil())
}

func TestAddress_whatCannotBeUsed(t *testing.T) {
	authority, err := pgserver.NewAuthority("ours")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	uri := []byte("postgresql://app:canary@db/shop")
	for name, tc := range map[string]struct {
		address  Address
		message  string
		rejected bool
	}{
		"nothing":         {Address{}, "there is no connection URI", false},
		"authority alone": {Address{OwnCA: true, CA: authority.PEM}, "there is no connection URI", false},
		"no authority":    {Address{URI: uri, OwnCA: true}, "there is no certificate authority to check the database by", false},
		"no PEM": {
			Address{URI: uri, OwnCA: true, CA: []byte("canary")}, "the certificate authority to check the database by cannot be read", true,
		},
		"no URI": {
			Address{URI: []byte("host=canary"), OwnCA: true, CA: authority.PEM}, "the connection URI cannot be read", true,
		},
		"bad URI": {
			Address{URI: []byte("postgresql://app:canary@db:port/"), OwnCA: true, CA: authority.PEM}, "the connection URI cannot be read", true,
		},
		"bad sslmode": {
			Address{URI: []byte("postgresql://db/?sslmode=canary"), OwnCA: true, CA: authority.PEM}, "the connection URI cannot be read", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if missing := tc.address.missing(); missing != nil {
				g.Expect(missing).To(Equal(&DatabaseError{Message: tc.message, Rejected: tc.rejected}))
				return
			}
			_, err := tc.address.parse()
			g.Expect(err).To(Equal(&DatabaseError{Message: tc.message, Rejected: tc.rejected}))
		})
	}
}

func TestAddress_equal(t *testing.T) {
	g := NewWithT(t)
	a := Address{URI: []byte("u"), OwnCA: true, CA: []byte("c")}
	g.Expect(a.equal(a.clone())).To(BeTrue())
	for _, b := range []Address{
		{}, {URI: []byte("v"), OwnCA: true, CA: []byte("c")}, {URI: []byte("u"), CA: []byte("c")}, {URI: []byte("u"), OwnCA: true, CA: []byte("d")},
	} {
		g.Expect(a.equal(b)).To(BeFalse())
	}
}
