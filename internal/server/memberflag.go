package server

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxMembers bounds the projects of a pool: each has its own series of metrics, and a share of the connections.
const maxMembers = 100

// Member is a project of a pool.
type Member struct {
	// Project is its name, without the namespace.
	Project string
	// Address is that of its API.
	Address string
	// Store is where its requests are kept; empty for StoreKubernetes.
	Store string
	// LogoFile is the picture above its page; empty for none.
	LogoFile string
}

// Members is the value of --member.
type Members []Member

// Set adds a member, as name=PROJECT,address=HOST:PORT[,store=STORE][,logo-file=FILE].
func (m *Members) Set(text string) error {
	var added Member
	fields := map[string]*string{
		"name": &added.Project, "address": &added.Address, "store": &added.Store, "logo-file": &added.LogoFile,
	}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		field := fields[key]
		switch {
		case !ok || field == nil:
			return fmt.Errorf("%q: want name=, address=, store= or logo-file=", pair)
		case *field != "":
			return fmt.Errorf("%s is given twice", key)
		case value == "":
			return fmt.Errorf("%s is empty", key)
		}
		*field = value
	}
	*m = append(*m, added)
	return nil
}

// String returns the names and addresses of the members.
func (m *Members) String() string {
	var all []string
	for _, member := range *m {
		all = append(all, "name="+member.Project+",address="+member.Address)
	}
	return strings.Join(all, " ")
}

// Type is the name of the value in the help.
func (m *Members) Type() string { return "member" }

// poolName returns the namespace and the name of the pool.
func (o *Options) poolName() (namespace, name string) {
	namespace, name, _ = strings.Cut(o.Pool, "/")
	return namespace, name
}

// completePool validates the flags of a pool.
func (o *Options) completePool() error {
	switch {
	case o.Pool == "" && len(o.Members) > 0:
		return errors.New("--member needs --pool")
	case o.Pool == "":
		return nil
	case !isNamespacedName(o.Pool) || !isName(o.Pool[strings.Index(o.Pool, "/")+1:]):
		return fmt.Errorf("--pool is %q: want NAMESPACE/NAME, of lower-case letters, digits and '-'", o.Pool)
	case len(o.Members) == 0 || len(o.Members) > maxMembers:
		return fmt.Errorf("--pool has %d members: want 1 to %d, each by --member", len(o.Members), maxMembers)
	case o.Store != "" || o.LogoFile != "":
		return errors.New("--pool excludes --store and --logo-file: each --member has its own")
	}
	names, ports := map[string]bool{}, map[string]bool{portOf(o.HealthAddress): true}
	for i := range o.Members {
		m := &o.Members[i]
		if m.Store == "" {
			m.Store = StoreKubernetes
		}
		switch {
		case !isName(m.Project):
			return fmt.Errorf("--member has the name %q: want the name of a project of the pool's namespace", m.Project)
		case names[m.Project]:
			return fmt.Errorf("--member %s is given twice", m.Project)
		case ports[portOf(m.Address)]:
			return fmt.Errorf("--member %s has the address %s, whose port is that of another one, or of the probes", m.Project, m.Address)
		case !slices.Contains([]string{StoreKubernetes, StorePostgreSQL}, m.Store):
			return fmt.Errorf("--member %s has the store %q: want %s or %s", m.Project, m.Store, StoreKubernetes, StorePostgreSQL)
		}
		if err := CheckAddress("member "+m.Project, m.Address); err != nil {
			return err
		}
		names[m.Project], ports[portOf(m.Address)] = true, true
	}
	return nil
}

// isName reports whether a text can be the name of an object.
func isName(text string) bool { return len(validation.IsDNS1123Subdomain(text)) == 0 }

// portOf returns the port of an address; the address itself if it has none, which CheckAddress refuses.
func portOf(address string) string {
	if _, port, err := net.SplitHostPort(address); err == nil && port != "" {
		return port
	}
	return address
}
