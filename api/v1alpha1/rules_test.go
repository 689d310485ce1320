package v1alpha1_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rule is one CEL rule of a CRD.
type rule struct {
	text, message string
	// field is the field in the error, with [] for list entries: the field with the rule, or the one below it that
	// the rule points to.
	field string
}

// collectRules returns the CEL rules of s, which is at path, and of all fields below it.
func collectRules(path string, s *apiextensionsv1.JSONSchemaProps) []rule {
	var found []rule
	for _, r := range s.XValidations {
		found = append(found, rule{text: r.Rule, message: r.Message, field: path + r.FieldPath})
	}
	for name, child := range s.Properties {
		found = append(found, collectRules(strings.TrimPrefix(path+"."+name, "."), &child)...)
	}
	if s.Items != nil {
		found = append(found, collectRules(path+"[]", s.Items.Schema)...)
	}
	if s.AdditionalProperties != nil {
		found = append(found, collectRules(path+"[]", s.AdditionalProperties.Schema)...)
	}
	return found
}

// trialResults holds the API server's answers to examples: the fields of accepted
// objects, and the causes of refusals.
type trialResults struct {
	accepted map[string]bool
	refused  []metav1.StatusCause
}

func (t *trialResults) recordAnswer(answer map[string]any, err error) {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		t.recordFields("", answer)
	case errors.As(err, &status) && status.Status().Details != nil:
		t.refused = append(t.refused, status.Status().Details.Causes...)
	}
}

func (t *trialResults) recordFields(path string, value any) {
	t.accepted[path] = true
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			t.recordFields(strings.TrimPrefix(path+"."+name, "."), child)
		}
		t.accepted[path+"[]"] = len(v) > 0 // of a map
	case []any:
		for _, child := range v {
			t.recordFields(path+"[]", child)
		}
	}
}

var index = regexp.MustCompile(`\[[^]]*\]`)

// findMissing returns the missing examples of a rule, which needs an accepted
// object with its field and a refused one.
func (t *trialResults) findMissing(r rule) []string {
	var out []string
	if !t.accepted[r.field] {
		out = append(out, fmt.Sprintf("%s: no accepted example for: %s", r.field, r.message))
	}
	for _, cause := range t.refused {
		if index.ReplaceAllString(cause.Field, "[]") == r.field && strings.HasSuffix(cause.Message, ": "+r.message) {
			return out
		}
	}
	return append(out, fmt.Sprintf("%s: no refused example for: %s", r.field, r.message))
}

// Every rule needs an accepted and a refused example. Rules are distinguished by field and message, so that the rule for a
// Secret's name in one place does not stand in for the same rule in another.
var _ = Describe("Rules", func() {
	for _, kind := range []struct{ crd, base, full, examples, statuses, update string }{
		{projectCRD, "testdata/minimal.yaml", "testdata/full.yaml", "testdata/project/*.yaml", "testdata/status/project.yaml",
			`{"spec":{"projectID":"another"}}`},
		{requestCRD, "testdata/request.yaml", "testdata/request.yaml", "testdata/request/*.yaml", "testdata/status/request.yaml",
			`{"spec":{"phoneNumber":"+15550100111"}}`},
	} {
		schema := readCRD(kind.crd).Spec.Versions[0].Schema.OpenAPIV3Schema

		It("are distinguishable in "+kind.crd, func() {
			seen := map[rule]bool{}
			for _, r := range collectRules("", schema) {
				r.text = ""
				Expect(seen).NotTo(HaveKey(r))
				seen[r] = true
			}
			Expect(seen).To(HaveLen(strings.Count(string(mustRead(kind.crd)), " rule: ")), "collectRules missed some")
		})

		It("have an accepted and a refused example each in "+kind.crd, func(ctx context.Context) {
			tried := &trialResults{accepted: map[string]bool{}}
			for _, examples := range readExamples(kind.examples) {
				for _, e := range examples {
					tried.recordAnswer(sendExample(ctx, kind.base, e))
				}
			}
			created, err := createOnServer(ctx, newNamespace(ctx), readObject(kind.full))
			tried.recordAnswer(created, err)
			Expect(err).NotTo(HaveOccurred())
			for _, examples := range readExamples(kind.statuses) {
				for _, e := range examples {
					tried.recordAnswer(patchStatus(ctx, created, e.Set, client.DryRunAll))
				}
			}
			update := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(created)}
			err = api.Patch(ctx, update, client.RawPatch(types.MergePatchType, []byte(kind.update)), client.DryRunAll)
			tried.recordAnswer(update.Object, err)

			var missing []string
			for _, r := range collectRules("", schema) {
				missing = append(missing, tried.findMissing(r)...)
			}
			Expect(missing).To(BeEmpty(), strings.Join(missing, "\n"))
		})
	}
})
