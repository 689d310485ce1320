package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

func TestConnectionURI_verifiedText(t *testing.T) {
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
		read, ok := splitURI(uri)
		NewWithT(t).Expect(ok).To(BeTrue())
		NewWithT(t).Expect(read.verifiedText()).To(Equal(want), uri)
	}
}

// connectionModes returns the TLS mode of each connection that a config tries, in order.
func connectionModes(config *pgx.ConnConfig) []string {
	var modes []string
	for _, c := range connectCandidates(config) {
		mode := "plain"
		switch {
		case verifiesServerName(c):
			mode = "verify-full"
		case c.TLSConfig != nil && c.TLSConfig.VerifyPeerCertificate != nil:
			mode = "verify-ca"
		case c.TLSConfig != nil:
			mode = "require"
		}
		modes = append(modes, mode)
	}
	return modes
}

func TestAddressParse_encryption(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	t.Setenv("PGREQUIREAUTH", "")
	const scram = "scram-sha-256"
	plain, require, prefer, full := []string{"plain"}, []string{"require"}, []string{"require", "plain"}, []string{"verify-full"}
	for uri, want := range map[string]struct {
		modes []string
		auth  string
	}{
		"postgresql://app:p@shop-db-rw.shop:5432/app":             {require, scram}, // as CloudNativePG writes it
		"postgres://app:p@db/shop?application_name=x":             {require, scram},
		"postgresql://db?sslmode=":                                {require, scram},
		"postgresql://db?sslmode= &application_name=x":            {require, scram},
		"postgresql://db?%73slmode=disable":                       {require, scram},
		"postgresql://db?sslmode=disable&sslmode=":                {require, scram},
		"postgresql://app:sslmode=disable?@db/shop":               {require, scram},
		"postgresql://a,b/shop":                                   {[]string{"require", "require"}, scram},
		"postgresql://127.0.0.1,b/shop":                           {[]string{"require", "require"}, scram},
		"postgresql://127.0.0.1/shop?host=b":                      {require, scram},
		"postgresql://0.0.0.0/shop":                               {require, scram},
		"postgresql://localhost.example/shop":                     {require, scram},
		"postgresql://db?sslmode=require":                         {require, scram},
		"postgresql://db?sslmode=verify-ca":                       {[]string{"verify-ca"}, scram},
		"postgresql://db?sslmode=verify-full":                     {full, ""},
		"postgresql://db?sslrootcert=system":                      {full, ""},
		"postgresql://db?sslnegotiation=direct":                   {require, scram},
		"postgresql://db?ssl=true":                                {require, scram},
		"postgresql://db?sslmode=disable":                         {plain, scram},
		"postgresql://db?sslmode=prefer":                          {prefer, scram},
		"postgresql://db?sslmode=allow":                           {[]string{"plain", "require"}, scram},
		"postgresql://db?require_auth=password":                   {require, "password"},
		"postgresql://db?require_auth=&sslmode=disable":           {plain, scram},
		"postgresql://db?%72equire_auth=password":                 {require, scram},
		"postgresql://db?require_auth=md5,password&sslmode=allow": {[]string{"plain", "require"}, "md5,password"},
		"postgresql://127.0.0.1/shop":                             {prefer, ""},
		"postgresql://[::1]/shop":                                 {prefer, ""},
		"postgresql://localhost,127.8.9.1/shop":                   {[]string{"require", "plain", "require", "plain"}, ""},
		"postgresql:///shop?host=/run/postgresql":                 {plain, ""},
		"postgresql://%2Frun%2Fpostgresql,db/shop":                {[]string{"plain", "require"}, scram},
	} {
		t.Run(uri, func(t *testing.T) {
			g := NewWithT(t)
			config, err := Address{URI: redact.New([]byte(uri))}.parse()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(connectionModes(config.ConnConfig)).To(Equal(want.modes))
			g.Expect(config.ConnConfig.RequireAuth).To(Equal(want.auth))
		})
	}
}

