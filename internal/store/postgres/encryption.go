package postgres

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// parseEncrypted parses a URI. Without sslmode in the URI it requires TLS on a network, because pgx's own default falls back to
// plain text if a server refuses TLS. The environment or a service file can only make this stricter.
func parseEncrypted(uri connectionURI) (*pgxpool.Config, error) {
	config, err := parseURI(uri.String())
	if err != nil || uri.sslMode != "" || !slices.ContainsFunc(connectCandidates(config.ConnConfig), isCandidateExposed) {
		return config, err
	}
	uri.sslMode = "require"
	return parseURI(uri.String())
}

// requireSCRAM requires SCRAM-SHA-256, which never sends the password and proves that the server knows it. Any method is allowed
// for servers on this machine and for servers whose certificate is checked for their name.
func requireSCRAM(config *pgx.ConnConfig) {
	if slices.ContainsFunc(connectCandidates(config), func(c *pgconn.FallbackConfig) bool {
		return !isLocal(c.Host) && !verifiesServerName(c)
	}) {
		config.RequireAuth = "scram-sha-256"
	}
}

// keepLocalhostLocal drops other addresses than loopback from DNS answers for localhost, because that name is trusted like
// loopback.
func keepLocalhostLocal(config *pgx.ConnConfig) {
	lookup := config.LookupFunc
	config.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		addresses, err := lookup(ctx, host)
		if err != nil || !isLocalhost(host) {
			return addresses, err
		}
		local := slices.DeleteFunc(addresses, func(address string) bool { return !isLoopback(address) })
		if len(local) == 0 {
			return nil, &DatabaseError{Message: "the name localhost does not lead to this machine"}
		}
		return local, nil
	}
}

// connectCandidates returns the connection attempts of pgx in their order. They share their TLSConfig with config.
func connectCandidates(config *pgx.ConnConfig) []*pgconn.FallbackConfig {
	first := &pgconn.FallbackConfig{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}
	return append([]*pgconn.FallbackConfig{first}, config.Fallbacks...)
}

// isCandidateExposed reports whether a connection crosses a network without TLS.
func isCandidateExposed(c *pgconn.FallbackConfig) bool { return c.TLSConfig == nil && !isLocal(c.Host) }

// verifiesServerName reports whether the server's certificate is checked for its name.
func verifiesServerName(c *pgconn.FallbackConfig) bool {
	return c.TLSConfig != nil && !c.TLSConfig.InsecureSkipVerify
}

// isLocal reports whether a host is this machine: a loopback address, localhost, or the directory of a Unix socket.
func isLocal(host string) bool {
	network, _ := pgconn.NetworkAddress(host, 0)
	return network == "unix" || isLoopback(host) || isLocalhost(host)
}

func isLocalhost(host string) bool {
	return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// isExposed reports whether an open connection crosses a network without TLS.
func isExposed(conn net.Conn) bool {
	if _, encrypted := conn.(*tls.Conn); encrypted {
		return false
	}
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	return ok && !remote.IP.IsLoopback()
}
