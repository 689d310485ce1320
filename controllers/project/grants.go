package project

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/phoneproof/phoneproof/internal/render"
)

// Grant gives a messenger account or a host name to the projects of a namespace. Several grants of the same name give it to
// several namespaces.
type Grant struct {
	Namespace, Name string
}

// String returns the grant in the form of its flag.
func (g Grant) String() string { return g.Namespace + "=" + g.Name }

var accountName = regexp.MustCompile(`^(whatsapp:[0-9]{1,32}|telegram:[a-z][a-z0-9_]{1,28}bot)$`)

// ParseAccountGrant reads NAMESPACE=telegram:USERNAME or NAMESPACE=whatsapp:PHONENUMBERID.
func ParseAccountGrant(text string) (Grant, error) {
	grant, err := parseGrant(text)
	if err == nil && !accountName.MatchString(grant.Name) {
		err = errors.New("want telegram: and a bot's username without @, or whatsapp: and a phoneNumberID, after NAMESPACE=")
	}
	if err != nil {
		return Grant{}, fmt.Errorf("account grant %q: %w", text, err)
	}
	return grant, nil
}

// ParseHostGrant reads NAMESPACE=HOST. A host that begins with "*." stands for every name below it too, and "*" for all.
func ParseHostGrant(text string) (Grant, error) {
	grant, err := parseGrant(text)
	if err == nil {
		grant.Name = strings.TrimSuffix(grant.Name, ".")
		if grant.Name != render.EveryHost && len(validation.IsDNS1123Subdomain(strings.TrimPrefix(grant.Name, wildcard))) > 0 {
			err = errors.New(`want "*", or a DNS name without a port, which may begin with "*.", after NAMESPACE=`)
		}
	}
	if err != nil {
		return Grant{}, fmt.Errorf("host grant %q: %w", text, err)
	}
	return grant, nil
}

func parseGrant(text string) (Grant, error) {
	namespace, name, _ := strings.Cut(text, "=")
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return Grant{}, errors.New("what stands before = must be the name of a namespace")
	}
	return Grant{namespace, strings.ToLower(name)}, nil
}

// mayUseAccount reports whether the projects of a namespace may name an account: it is granted to them, or to nobody.
func (p *Permissions) mayUseAccount(namespace, account string) bool {
	granted := false
	for _, grant := range p.AccountGrants {
		if grant.Name != account {
			continue
		}
		if grant.Namespace == namespace {
			return true
		}
		granted = true
	}
	return !granted
}

// wildcard begins a host name that stands for every name below it.
const wildcard = "*."

// mayUseHost reports whether the projects of a namespace may answer to a host. The most specific grant that covers the host
// decides. A wildcard that no grant covers must not take in a host of another namespace.
func (p *Permissions) mayUseHost(namespace, host string) bool {
	if owners := p.ownersOfHost(host); len(owners) > 0 {
		return slices.Contains(owners, namespace)
	}
	return !slices.ContainsFunc(p.HostGrants, func(grant Grant) bool {
		return grant.Namespace != namespace && coversHost(host, grant.Name)
	})
}

// shareHost reports whether the administrator granted the same host to two namespaces.
func (p *Permissions) shareHost(one, other, host string) bool {
	owners := p.ownersOfHost(host)
	return slices.Contains(owners, one) && slices.Contains(owners, other)
}

// ownersOfHost returns the namespaces of the most specific grants that cover a host.
func (p *Permissions) ownersOfHost(host string) []string {
	var owners []string
	longest := 0
	for _, grant := range p.HostGrants {
		if !coversHost(grant.Name, host) || len(grant.Name) < longest {
			continue
		}
		if len(grant.Name) > longest {
			owners, longest = nil, len(grant.Name)
		}
		owners = append(owners, grant.Namespace)
	}
	return owners
}

// coversHost reports whether a host name is another one, or a wildcard above it. Every host covers all of them.
func coversHost(pattern, host string) bool {
	return pattern == host || pattern == render.EveryHost ||
		strings.HasPrefix(pattern, wildcard) && strings.HasSuffix(host, pattern[1:])
}
