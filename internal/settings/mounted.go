package settings

import (
	"fmt"
	"strings"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// Mounted are the secrets that a pod was started with. A reference that was added to the project later leads to a file that
// this pod will never see: it waits for the pods that are being rolled out, and nothing is wrong with its Secret. Nil
// stands for all there may be.
type Mounted map[verifyv1.SecretKeyRef]struct{}

// ParseMounted reads names of secrets, each as SECRET/KEY; none stands for all there may be.
func ParseMounted(names []string) (Mounted, error) {
	if len(names) == 0 {
		return nil, nil
	}
	mounted := make(Mounted, len(names))
	for _, name := range names {
		secret, key, _ := strings.Cut(name, "/")
		if !localName(secret) || !localName(key) {
			return nil, fmt.Errorf("%q is not SECRET/KEY", name)
		}
		mounted[verifyv1.SecretKeyRef{Name: secret, Key: key}] = struct{}{}
	}
	return mounted, nil
}

// has tells whether a file of that reference can come.
func (m Mounted) has(ref verifyv1.SecretKeyRef) bool {
	_, ok := m[ref]
	return ok || m == nil
}
