package render

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

const (
	// namePrefix avoids conflicts with foreign objects that have the project's own name, and begins every name with a letter, as
	// a Service's must.
	namePrefix = "phoneproof-"
	// maxName leaves room for the longest suffix, so that every child's name fits in the 63 characters of a DNS label.
	maxName    = 63 - len("-"+postgresql+namespacedSuffix)
	hashDigits = 10
)

var (
	dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	hashed   = regexp.MustCompile(`-[0-9a-f]{10}$`)
)

// Name returns the name of a project's children: phoneproof-PROJECT if that is a valid name of a Service, else a prefix of it
// with a hash of the project's whole name. A project whose own name looks like one with a hash gets a hash too, so that no two
// projects of a namespace share a name.
func Name(project string) string {
	name := namePrefix + project
	if len(name) <= maxName && dnsLabel.MatchString(project) && !hashed.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(project))
	head := strings.ReplaceAll(name, ".", "-")
	head = strings.TrimRight(head[:min(len(head), maxName-hashDigits-1)], "-")
	return head + "-" + hex.EncodeToString(sum[:])[:hashDigits]
}
