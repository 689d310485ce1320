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

// example is one entry of a file under testdata: a merge patch for the spec of
// a base object, and what is to come of it.
type example struct {
	It     string         `json:"it"`
	Set    map[string]any `json:"set"`
	Refuse []string       `json:"refuse"` // empty: accepted; else: what both messages must say
	GoSays []string       `json:"goSays"` // in place of Refuse where a Go type does not decode at all
}

// readExamples returns the entries of every file that matches.
func readExamples(pattern string) map[string][]example {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		panic("no examples in " + pattern)
	}
	out := map[string][]example{}
	for _, file := range files {
		var examples []example
		// Not UnmarshalStrict: it takes a merge key's overrides for repeated keys.
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

// patched returns a copy of object with an RFC 7386 patch applied to its spec.
func patched(object, patch map[string]any) map[string]any {
	out := maps.Clone(object)
	out["spec"] = merge(object["spec"], patch)
	return out
}

// nulls lists the fields whose null is sent, so that the API server's answer
// to it is tested; a null of any other field deletes it.
var nulls = map[string]bool{"request": true, "rateLimit": true, "storage": true, "server": true, "expose": true}

func merge(base any, patch map[string]any) map[string]any {
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
			out[name] = merge(out[name], v)
		default:
			out[name] = v
		}
	}
	return out
}

// onServer sends an object as it is, without a Go type in between, and returns
// the API server's answer.
func onServer(ctx context.Context, namespace string, object map[string]any, opts ...client.CreateOption) (map[string]any, error) {
	sent := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(normal(object))}
	sent.SetNamespace(namespace)
	err := api.Create(ctx, sent, opts...)
	return sent.Object, err
}

// normal turns the numbers of a decoded YAML file into those that unstructured
// objects use.
func normal(object map[string]any) map[string]any {
	GinkgoHelper()
	content, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	var out unstructured.Unstructured
	Expect(out.UnmarshalJSON(content)).To(Succeed())
	return out.Object
}

// inGo sends the same object through decode, Default and Validate.
func projectInGo(object map[string]any) (*v1alpha1.VerificationProject, error) {
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

func requestInGo(object map[string]any) (*v1alpha1.VerificationRequest, error) {
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

// typed decodes the API server's answer, as an informer would.
func typed[T any](answer map[string]any) T {
	GinkgoHelper()
	content, err := json.Marshal(answer)
	Expect(err).NotTo(HaveOccurred())
	var out T
	Expect(json.Unmarshal(content, &out)).To(Succeed())
	return out
}
