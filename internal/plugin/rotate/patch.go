package rotate

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// newAddition returns a patch that adds a key to a Secret that must not have it yet: the API server refuses the whole patch if it has. A
// test for null is one for absence there, as a test shows.
func newAddition(key, value string) client.Patch {
	path := "/data/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	return operations{
		{Op: "test", Path: path, Value: json.RawMessage("null")},
		{Op: "add", Path: path, Value: []byte(value)}, // in base64, as data has it
	}
}

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	From  string `json:"from,omitempty"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// operations are a JSON patch.
type operations []operation

// Type returns the type of the patch.
func (o operations) Type() types.PatchType { return types.JSONPatchType }

// Data returns the patch, whatever the object.
func (o operations) Data(client.Object) ([]byte, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return data, nil
}

// newProjectPatch returns a patch of the project that was read: the operations or, without any, the fields that differ.
func newProjectPatch(read *verifyv1.VerificationProject, list []operation) client.Patch {
	if len(list) > 0 {
		return operations(list)
	}
	return client.MergeFrom(read)
}

// newLockedPatch returns the patch, which the API server refuses if another spec than the one that was read is stored: as invalid if it
// has operations, else as a conflict, which a write of the status is, too.
func newLockedPatch(read *verifyv1.VerificationProject, list []operation) client.Patch {
	if len(list) > 0 {
		return append(operations{{Op: "test", Path: "/metadata/generation", Value: read.Generation}}, list...)
	}
	return client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})
}

// copyKey returns the operations that append an entry of spec.apiKeys with all that the former one has, but for what differs: a field that
// this version does not know may restrict what the key is for.
func copyKey(keys []verifyv1.APIKey, former int, added *verifyv1.APIKey) []operation {
	path := func(entry int) string { return "/spec/apiKeys/" + strconv.Itoa(entry) }
	end := path(len(keys))
	list := []operation{
		{Op: "copy", From: path(former), Path: end},
		{Op: "replace", Path: end + "/name", Value: added.Name},
		{Op: "replace", Path: end + "/secretRef", Value: added.SecretRef},
	}
	if keys[former].ExpiresAt != nil {
		list = append(list, operation{Op: "remove", Path: end + "/expiresAt"})
	}
	return list
}
