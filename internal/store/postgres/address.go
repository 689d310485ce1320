package postgres

import (
	"bytes"
	"crypto/x509"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Address is where the database is, and how it is known to be the one.
type Address struct {
	// URI is the connection URI, empty while there is none.
	URI []byte
	// OwnCA says that CA decides whose certificates are believed, and sslrootcert in the URI does not.
	OwnCA bool
	// CA is the certificates of authorities, as PEM; empty while they are not known. Without them nothing is connected.
	CA []byte
}

func (a Address) equal(b Address) bool {
	return bytes.Equal(a.URI, b.URI) && a.OwnCA == b.OwnCA && bytes.Equal(a.CA, b.CA)
}

func (a Address) clone() Address {
	return Address{URI: bytes.Clone(a.URI), OwnCA: a.OwnCA, CA: bytes.Clone(a.CA)}
}

// missing says what is needed to connect and not there; nil if nothing is.
func (a Address) missing() *DatabaseError {
	switch {
	case len(a.URI) == 0:
		return &DatabaseError{Message: "there is no connection URI"}
	case a.OwnCA && len(a.CA) == 0:
		return &DatabaseError{Message: "there is no certificate authority to check the database by"}
	default:
		return nil
	}
}

// errBadURI stands for the errors of pgx, which repeat the URI.
var errBadURI = &DatabaseError{Rejected: true, Message: "the connection URI cannot be read"}

// parse reads the address.
func (a Address) parse() (*pgxpool.Config, error) {
	uri := string(bytes.TrimSpace(a.URI))
	if !a.OwnCA {
		config, err := pgxpool.ParseConfig(uri)
		if err != nil {
			return nil, errBadURI
		}
		return config, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.CA) {
		return nil, &DatabaseError{Rejected: true, Message: "the certificate authority to check the database by cannot be read"}
	}
	if !strings.HasPrefix(uri, "postgresql://") && !strings.HasPrefix(uri, "postgres://") {
		return nil, errBadURI
	}
	config, err := pgxpool.ParseConfig(checked(uri))
	if err != nil {
		return nil, errBadURI
	}
	trust(config, roots)
	return config, nil
}

// trust has every host's certificate checked against roots. It changes what pgx made in place: the check of verify-ca is a
// function of pgx that looks there for its roots.
func trust(config *pgxpool.Config, roots *x509.CertPool) {
	if tls := config.ConnConfig.TLSConfig; tls != nil {
		tls.RootCAs = roots
	}
	for _, host := range config.ConnConfig.Fallbacks {
		if host.TLSConfig != nil {
			host.TLSConfig.RootCAs = roots
		}
	}
}

// checked returns a URI without an authority of its own, and with the sslmode that it has beside one: as libpq has it,
// require is then verify-ca, and sslrootcert=system means verify-full. Where it says nothing, whoever names an authority
// wants the server to be checked, and pgx's default would not: verify-full. What comes last is what counts.
func checked(uri string) string {
	server, query := split(uri)
	var parameters []string
	mode, root := "", ""
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		switch {
		case name == "sslmode":
			mode = value
		case name == "sslrootcert":
			root = value
		case parameter == "ssl=true": // as JDBC has it
			mode = "require"
		case parameter != "":
			parameters = append(parameters, parameter)
		}
	}
	switch {
	case root == "system", mode == "":
		mode = "verify-full"
	case mode == "require":
		mode = "verify-ca"
	}
	// Empty, and not left out: pgx would look into the environment and the home directory for one.
	return server + "?" + strings.Join(append(parameters, "sslmode="+mode, "sslrootcert="), "&")
}

// split returns what stands before and after the question mark of a URI. A password may hold another one, and ends at an @.
func split(uri string) (server, query string) {
	_, rest, _ := strings.Cut(uri, "://")
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		rest = rest[i+1:]
	}
	_, query, found := strings.Cut(rest, "?")
	if !found {
		return uri, ""
	}
	return uri[:len(uri)-len(query)-1], query
}
