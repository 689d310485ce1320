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

// WebhookOptions say which addresses webhooks may reach. They belong to the user who runs the process, not to the project.
type WebhookOptions struct {
	// Allow are private addresses that are let through, as [NAMESPACE=]CIDR[:PORT].
	Allow []string
	// Deny are addresses that are always refused, as CIDR.
	Deny []string
}

// AddFlags adds the flags of the addresses.
func (o *WebhookOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Allow, "webhook-allow", nil,
		"private addresses that webhooks may be sent to, as [NAMESPACE=]CIDR[:PORT]; repeatable. "+
			"Loopback, link-local and metadata addresses, the API server and this pod are refused all the same")
	flags.StringSliceVar(&o.Deny, "webhook-deny", nil, "addresses that webhooks are never sent to, as CIDR; repeatable")
}

// Rules parses the addresses.
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

// guardConfig returns which addresses webhooks may be sent to from this process, which speaks to the API server at a URL;
// empty for none.
func (o *WebhookOptions) guardConfig(ctx context.Context, apiServerURL string) (webhook.GuardConfig, error) {
	var config webhook.GuardConfig
	var err error
	if config.Allow, config.Deny, err = o.Rules(); err != nil {
		return config, err
	}
	if config.Own, err = ownAddresses(); err != nil {
		return config, err
	}
	config.APIServer, err = apiServerAddresses(ctx, apiServerURL)
	return config, err
}

// ownAddresses returns those of this pod and, as the operator passes it, of its host.
func ownAddresses() ([]netip.Addr, error) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list own addresses: %w", err)
	}
	var own []netip.Addr
	for _, address := range interfaces {
		// Loopback needs no rule of its own: no guard of a server lets anything through to it.
		if prefix, err := netip.ParsePrefix(address.String()); err == nil && !prefix.Addr().IsLoopback() {
			own = append(own, prefix.Addr())
		}
	}
	for address := range strings.SplitSeq(os.Getenv("HOST_IPS"), ",") { // both families of a host that has both
		if host, err := netip.ParseAddr(address); err == nil {
			own = append(own, host)
		}
	}
	return own, nil
}

// apiServerAddresses returns the addresses of the cluster's API server: of the one that this process speaks to, and of the one
// that pods see. Outside a cluster there are none. An address of loopback needs no rule: no guard of a server lets anything
// through to it.
func apiServerAddresses(ctx context.Context, apiServerURL string) ([]netip.Addr, error) {
	var all []netip.Addr
	for _, host := range []string{hostOf(apiServerURL), os.Getenv("KUBERNETES_SERVICE_HOST")} {
		if host == "" {
			continue
		}
		addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, fmt.Errorf("resolve the API server's name, which webhooks must not reach: %w", err)
		}
		for _, address := range addresses {
			if !address.IsLoopback() {
				all = append(all, address.Unmap())
			}
		}
	}
	return all, nil
}

// hostOf returns the host of a client's server address, which may lack the scheme.
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
