package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/spf13/pflag"

	"github.com/phoneproof/phoneproof/internal/webhook"
)

// webhookFlags say which addresses webhooks may reach. They belong to whoever runs the cluster, not to the project.
type webhookFlags struct {
	allow []string
	deny  []string
	// loopback lets webhooks go to loopback, where the receivers of dev are. There is no flag for it.
	loopback bool
}

func (f *webhookFlags) bind(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.allow, "webhook-allow", nil,
		"private addresses that webhooks may be sent to, as [NAMESPACE=]CIDR[:PORT]; repeatable. "+
			"Loopback, link-local and metadata addresses, the API server and this pod are refused all the same")
	flags.StringSliceVar(&f.deny, "webhook-deny", nil, "addresses that webhooks are never sent to, as CIDR; repeatable")
}

// newGuard makes the judge of addresses. Tests, whose receivers listen on loopback, put the guard of dev here.
var newGuard = webhook.NewGuard

// rules returns what the flags say.
func (f *webhookFlags) rules() (allow []webhook.AllowRule, deny []netip.Prefix, err error) {
	for _, text := range f.allow {
		rule, err := webhook.ParseAllowRule(text)
		if err != nil {
			return nil, nil, fmt.Errorf("--webhook-allow: %w", err)
		}
		allow = append(allow, rule)
	}
	for _, text := range f.deny {
		prefix, err := webhook.ParseDenyRule(text)
		if err != nil {
			return nil, nil, fmt.Errorf("--webhook-deny: %w", err)
		}
		deny = append(deny, prefix)
	}
	return allow, deny, nil
}

// guard returns the judge of every address that a webhook is sent to.
func (f *webhookFlags) guard(ctx context.Context) (*webhook.Guard, error) {
	var config webhook.GuardConfig
	var err error
	if config.Allow, config.Deny, err = f.rules(); err != nil {
		return nil, err
	}
	if config.Own, err = ownAddresses(); err != nil {
		return nil, err
	}
	if config.APIServer, err = apiServerAddresses(ctx); err != nil {
		return nil, err
	}
	if f.loopback {
		return webhook.NewDevGuard(config), nil
	}
	return newGuard(config), nil
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
	if host, err := netip.ParseAddr(os.Getenv("HOST_IP")); err == nil {
		own = append(own, host)
	}
	return own, nil
}

// apiServerAddresses returns the addresses of the cluster's API server; none outside a cluster.
func apiServerAddresses(ctx context.Context) ([]netip.Addr, error) {
	host := os.Getenv("KUBERNETES_SERVICE_HOST")
	if host == "" {
		return nil, nil
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("resolve KUBERNETES_SERVICE_HOST, which webhooks must not reach: %w", err)
	}
	return addresses, nil
}
