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

// encrypt reads a URI. One that does not say how means that nothing crosses a network unencrypted: pgx's own default does
// without TLS wherever a server refuses it. What the environment or a service file says counts only where it is stricter.
func encrypt(uri connectionURI) (*pgxpool.Config, error) {
	config, err := parseURI(uri.String())
	if err != nil || uri.sslMode != "" || !slices.ContainsFunc(candidates(config.ConnConfig), exposed) {
		return config, err
	}
	uri.sslMode = "require"
	return parseURI(uri.String())
}

// requireSCRAM has the server ask for the password by SCRAM-SHA-256, in which it is never sent and the server proves that it
// knows it. A server whose certificate is checked for its name, or one of this machine, may ask as it likes.
func requireSCRAM(config *pgx.ConnConfig) {
	if slices.ContainsFunc(candidates(config), func(c *pgconn.FallbackConfig) bool { return !isLocal(c.Host) && !identified(c) }) {
		config.RequireAuth = "scram-sha-256"
	}
}

// keepLocalhostLocal has the name localhost, which is trusted like loopback, lead nowhere else whatever DNS says.
func keepLocalhostLocal(config *pgx.ConnConfig) {
	lookUp := config.LookupFunc
	config.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		addresses, err := lookUp(ctx, host)
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

// candidates returns every way to connect that pgx tries, in its order. A change of the TLSConfig they point to is one of the
// config.
func candidates(config *pgx.ConnConfig) []*pgconn.FallbackConfig {
	first := &pgconn.FallbackConfig{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}
	return append([]*pgconn.FallbackConfig{first}, config.Fallbacks...)
}

// exposed reports whether a connection crosses a network without TLS.
func exposed(c *pgconn.FallbackConfig) bool { return c.TLSConfig == nil && !isLocal(c.Host) }

// identified reports whether the server's certificate is checked for its name.
func identified(c *pgconn.FallbackConfig) bool {
	return c.TLSConfig != nil && !c.TLSConfig.InsecureSkipVerify
}

// isLocal reports whether a host is this machine: an address of loopback, localhost, or the folder of a Unix socket.
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
