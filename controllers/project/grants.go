package project

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/phoneproof/phoneproof/controllers/project/render"
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

// ParseHostGrant reads NAMESPACE=HOST. A host that begins with "*." covers every name below it too, and "*" all names.
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

// mayUseAccount reports whether the projects of a namespace may name an account: it is granted to them, or to no namespace.
func (p *Permissions) mayUseAccount(namespace, account string) bool {
	owners := p.indexGrants().accounts[account]
	return len(owners) == 0 || owners[namespace]
}

// wildcard begins a host name that covers every name below it.
const wildcard = "*."

// mayUseHost reports whether the projects of a namespace may answer to a host. The most specific grant that covers the host
// decides. A wildcard without a grant must not include a host of another namespace.
func (p *Permissions) mayUseHost(namespace, host string) bool {
	if owners := p.findHostOwners(host); len(owners) > 0 {
		return owners[namespace]
	}
	below := p.indexGrants().below[host]
	return len(below) == 0 || len(below) == 1 && below[namespace]
}

// shareHost reports whether the administrator granted the same host to two namespaces.
func (p *Permissions) shareHost(one, other, host string) bool {
	owners := p.findHostOwners(host)
	return owners[one] && owners[other]
}

// findHostOwners returns the namespaces of the most specific grants that cover a host.
func (p *Permissions) findHostOwners(host string) map[string]bool {
	grants := p.indexGrants()
	if owners := grants.hosts[host]; len(owners) > 0 {
		return owners
	}
	for _, pattern := range listPatterns(host) {
		if owners := grants.hosts[pattern]; len(owners) > 0 {
			return owners
		}
	}
	return nil
}

// listPatterns returns the wildcards above a host name, the most specific first.
func listPatterns(host string) []string {
	var patterns []string
	for i, char := range host {
		if pattern := "*" + host[i:]; char == '.' && pattern != host {
			patterns = append(patterns, pattern)
		}
	}
	if host != render.EveryHost {
		patterns = append(patterns, render.EveryHost)
	}
	return patterns
}

// grantIndex finds the namespaces of grants.
type grantIndex struct {
	accounts, hosts map[string]map[string]bool // by the granted name
	below           map[string]map[string]bool // by each wildcard above a granted host
}

// indexGrants returns the index of the grants. New builds it once.
func (p *Permissions) indexGrants() *grantIndex {
	if p.grants != nil {
		return p.grants
	}
	index := &grantIndex{map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]map[string]bool{}}
	add := func(owners map[string]map[string]bool, name, namespace string) {
		if owners[name] == nil {
			owners[name] = map[string]bool{}
		}
		owners[name][namespace] = true
	}
	for _, grant := range p.AccountGrants {
		add(index.accounts, grant.Name, grant.Namespace)
	}
	for _, grant := range p.HostGrants {
		add(index.hosts, grant.Name, grant.Namespace)
		for _, pattern := range listPatterns(grant.Name) {
			add(index.below, pattern, grant.Namespace)
		}
	}
	return index
}
