package rotate

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newReplacement returns a patch that writes one key of a Secret and leaves the others. The value is encoded here, so no error holds it.
func newReplacement(key, value string) (client.Patch, error) {
	return encodePatch(types.MergePatchType, key, map[string]any{"stringData": map[string]string{key: value}})
}

// newAddition is newReplacement for a key that the Secret must not have yet: the API server refuses the whole patch if it has. A test
// for null is one for absence there, as a test in this package's suite shows.
func newAddition(key, value string) (client.Patch, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value []byte `json:"value"` // in base64, as data has it; nil is null
	}
	path := "/data/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	return encodePatch(types.JSONPatchType, key, []operation{{"test", path, nil}, {"add", path, []byte(value)}})
}

func encodePatch(kind types.PatchType, key string, content any) (client.Patch, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode Secret: key %s", key)
	}
	return client.RawPatch(kind, data), nil
}
