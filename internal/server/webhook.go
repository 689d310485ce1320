package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/phoneproof/phoneproof/internal/webhook"
)

// WebhookOptions are the addresses that webhooks may reach. The user who runs the process sets them, not the project.
type WebhookOptions struct {
	// Allow lists private addresses that are allowed, as [NAMESPACE=]CIDR[:PORT].
	Allow []string
	// Deny lists addresses that are always refused, as CIDR.
	Deny []string
}

// AddFlags adds the flags for webhook addresses.
func (o *WebhookOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Allow, "webhook-allow", nil,
		"private addresses that webhooks may be sent to, as [NAMESPACE=]CIDR[:PORT]; repeatable. "+
			"Loopback, link-local and metadata addresses, the API server and this pod are refused all the same")
	flags.StringSliceVar(&o.Deny, "webhook-deny", nil, "addresses that webhooks are never sent to, as CIDR; repeatable")
}

// Rules returns the parsed addresses.
func (o *WebhookOptions) Rules() (allow []webhook.AllowRule, deny []netip.Prefix, err error) {
	for _, text := range o.Allow {
		rule, err := webhook.ParseAllowRule(text)
		if err != nil {
			return nil, nil, fmt.Errorf("--webhook-allow: %w", err)
		}
		allow = append(allow, rule)
	}
	for _, text := range o.Deny {
		prefix, err := webhook.ParseDenyRule(text)
		if err != nil {
			return nil, nil, fmt.Errorf("--webhook-deny: %w", err)
		}
		deny = append(deny, prefix)
	}
	return allow, deny, nil
}

// guardConfig returns the configuration of the guard. apiServerURL is the API server of this process; empty for none.
func (o *WebhookOptions) guardConfig(ctx context.Context, apiServerURL string) (webhook.GuardConfig, error) {
	var config webhook.GuardConfig
	var err error
	if config.Allow, config.Deny, err = o.Rules(); err != nil {
		return config, fmt.Errorf("read webhook rules: %w", err)
	}
	if config.Own, err = findOwnAddresses(); err != nil {
		return config, err
	}
	config.APIServer, err = findAPIServerAddresses(ctx, apiServerURL)
	return config, err
}

// findOwnAddresses returns the addresses of this pod and, from the operator, of its host.
func findOwnAddresses() ([]netip.Addr, error) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list own addresses: %w", err)
	}
	var own []netip.Addr
	for _, address := range interfaces {
		// Loopback needs no rule: the guard of a server always refuses it.
		if prefix, err := netip.ParsePrefix(address.String()); err == nil && !prefix.Addr().IsLoopback() {
			own = append(own, prefix.Addr())
		}
	}
	for address := range strings.SplitSeq(os.Getenv("HOST_IPS"), ",") { // one per address family of the host
		if host, err := netip.ParseAddr(address); err == nil {
			own = append(own, host)
		}
	}
	return own, nil
}

// findAPIServerAddresses returns the addresses of the API server as seen by this process and by pods; none outside a cluster.
// Loopback needs no rule: the guard of a server always refuses it.
func findAPIServerAddresses(ctx context.Context, apiServerURL string) ([]netip.Addr, error) {
	var all []netip.Addr
	for _, host := range []string{hostOf(apiServerURL), os.Getenv("KUBERNETES_SERVICE_HOST")} {
		if host == "" {
			continue
		}
		addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, fmt.Errorf("resolve API server for the webhook guard: %w", err)
		}
		for _, address := range addresses {
			if !address.IsLoopback() {
				all = append(all, address.Unmap())
			}
		}
	}
	return all, nil
}

// hostOf returns the host of a server address, which may have no scheme.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Hostname()
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