func TestAddressParse_environmentOnlyTightens(t *testing.T) {
	uri := Address{URI: redact.New([]byte("postgresql://db/shop"))}
	for mode, want := range map[string]string{"disable": "require", "prefer": "require", "allow": "require", "verify-full": "verify-full"} {
		t.Run(mode, func(t *testing.T) {
			t.Setenv("PGSSLMODE", mode)
			t.Setenv("PGREQUIREAUTH", "")
			g := NewWithT(t)
			config, err := uri.parse()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(connectionModes(config.ConnConfig)).To(Equal([]string{want}))
		})
	}
	t.Setenv("PGREQUIREAUTH", "password")
	config, err := uri.parse()
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.ConnConfig.RequireAuth).To(Equal("scram-sha-256"))
}

func TestAddressParse_serviceFileOnlyTightens(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "services")
	g.Expect(os.WriteFile(file, []byte("[open]\nsslmode=disable\nrequire_auth=password\n[full]\nsslmode=verify-full\n"), 0o600)).To(Succeed())
	for service, want := range map[string]string{"open": "require", "full": "verify-full"} {
		config, err := Address{URI: redact.New([]byte("postgresql://db/shop?service=" + service + "&servicefile=" + file))}.parse()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(connectionModes(config.ConnConfig)).To(Equal([]string{want}))
		g.Expect(config.ConnConfig.RequireAuth).NotTo(Equal("password"))
	}
}

func TestAddressParse_localhostStaysLocal(t *testing.T) {
	for name, tc := range map[string]struct{ found, want []string }{
		"loopback":  {[]string{"127.0.0.1", "::1"}, []string{"127.0.0.1", "::1"}},
		"both":      {[]string{"192.0.2.1", "127.0.0.1"}, []string{"127.0.0.1"}},
		"elsewhere": {[]string{"192.0.2.1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, err := Address{URI: redact.New([]byte("postgresql://LOCALHOST./shop"))}.parse()
			g.Expect(err).NotTo(HaveOccurred())
			config.ConnConfig.LookupFunc = func(context.Context, string) ([]string, error) { return slices.Clone(tc.found), nil }
			keepLocalhostLocal(config.ConnConfig)
			addresses, err := config.ConnConfig.LookupFunc(t.Context(), "LOCALHOST.")
			g.Expect(addresses).To(Equal(tc.want))
			g.Expect(err != nil).To(Equal(tc.want == nil))
			g.Expect(config.ConnConfig.LookupFunc(t.Context(), "db")).To(Equal(tc.found), "other names keep their DNS answers")
		})
	}
}

func TestAddressParse_checksEveryHost(t *testing.T) {
	g := NewWithT(t)
	authority, err := pgserver.NewAuthority("ours")
	g.Expect(err).NotTo(HaveOccurred())
	config, err := Address{URI: redact.New([]byte("postgresql://a,b,c/shop\n")), OwnCA: true, CA: authority.PEM}.parse()
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

func TestAddressParse_usesOnlyTheAuthority(t *testing.T) {
	t.Setenv("PGSSLROOTCERT", "/nowhere/root.crt")
	t.Setenv("PGSSLMODE", "disable")
	g := NewWithT(t)
	authority, err := pgserver.NewAuthority("ours")
	g.Expect(err).NotTo(HaveOccurred())
	config, err := Address{URI: redact.New([]byte("postgresql://a/shop")), OwnCA: true, CA: authority.PEM}.parse()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.ConnConfig.TLSConfig.RootCAs).NotTo(BeNil())
}

func TestAddress_rejectsUnusable(t *testing.T) {
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
		"no authority":    {Address{URI: redact.New(uri), OwnCA: true}, "there is no certificate authority to check the database by", false},
		"no PEM": {
			Address{URI: redact.New(uri), OwnCA: true, CA: []byte("canary")}, "the certificate authority to check the database by cannot be read", true,
		},
		"no URI": {
			Address{URI: redact.New([]byte("host=canary")), OwnCA: true, CA: authority.PEM}, "the connection URI cannot be read", true,
		},
		"keywords and values": {
			Address{URI: redact.New([]byte("host=db user=canary sslmode=verify-full"))}, "the connection URI cannot be read", true,
		},
		"bad URI": {
			Address{URI: redact.New([]byte("postgresql://app:canary@db:port/")), OwnCA: true, CA: authority.PEM}, "the connection URI cannot be read", true,
		},
		"a query inside an address":  {Address{URI: redact.New([]byte("postgres://[?],canary"))}, "the connection URI cannot be read", true},
		"a query inside a directory": {Address{URI: redact.New([]byte("postgres://[/?],canary"))}, "the connection URI cannot be read", true},
		"authentication inside an address": {
			Address{URI: redact.New([]byte("postgres://[?require_auth=none&],canary"))}, "the connection URI cannot be read", true,
		},
		"bad sslmode": {
			Address{URI: redact.New([]byte("postgresql://db/?sslmode=canary")), OwnCA: true, CA: authority.PEM}, "the connection URI cannot be read", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if missing := tc.address.findMissing(); missing != nil {
				g.Expect(missing).To(Equal(&DatabaseError{Message: tc.message, Rejected: tc.rejected}))
				return
			}
			_, err := tc.address.parse()
			g.Expect(err).To(Equal(&DatabaseError{Message: tc.message, Rejected: tc.rejected}))
		})
	}
}

