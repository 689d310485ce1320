package settings

import (
	"fmt"
	"strings"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// Mounted is the set of secrets that were mounted when the pod started. A reference added to the project later has no file in
// this pod: it works after the rollout, and its Secret is not at fault. Nil stands for all secrets.
type Mounted map[verifyv1.SecretKeyRef]struct{}

// ParseMounted parses names of secrets, each as SECRET/KEY. An empty list stands for all secrets.
func ParseMounted(names []string) (Mounted, error) {
	if len(names) == 0 {
		return nil, nil
	}
	mounted := make(Mounted, len(names))
	for _, name := range names {
		secret, key, _ := strings.Cut(name, "/")
		if !isLocalName(secret) || !isLocalName(key) {
			return nil, fmt.Errorf("%q is not SECRET/KEY", name)
		}
		mounted[verifyv1.SecretKeyRef{Name: secret, Key: key}] = struct{}{}
	}
	return mounted, nil
}

// has reports whether the reference is mounted.
func (m Mounted) has(ref verifyv1.SecretKeyRef) bool {
	_, ok := m[ref]
	return ok || m == nil
}
