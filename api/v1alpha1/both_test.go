package v1alpha1_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/api/v1alpha1"
)

// example is one entry of a file under testdata: a merge patch for the spec of a
// base object, and the expected result.
type example struct {
	It     string         `json:"it"`
	Set    map[string]any `json:"set"`
	Refuse []string       `json:"refuse"` // empty: accepted; otherwise texts that both messages must contain
	GoSays []string       `json:"goSays"` // replaces Refuse if the Go type cannot be decoded
}

// readExamples returns the entries of all matching files.
func readExamples(pattern string) map[string][]example {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		panic("no examples in " + pattern)
	}
	out := map[string][]example{}
	for _, file := range files {
		var examples []example
		// Not UnmarshalStrict, which treats overrides of a merge key as repeated keys.
		if err := yaml.Unmarshal(mustRead(file), &examples, yaml.DisallowUnknownFields); err != nil {
			panic(file + ": " + err.Error())
		}
		out[filepath.Base(file)] = examples
	}
	return out
}

func mustRead(file string) []byte {
	content, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	return content
}

func readObject(file string) map[string]any {
	var object map[string]any
	if err := yaml.Unmarshal(mustRead(file), &object); err != nil {
		panic(file + ": " + err.Error())
	}
	return object
}

// applyPatch returns a copy of object with an RFC 7386 patch applied to its spec.
func applyPatch(object, patch map[string]any) map[string]any {
	out := maps.Clone(object)
	out["spec"] = mergePatch(object["spec"], patch)
	return out
}

// nulls lists the fields that are sent as null, to test the API server's answer.
// A null of any other field deletes it.
var nulls = map[string]bool{"request": true, "rateLimit": true, "storage": true, "server": true, "expose": true}

func mergePatch(base any, patch map[string]any) map[string]any {
	target, _ := base.(map[string]any)
	out := maps.Clone(target)
	if out == nil {
		out = map[string]any{}
	}
	for name, value := range patch {
		switch v := value.(type) {
		case nil:
			if delete(out, name); nulls[name] {
				out[name] = nil
			}
		case map[string]any:
			out[name] = mergePatch(out[name], v)
		default:
			out[name] = v
		}
	}
	return out
}

// createOnServer sends an object unchanged, without a Go type, and returns the
// API server's answer.
func createOnServer(ctx context.Context, namespace string, object map[string]any, opts ...client.CreateOption) (map[string]any, error) {
	sent := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(normalizeNumbers(object))}
	sent.SetNamespace(namespace)
	err := api.Create(ctx, sent, opts...)
	return sent.Object, err
}

// normalizeNumbers converts the numbers of a decoded YAML file to the types of
// unstructured objects.
func normalizeNumbers(object map[string]any) map[string]any {
	GinkgoHelper()
	content, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	var out unstructured.Unstructured
	Expect(out.UnmarshalJSON(content)).To(Succeed())
	return out.Object
}

// validateProjectInGo runs decode, Default and Validate on the same object.
func validateProjectInGo(object map[string]any) (*v1alpha1.VerificationProject, error) {
	content, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	project, err := v1alpha1.DecodeProject(content)
	if err != nil {
		return nil, err
	}
	project.Default()
	return project, errors.Join(project.Validate().ToAggregate())
}

func validateRequestInGo(object map[string]any) (*v1alpha1.VerificationRequest, error) {
	content, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	request, err := v1alpha1.DecodeRequest(content)
	if err != nil {
		return nil, err
	}
	request.Default()
	return request, errors.Join(request.Validate().ToAggregate())
}

// decodeAs decodes the API server's answer like an informer.
func decodeAs[T any](answer map[string]any) T {
	GinkgoHelper()
	content, err := json.Marshal(answer)
	Expect(err).NotTo(HaveOccurred())
	var out T
	Expect(json.Unmarshal(content, &out)).To(Succeed())
	return out
}