func TestPoolConfig_boundsConnections(t *testing.T) {
	for uri, want := range map[string]int32{
		"postgresql://db/shop?pool_max_conns=1":                     1,
		"postgresql://db/shop?pool_max_conns=90":                    90,
		"postgresql://db/shop?pool_max_conns=91":                    0,
		"postgresql://db/shop?pool_max_conns=2147483647":            0,
		"postgresql://db/shop?pool_max_conns=6&pool_max_conns=2000": 0,
	} {
		g := NewWithT(t)
		config, err := poolConfig(Address{URI: redact.New([]byte(uri))})
		if want == 0 {
			g.Expect(err).To(Equal(&DatabaseError{
				Rejected: true, Message: "pool_max_conns in the connection URI is above 90, the most that a replica may open",
			}), uri)
			continue
		}
		g.Expect(err).NotTo(HaveOccurred(), uri)
		g.Expect(config.MaxConns).To(Equal(want), uri)
	}
	g := NewWithT(t)
	config, err := poolConfig(Address{URI: redact.New([]byte("postgresql://db/shop"))})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.MaxConns).To(And(BeNumerically(">=", 6), BeNumerically("<=", 16)), "by the number of processors")
}

func TestAddress_equal(t *testing.T) {
	g := NewWithT(t)
	a := Address{URI: redact.New([]byte("u")), OwnCA: true, CA: []byte("c")}
	g.Expect(a.equal(a.clone())).To(BeTrue())
	for _, b := range []Address{
		{}, {URI: redact.New([]byte("v")), OwnCA: true, CA: []byte("c")}, {URI: redact.New([]byte("u")), CA: []byte("c")}, {URI: redact.New([]byte("u")), OwnCA: true, CA: []byte("d")},
	} {
		g.Expect(a.equal(b)).To(BeFalse())
	}
}

func TestAddress_printsNoURI(t *testing.T) {
	a := Address{URI: redact.New([]byte("canary"))}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		NewWithT(t).Expect(fmt.Sprintf(verb, a)).NotTo(Or(ContainSubstring("canary"), ContainSubstring("99 97 110"), ContainSubstring("0x63")))
	}
}

// FuzzAddressParse looks for a URI that connects without TLS, or weakens authentication, without asking for it.
func FuzzAddressParse(f *testing.F) {
	for _, seed := range []string{
		"postgresql://app:p@db:5432/app", "postgres://a,b/shop?sslmode=", "postgresql://db?%73slmode=disable", "postgresql://db?sslmode=disable&sslmode=",
		"postgresql://app:p?q@db?require_auth=", "postgresql://%2Frun,db", "postgresql://[::1]:1/x?host=db", "postgresql://db? sslmode=allow",
	} {
		f.Add(seed)
	}
	f.Setenv("PGSSLMODE", "disable")
	f.Setenv("PGREQUIREAUTH", "password")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "service") {
			t.Skip("service parameters read files")
		}
		config, err := Address{URI: redact.New([]byte(text))}.parse()
		if err != nil {
			return
		}
		for _, c := range connectCandidates(config.ConnConfig) {
			if isCandidateExposed(c) && !strings.Contains(text, "sslmode=") {
				t.Fatalf("%q connects without TLS", text)
			}
			if !isLocal(c.Host) && !verifiesServerName(c) && config.ConnConfig.RequireAuth != "scram-sha-256" &&
				!strings.Contains(text, "require_auth=") {
				t.Fatalf("%q exposes the password", text)
			}
		}
	})
}
