package postgres

import (
	"bytes"
	"crypto/x509"

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

// parse reads the address. What the URI leaves open is decided for safety: see encrypt and requireSCRAM.
func (a Address) parse() (*pgxpool.Config, error) {
	uri, ok := splitURI(string(bytes.TrimSpace(a.URI)))
	if !ok {
		return nil, errBadURI
	}
	config, err := a.read(uri)
	if err != nil {
		return nil, err
	}
	if uri.requireAuth == "" {
		requireSCRAM(config.ConnConfig)
	}
	keepLocalhostLocal(config.ConnConfig)
	return config, nil
}

func (a Address) read(uri connectionURI) (*pgxpool.Config, error) {
	if !a.OwnCA {
		return encrypt(uri)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.CA) {
		return nil, &DatabaseError{Rejected: true, Message: "the certificate authority to check the database by cannot be read"}
	}
	config, err := parseURI(uri.checked())
	if err != nil {
		return nil, err
	}
	trust(config, roots)
	return config, nil
}

// trust has every host's certificate checked against roots. It changes what pgx made in place: the check of verify-ca is a
// function of pgx that looks there for its roots.
func trust(config *pgxpool.Config, roots *x509.CertPool) {
	for _, c := range candidates(config.ConnConfig) {
		if c.TLSConfig != nil {
			c.TLSConfig.RootCAs = roots
		}
	}
}
