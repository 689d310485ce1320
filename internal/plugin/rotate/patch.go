package rotate

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newSecretPatch returns a patch that writes one key of a Secret and leaves the others. The value is encoded here, so no error holds it.
func newSecretPatch(key, value string) (client.Patch, error) {
	data, err := json.Marshal(map[string]any{"stringData": map[string]string{key: value}})
	if err != nil {
		return nil, fmt.Errorf("encode Secret: key %s", key)
	}
	return client.RawPatch(types.MergePatchType, data), nil
}
