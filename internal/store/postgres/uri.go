package postgres

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// connectionURI is a URI with the parameters for encryption and authentication split off. Percent-encoded names are not
// recognised: they stay among the other parameters, where a later one overrides them.
type connectionURI struct {
	server     string // everything before the question mark
	parameters []string

	sslMode, sslRootCert, requireAuth string // empty if not in the URI
}

// splitURI splits a URI, and reports whether it is valid. The last of repeated parameters counts, as in libpq.
func splitURI(text string) (uri connectionURI, ok bool) {
	if !strings.HasPrefix(text, "postgresql://") && !strings.HasPrefix(text, "postgres://") {
		return connectionURI{}, false
	}
	server, query := splitQuery(text)
	if endsInBrackets(server) {
		return connectionURI{}, false
	}
	uri.server = server
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		value = strings.Trim(value, " ")
		switch {
		case name == "sslmode":
			uri.sslMode = value
		case name == "sslrootcert":
			uri.sslRootCert = value
		case name == "require_auth":
			uri.requireAuth = value
		case parameter == "ssl=true": // the JDBC form
			uri.sslMode = "require"
		case parameter != "":
			uri.parameters = append(uri.parameters, parameter)
		}
	}
	return uri, true
}

// splitQuery splits a URI at the question mark of its query. A password may contain another one.
func splitQuery(uri string) (server, query string) {
	_, query, found := strings.Cut(withoutUser(uri), "?")
	if !found {
		return uri, ""
	}
	return uri[:len(uri)-len(query)-1], query
}

// endsInBrackets reports whether the hosts of a URI end in an unclosed IPv6 address. To pgx a following question mark would be
// part of the address.
func endsInBrackets(server string) bool {
	hosts, _, _ := strings.Cut(withoutUser(server), "/")
	return strings.LastIndexByte(hosts, '[') > strings.LastIndexByte(hosts, ']')
}

// withoutUser returns the part of a URI after the user and password, which end at an @.
func withoutUser(uri string) string {
	_, rest, _ := strings.Cut(uri, "://")
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		return rest[i+1:]
	}
	return rest
}

// String returns the URI, including its password.
func (u connectionURI) String() string {
	parameters := slices.Clip(u.parameters)
	for _, p := range []struct{ name, value string }{
		{"require_auth", u.requireAuth}, {"sslmode", u.sslMode}, {"sslrootcert", u.sslRootCert},
	} {
		if p.value != "" {
			parameters = append(parameters, p.name+"="+p.value)
		}
	}
	if len(parameters) == 0 {
		return u.server
	}
	return u.server + "?" + strings.Join(parameters, "&")
}

// verifiedText returns the URI for a server whose certificate is checked against an authority from outside the URI. As in libpq,
// require becomes verify-ca and sslrootcert=system means verify-full; so does a URI without sslmode.
func (u connectionURI) verifiedText() string {
	switch {
	case u.sslRootCert == "system", u.sslMode == "":
		u.sslMode = "verify-full"
	case u.sslMode == "require":
		u.sslMode = "verify-ca"
	}
	u.sslRootCert = ""
	// Empty but present: otherwise pgx would take one from the environment or the home directory.
	return u.String() + "&sslrootcert="
}

// parseURI parses a URI with pgx. It replaces pgx's errors because they contain the URI.
func parseURI(text string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, errBadURI
	}
	return config, nil
}
