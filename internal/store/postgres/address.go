package postgres

import (
	"bytes"
	"crypto/x509"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/phoneproof/phoneproof/internal/redact"
)

// Address holds the connection URI of the database and the authorities that its certificate is checked against.
type Address struct {
	// URI is the connection URI with its password; empty while none is configured.
	URI redact.Value[[]byte]
	// OwnCA reports whether server certificates are checked against CA instead of sslrootcert in the URI.
	OwnCA bool
	// CA holds the PEM certificates of the authorities; empty while unknown. With OwnCA, no connection is opened without it.
	CA []byte
}

func (a Address) equal(b Address) bool {
	return bytes.Equal(a.URI.Reveal(), b.URI.Reveal()) && a.OwnCA == b.OwnCA && bytes.Equal(a.CA, b.CA)
}

func (a Address) clone() Address {
	return Address{URI: redact.New(bytes.Clone(a.URI.Reveal())), OwnCA: a.OwnCA, CA: bytes.Clone(a.CA)}
}

// findMissing returns an error that names what is missing to connect; nil if the address is complete.
func (a Address) findMissing() *DatabaseError {
	switch {
	case len(a.URI.Reveal()) == 0:
		return &DatabaseError{Message: "there is no connection URI"}
	case a.OwnCA && len(a.CA) == 0:
		return &DatabaseError{Message: "there is no certificate authority to check the database by"}
	default:
		return nil
	}
}

// errBadURI replaces the errors of pgx, which contain the URI.
var errBadURI = &DatabaseError{Rejected: true, Message: "the connection URI cannot be read"}

// errTooManyConns is the error of a URI whose pools would leave the database nothing for others.
var errTooManyConns = &DatabaseError{
	Rejected: true, Message: fmt.Sprintf("pool_max_conns in the connection URI is above %d, the most that a replica may open", maxConnsInURI),
}

// parse returns the pool configuration of the address. Settings missing from the URI get safe defaults: see parseEncrypted and
// requireSCRAM.
func (a Address) parse() (*pgxpool.Config, error) {
	uri, ok := splitURI(string(bytes.TrimSpace(a.URI.Reveal())))
	if !ok {
		return nil, errBadURI
	}
	config, err := a.parseTLS(uri)
	if err != nil {
		return nil, err
	}
	if uri.requireAuth == "" {
		requireSCRAM(config.ConnConfig)
	}
	keepLocalhostLocal(config.ConnConfig)
	return config, nil
}

func (a Address) parseTLS(uri connectionURI) (*pgxpool.Config, error) {
	if !a.OwnCA {
		return parseEncrypted(uri)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.CA) {
		return nil, &DatabaseError{Rejected: true, Message: "the certificate authority to check the database by cannot be read"}
	}
	config, err := parseURI(uri.verifiedText())
	if err != nil {
		return nil, err
	}
	setRootCAs(config, roots)
	return config, nil
}

// setRootCAs makes pgx check every host's certificate against roots. It changes the TLS configurations in place because pgx's
// verify-ca check reads its roots from them.
func setRootCAs(config *pgxpool.Config, roots *x509.CertPool) {
	for _, c := range connectCandidates(config.ConnConfig) {
		if c.TLSConfig != nil {
			c.TLSConfig.RootCAs = roots
		}
	}
}
