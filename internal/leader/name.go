package leader

import "github.com/google/uuid"

// maxName is the length of the longest name of a lease.
const maxName = 253

// ProjectLease returns the name of a project's lease, which has at most 253 characters, like the project's name.
func ProjectLease(project string) string { return leaseName("phoneproof-", project) }

// PoolLease returns the name of the lease of a pool of projects. It is the lease of no project.
func PoolLease(pool string) string { return leaseName("phoneproofpool-", pool) }

func leaseName(prefix, of string) string {
	if len(prefix)+len(of) <= maxName {
		return prefix + of
	}
	return prefix + uuid.NewSHA1(uuid.NameSpaceDNS, []byte(of)).String()
}
