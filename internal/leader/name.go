package leader

import "github.com/google/uuid"

// ProjectLease returns the name of a project's lease, which has at most 253 characters, like the project's name.
func ProjectLease(project string) string {
	const prefix = "phoneproof-"
	if len(prefix)+len(project) <= 253 {
		return prefix + project
	}
	return prefix + uuid.NewSHA1(uuid.NameSpaceDNS, []byte(project)).String()
}
