package postgres

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// connectionURI is the text of a URI, with the parameters apart that decide about encryption and authentication. Only what the
// text says in plain letters counts: a name in percent-encoding is left among the others, where what is added after it wins.
type connectionURI struct {
	server     string // everything before the question mark
	parameters []string

	sslMode, sslRootCert, requireAuth string // empty where the URI does not say
}

// splitURI takes a URI apart, and reports whether it is one. Of a parameter that occurs twice the last one counts, as in libpq.
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
		case parameter == "ssl=true": // as JDBC has it
			uri.sslMode = "require"
		case parameter != "":
			uri.parameters = append(uri.parameters, parameter)
		}
	}
	return uri, true
}

// splitQuery returns what stands before and after the question mark of a URI. A password may hold another one.
func splitQuery(uri string) (server, query string) {
	_, query, found := strings.Cut(withoutUser(uri), "?")
	if !found {
		return uri, ""
	}
	return uri[:len(uri)-len(query)-1], query
}

// endsInBrackets reports whether the hosts of a URI end in an IPv6 address without its end. What follows, such as a question mark,
// would be part of the address to pgx.
func endsInBrackets(server string) bool {
	hosts, _, _ := strings.Cut(withoutUser(server), "/")
	return strings.LastIndexByte(hosts, '[') > strings.LastIndexByte(hosts, ']')
}

// withoutUser returns what follows the user and password of a URI, which end at an @.
func withoutUser(uri string) string {
	_, rest, _ := strings.Cut(uri, "://")
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		return rest[i+1:]
	}
	return rest
}

// String returns the text of the URI, with a password that it may have.
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

// checked returns the text of the URI for a server that is checked by an authority from elsewhere. As in libpq, require is then
// verify-ca, and sslrootcert=system means verify-full. A URI without sslmode means verify-full too, because an authority is named
// to have the server checked.
func (u connectionURI) checked() string {
	switch {
	case u.sslRootCert == "system", u.sslMode == "":
		u.sslMode = "verify-full"
	case u.sslMode == "require":
		u.sslMode = "verify-ca"
	}
	u.sslRootCert = ""
	// Empty, and not left out: pgx would look into the environment and the home directory for one.
	return u.String() + "&sslrootcert="
}

// parseURI reads a URI by pgx, whose errors repeat it.
func parseURI(text string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, errBadURI
	}
	return config, nil
}
