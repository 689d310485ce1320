// Command coredns is CoreDNS with the few plugins that a local cluster's DNS needs.
//
// The whole CoreDNS links the clients of three clouds; this one builds in a fraction of the time.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// The order of plugins in a chain, which is upstream's.
	dnsserver.Directives = []string{"bind", "ready", "errors", "cache", "template", "kubernetes"}
	coremain.Run()
}
