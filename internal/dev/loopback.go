package dev

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"
)

// address is an address that dev listens at. Only loopback is allowed.
type address struct {
	flag  string
	text  string
	given *pflag.Flag
}

func (a *address) addFlag(flags *pflag.FlagSet, usage string) {
	flags.StringVar(&a.text, a.flag, a.text, usage)
	a.given = flags.Lookup(a.flag)
}

func (a *address) url() string { return "http://" + a.text }

// openListener opens a listener at the address, and notes its port: any other one if a default one is taken.
func (a *address) openListener(ctx context.Context) (net.Listener, error) {
	host, port, err := net.SplitHostPort(a.text)
	if err != nil || port == "" || !isLoopback(host) {
		return nil, fmt.Errorf("--%s is %q: dev listens on loopback only, as 127.0.0.1:PORT or [::1]:PORT", a.flag, a.text)
	}
	listener, err := listenTCP(ctx, a.text)
	if err != nil && !a.given.Changed {
		listener, err = listenTCP(ctx, net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", a.flag, err)
	}
	a.text = listener.Addr().String()
	return listener, nil
}

func listenTCP(ctx context.Context, at string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	return listener, nil
}

// isLoopback reports whether a host is an address of this machine's loopback.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// onlyLoopback refuses requests that came for another name: a page elsewhere whose name leads to this machine must not read
// what is here (DNS rebinding).
func onlyLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		if host != "localhost" && !isLoopback(host) {
			http.Error(w, "This is a development server: call it by localhost or 127.0.0.1.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// exceptLoopback returns all addresses but loopback's, as rules of --webhook-deny: simulated events must not reach a
// receiver that would believe them.
func exceptLoopback() []string {
	var all []string
	for _, spared := range []string{"127.0.0.0/8", "::1/128"} {
		kept := netip.MustParsePrefix(spared)
		for bits := 1; bits <= kept.Bits(); bits++ {
			bytes := kept.Masked().Addr().AsSlice()
			bytes[(bits-1)/8] ^= 0x80 >> ((bits - 1) % 8) // the other half of what is left
			other, _ := netip.AddrFromSlice(bytes)
			all = append(all, netip.PrefixFrom(other, bits).Masked().String())
		}
	}
	return all
}
